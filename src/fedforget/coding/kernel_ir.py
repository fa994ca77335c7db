"""The fast kernel as LLVM IR text: one tile of output rows at a time, kept in vector registers.

A *tile* reads every input once and sums up to `Mode.rows` outputs. Each pair of (input plane, output plane) has a
constant that says how to multiply a whole vector: with GFNI the 8×8 bit matrix itself (8 bytes), with AVX2 two
tables of the products of the low and the high four bits (32 bytes), looked up by `pshufb`. The `run` function walks
over chunks small enough for the cache, and inside each over all tiles.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mode:
    """One way to multiply. `needs` are the CPU's features as LLVM names them; compiling without them aborts."""

    name: str
    width: int  # bytes of a vector
    rows: int  # outputs of a full tile: what the registers hold
    vectors: int  # vectors of each row at once
    constant: int  # bytes of the constant of one (input, output)
    needs: tuple[str, ...]


MODES = (
    Mode("gfni512", 64, 8, 2, 8, ("avx", "avx2", "avx512f", "avx512bw", "avx512vl", "gfni")),
    Mode("gfni256", 32, 5, 2, 8, ("avx", "avx2", "gfni")),
    Mode("avx2", 32, 3, 2, 32, ("avx", "avx2")),
)

RUN = """
define void @run(ptr %constants, ptr %ins, ptr %outs, i64 %columns, i64 %start, i64 %stop, i64 %chunk,
                 ptr %tall, i64 %talls, i64 %height, ptr %short, i64 %shorts) {
entry:
  %below = sub i64 %height, 1
  %tallstep = mul i64 %height, %columns
  %shortstep = mul i64 %below, %columns
  br label %chunks
chunks:
  %x = phi i64 [ %start, %entry ], [ %end, %next ]
  %more = icmp ult i64 %x, %stop
  br i1 %more, label %begin, label %done
begin:
  %far = add i64 %x, %chunk
  %over = icmp ult i64 %far, %stop
  %end = select i1 %over, i64 %far, i64 %stop
  br label %tiles
tiles:
  %n = phi i64 [ 0, %begin ], [ %n1, %tile ]
  %k = phi ptr [ %constants, %begin ], [ %k1, %tile ]
  %o = phi ptr [ %outs, %begin ], [ %o1, %tile ]
  %all = add i64 %talls, %shorts
  %left = icmp ult i64 %n, %all
  br i1 %left, label %tile, label %next
tile:
  %istall = icmp ult i64 %n, %talls
  %code = select i1 %istall, ptr %tall, ptr %short
  %rows = select i1 %istall, i64 %height, i64 %below
  %step = select i1 %istall, i64 %tallstep, i64 %shortstep
  call void %code(ptr %k, ptr %ins, ptr %o, i64 %columns, i64 %x, i64 %end)
  %n1 = add i64 %n, 1
  %bytes = mul i64 %step, CONSTANT
  %k1 = getelementptr i8, ptr %k, i64 %bytes
  %o1 = getelementptr ptr, ptr %o, i64 %rows
  br label %tiles
next:
  br label %chunks
done:
  ret void
}
"""


def run_text(mode: Mode) -> str:
    return RUN.replace("CONSTANT", str(mode.constant))


def tile_text(mode: Mode, rows: int, *, accumulate: bool, stream: bool) -> str:
    """A function tile(constants, ins, outs, columns, start, stop) for that many rows.

    `stream` writes past the caches and asks that all outputs are aligned at `start`.
    """
    lines = [
        "define void @tile(ptr %constants, ptr %ins, ptr %outs, i64 %columns, i64 %start, i64 %stop) {",
        "entry:",
        f"  %scratch = alloca [{mode.width} x i8], align {mode.width}",
    ]
    for r in range(rows):
        lines += [f"  %op{r} = getelementptr ptr, ptr %outs, i64 {r}", f"  %o{r} = load ptr, ptr %op{r}"]
    lines += ["  br label %main.head"]
    lines += _loop(mode, rows, "main", mode.vectors, accumulate, stream)
    lines += _loop(mode, rows, "rest", 1, accumulate, False)
    lines += ["done:", "  ret void", "}", "!0 = !{i32 1}"]
    declare = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return "\n".join([declare, _declaration(mode), *lines, ""])


