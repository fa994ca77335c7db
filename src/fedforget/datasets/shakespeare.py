"""Tiny Shakespeare: 1,115,394 characters of plays, to be continued a character at a time."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SettingError
from ..examples import Examples
from .dataset import Dataset
from .files import Content, mend, plain, read

PATH = "tiny_shakespeare/input.txt"
CONTENT = Content(1_115_394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed")

# A constant and not `sorted(set(text))`: the shape of a model must not depend on whether somebody who
# may leave was the only one to write some character.
VOCABULARY = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def load_shakespeare(
    root: Path, *, context: int = 64, vocabulary: str = VOCABULARY, content: Content = CONTENT
) -> Dataset:
    """Windows of `context` characters: `x` uint8 (n, context), `y` int64 the text one character on.

    The first 90 % of the text are for training, the rest for testing, as nanoGPT cuts it. A window
    takes context + 1 characters and the next begins after them: where windows shared that one
    character, the last thing one client learns would be the first thing another does.

    The paper speaks of a vocabulary of 109. This text has 65 different characters; 109 are what
    another text in the authors' public code has. `vocabulary` takes any longer one, for a model of
    their size.
    """
    if context < 1:
        raise SettingError("context", context, "1 or more characters")
    if len(set(vocabulary)) != len(vocabulary) or len(vocabulary) > 256:
        raise SettingError("vocabulary", vocabulary, "up to 256 characters, each once")
    text = read(root, "shakespeare", {PATH: plain}, content)
    tokens = _encode(root, text, vocabulary)
    cut = len(tokens) * 9 // 10
    if len(tokens) - cut <= context:
        raise SettingError("context", context, f"below {len(tokens) - cut}, the length of the test text")
    return Dataset(
        name="shakespeare",
        kind="text",
        train=_windows(tokens[:cut], context),
        test=_windows(tokens[cut:], context),
        labels=tuple(vocabulary),
    )


def _encode(root: Path, text: bytes, vocabulary: str) -> NDArray[np.uint8]:
    table = np.full(256, len(vocabulary), dtype=np.intp)
    for token, character in enumerate(vocabulary):
        if ord(character) < 128:
            table[ord(character)] = token
    tokens = table[np.frombuffer(text, np.uint8)]
    unknown = np.flatnonzero(tokens == len(vocabulary))
    if len(unknown):
        found = f"{bytes([text[unknown[0]]])!r} at byte {unknown[0]}"
        way = f"give a vocabulary that has it, or {mend('shakespeare', root)}"
        raise DataError(root / PATH, "only characters of the vocabulary", found, way)
    return tokens.astype(np.uint8)


def _windows(tokens: NDArray[np.uint8], context: int) -> Examples:
    count = len(tokens) // (context + 1)
    windows = tokens[: count * (context + 1)].reshape(count, context + 1)
    return Examples(windows[:, :-1].copy(), windows[:, 1:].astype(np.int64))
