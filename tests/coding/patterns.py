"""Random damage to slices, and what must come of it."""

import random

from fedforget.coding import ReedSolomon
from fedforget.errors import TooManyErrors, Unrecoverable

SHAPES = [(20, 4), (100, 4), (100, 80), (300, 20)]
DAMAGES = ("bit", "byte", "whole", "cut", "long", "old", "zero")
SIZE = 8
SPARE = 8  # slices to spare from which on more liars than the bound do not form another codeword by mere chance


def damaged(kind: str, good: bytes, old: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(good))
    wrong = bytearray(good)
    if kind == "bit":
        wrong[at] ^= 1 << source.randrange(8)
    elif kind == "byte":
        wrong[at] ^= source.randrange(1, 256)
    elif kind == "whole":
        wrong = bytearray(source.randbytes(len(good)))
    elif kind == "cut":
        wrong = wrong[:at]
    elif kind == "long":
        wrong += source.randbytes(source.randrange(1, 4))
    elif kind == "old":
        wrong = bytearray(old)
    else:
        wrong = bytearray(len(good))
    return bytes(wrong)


class World:
    """One code, one record and the same record's older generation, both encoded once."""

    def __init__(self, n: int, k: int, source: random.Random) -> None:
        self.code, self.source = ReedSolomon(n, k), source
        self.blocks = [source.randbytes(SIZE) for _ in range(k)]
        self.slices = self.code.encode(self.blocks)
        self.old = self.code.encode([source.randbytes(SIZE) for _ in range(k)])

    def pattern(self) -> tuple[dict[int, bytes], tuple[int, ...], bool]:
        """Slices, who lies, and whether that is within the bound."""
        n, k, source = self.code.n, self.code.k, self.source
        missing = source.choice([0, 0, 1, source.randint(0, n - k)])
        bound = (n - missing - k) // 2
        beyond = n - missing - k >= SPARE
        most = n - missing if beyond else bound
        wrong = source.choice([0, min(1, bound), bound, source.randint(0, bound), min(bound + 1, most)])
        wrong = source.choice([wrong, source.randint(bound, most)]) if beyond else wrong
        kinds = source.choice([DAMAGES, (source.choice(DAMAGES),)])
        order = source.sample(range(n), n)[missing:]
        have = {h: self.slices[h] for h in sorted(order)}
        left = {"old": bound, "zero": bound}  # more of one other codeword is what no decoder can see; see test_locate
        for holder in order[:wrong]:
            kind = source.choice(kinds)
            if kind in left:
                left[kind] -= 1
                kind = kind if left[kind] >= 0 else "whole"
            have[holder] = damaged(kind, self.slices[holder], self.old[holder], source)
        liars = tuple(h for h in sorted(have) if have[h] != self.slices[h])
        return have, liars, len(liars) <= bound

    def check(self) -> str:
        """`exact` or `refused`; anything else is an assertion."""
        have, liars, within = self.pattern()
        try:
            found = self.code.locate_errors(have)
        except (TooManyErrors, Unrecoverable):
            assert not within, f"{len(liars)} liars of {len(have)} refused"
            return "refused"
        assert found == liars, "a wrong answer"
        assert within
        honest = {h: s for h, s in have.items() if h not in liars}
        assert self.code.decode(honest) == self.blocks
        return "exact"