def _loop(mode: Mode, rows: int, name: str, vectors: int, accumulate: bool, stream: bool) -> Iterator[str]:
    """Over the bytes: in `main` by full steps, in `rest` by single vectors, the last of them in part."""
    rest, vector = name == "rest", f"<{mode.width} x i8>"
    entry, after = ("main.head", "done") if rest else ("entry", "rest.head")
    came_from = "%main.x" if rest else "%start"
    yield from (
        f"{name}.head:",
        f"  %{name}.x = phi i64 [ {came_from}, %{entry} ], [ %{name}.next, %{name}.flush ]",
        f"  %{name}.next = add i64 %{name}.x, {vectors * mode.width}",
        f"  %{name}.go = icmp {'ult' if rest else 'ule'} i64 %{name}.{'x' if rest else 'next'}, %stop",
        f"  br i1 %{name}.go, label %{name}.init, label %{after}",
        f"{name}.init:",
    )
    if rest:
        yield "  %rest.left = sub i64 %stop, %rest.x"
        yield f"  %rest.size = call i64 @llvm.umin.i64(i64 %rest.left, i64 {mode.width})"
    each = [(r, v) for r in range(rows) for v in range(vectors)]
    for r, v in each:
        if accumulate:
            yield from _load(mode, name, f"%{name}.old{r}.{v}", f"%o{r}", v, rest)
    yield from (
        f"  br label %{name}.column",
        f"{name}.column:",
        f"  %{name}.c = phi i64 [ 0, %{name}.init ], [ %{name}.c1, %{name}.column ]",
    )
    for r, v in each:
        first = f"%{name}.old{r}.{v}" if accumulate else "zeroinitializer"
        yield f"  %{name}.sum{r}.{v} = phi {vector} [ {first}, %{name}.init ], [ %{name}.new{r}.{v}, %{name}.column ]"
    yield f"  %{name}.ip = getelementptr ptr, ptr %ins, i64 %{name}.c"
    yield f"  %{name}.in = load ptr, ptr %{name}.ip"
    for v in range(vectors):
        yield from _load(mode, name, f"%{name}.d{v}", f"%{name}.in", v, rest)
    yield f"  %{name}.kn = mul i64 %{name}.c, {rows * mode.constant}"
    yield f"  %{name}.k = getelementptr i8, ptr %constants, i64 %{name}.kn"
    yield from (_gfni if mode.constant == 8 else _shuffle)(mode, rows, vectors, name)
    for r, v in each:
        yield f"  %{name}.new{r}.{v} = xor {vector} %{name}.sum{r}.{v}, %{name}.p{r}.{v}"
    yield from (
        f"  %{name}.c1 = add i64 %{name}.c, 1",
        f"  %{name}.again = icmp ult i64 %{name}.c1, %columns",
        f"  br i1 %{name}.again, label %{name}.column, label %{name}.flush",
        f"{name}.flush:",
    )
    for r, v in each:
        yield from _store(mode, name, f"%{name}.new{r}.{v}", r, v, rest, stream)
    yield f"  br label %{name}.head"


def _load(mode: Mode, name: str, value: str, base: str, v: int, rest: bool) -> Iterator[str]:
    yield f"  {value}.x = add i64 %{name}.x, {v * mode.width}"
    yield f"  {value}.p = getelementptr i8, ptr {base}, i64 {value}.x"
    source, align = f"{value}.p", 1
    if rest:
        yield f"  call void @llvm.memcpy.p0.p0.i64(ptr %scratch, ptr {value}.p, i64 %rest.size, i1 false)"
        source, align = "%scratch", mode.width
    yield f"  {value} = load <{mode.width} x i8>, ptr {source}, align {align}"


def _store(mode: Mode, name: str, value: str, r: int, v: int, rest: bool, stream: bool) -> Iterator[str]:
    at = f"{value}.to"
    yield f"  {at}.x = add i64 %{name}.x, {v * mode.width}"
    yield f"  {at} = getelementptr i8, ptr %o{r}, i64 {at}.x"
    vector = f"<{mode.width} x i8>"
    if rest:
        yield f"  store {vector} {value}, ptr %scratch, align {mode.width}"
        yield f"  call void @llvm.memcpy.p0.p0.i64(ptr {at}, ptr %scratch, i64 %rest.size, i1 false)"
    elif stream:
        yield f"  store {vector} {value}, ptr {at}, align {mode.width}, !nontemporal !0"
    else:
        yield f"  store {vector} {value}, ptr {at}, align 1"


def _declaration(mode: Mode) -> str:
    vector, bits = f"<{mode.width} x i8>", 8 * mode.width
    umin = "declare i64 @llvm.umin.i64(i64, i64)\n"
    if mode.constant == 8:
        return f"{umin}declare {vector} @llvm.x86.vgf2p8affineqb.{bits}({vector}, {vector}, i8)"
    return f"{umin}declare {vector} @llvm.x86.avx2.pshuf.b({vector}, {vector})"


def _gfni(mode: Mode, rows: int, vectors: int, name: str) -> Iterator[str]:
    """One instruction multiplies 64 (or 32) bytes by one bit matrix."""
    words, bits = mode.width // 8, 8 * mode.width
    vector = f"<{mode.width} x i8>"
    for r in range(rows):
        m = f"%{name}.m{r}"
        yield f"  {m}.p = getelementptr i64, ptr %{name}.k, i64 {r}"
        yield f"  {m}.w = load i64, ptr {m}.p, align 8"
        yield f"  {m}.i = insertelement <{words} x i64> poison, i64 {m}.w, i64 0"
        yield (
            f"  {m}.s = shufflevector <{words} x i64> {m}.i, <{words} x i64> poison, <{words} x i32> zeroinitializer"
        )
        yield f"  {m} = bitcast <{words} x i64> {m}.s to {vector}"
        for v in range(vectors):
            call = f"@llvm.x86.vgf2p8affineqb.{bits}({vector} %{name}.d{v}, {vector} {m}, i8 0)"
            yield f"  %{name}.p{r}.{v} = call {vector} {call}"


def _shuffle(mode: Mode, rows: int, vectors: int, name: str) -> Iterator[str]:
    """Two look-ups of sixteen entries: the products of the low and of the high four bits."""
    vector = f"<{mode.width} x i8>"
    lanes = ", ".join(f"i32 {i % 16}" for i in range(mode.width))
    low, shift = (", ".join([f"i8 {number}"] * mode.width) for number in (15, 4))
    for v in range(vectors):
        yield f"  %{name}.l{v} = and {vector} %{name}.d{v}, <{low}>"
        yield f"  %{name}.h{v} = lshr {vector} %{name}.d{v}, <{shift}>"
    for r in range(rows):
        for half, offset in (("l", 0), ("h", 16)):
            t = f"%{name}.t{half}{r}"
            yield f"  {t}.p = getelementptr i8, ptr %{name}.k, i64 {32 * r + offset}"
            yield f"  {t}.s = load <16 x i8>, ptr {t}.p, align 16"
            yield f"  {t} = shufflevector <16 x i8> {t}.s, <16 x i8> poison, <{mode.width} x i32> <{lanes}>"
            for v in range(vectors):
                call = f"@llvm.x86.avx2.pshuf.b({vector} {t}, {vector} %{name}.{half}{v})"
                yield f"  %{name}.q{half}{r}.{v} = call {vector} {call}"
        for v in range(vectors):
            yield f"  %{name}.p{r}.{v} = xor {vector} %{name}.ql{r}.{v}, %{name}.qh{r}.{v}"
