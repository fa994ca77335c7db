"""What the paper's real-valued code loses, as a table and a picture.

python benchmarks/real_code.py [--svg FILE] [--png FILE] [--json FILE]
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fedforget.coding import ErrorRow, error_table


def table(rows: Sequence[ErrorRow]) -> str:
    head = (
        f"{'S':>3} {'C':>4} {'nodes':>10} {'precision':>9} {'median':>9} {'largest':>9} {'bit-exact':>9} {'nearest':>8}"
    )
    lines = [
        f"{r.shards:>3} {r.clients:>4} {r.nodes:>10} {r.precision:>9} {r.median_error:>9.1e} {r.max_error:>9.1e} "
        f"{r.exact:>9.1%} {r.nearest:>8.3f}"
        for r in rows
    ]
    return "\n".join([head, *lines])


def draw(rows: Sequence[ErrorRow], paths: Sequence[Path]) -> None:
    """Colour: nodes (Okabe and Ito's, told apart by everybody); marker: precision; line: the largest C is solid."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    colours = dict(zip(("integers", "uniform", "chebyshev"), ("#D55E00", "#0072B2", "#009E73"), strict=True))
    markers = {"float32": "o", "float64": "s"}
    lines = dict(zip(sorted({r.clients for r in rows}, reverse=True), ("-", "--", ":", "-."), strict=False))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for nodes, precision, clients in sorted({(r.nodes, r.precision, r.clients) for r in rows}):
        line = [r for r in rows if (r.nodes, r.precision, r.clients) == (nodes, precision, clients)]
        shards, style = [r.shards for r in line], {"color": colours[nodes], "linestyle": lines[clients]}
        left.plot(shards, [r.median_error for r in line], marker=markers[precision], markersize=5, **style)
        if precision == "float64":  # how near a slice is to a model hardly depends on it
            right.plot(shards, [r.nearest for r in line], **style)
    left.set(yscale="log", xlabel="shards S", ylabel="median relative error", title="what it loses")
    right.set(
        yscale="log",
        xlabel="shards S",
        ylabel="nearest slice to a model",
        title="what it hides (0: a slice is a model)",
    )
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sorted({r.shards for r in rows}), [str(s) for s in sorted({r.shards for r in rows})])
        axes.grid(alpha=0.3)
    names = [Line2D([], [], color=colour, label=f"nodes: {nodes}") for nodes, colour in colours.items()]
    names += [Line2D([], [], color="k", marker=m, linestyle="", label=name) for name, m in markers.items()]
    names += [Line2D([], [], color="k", linestyle=style, label=f"C = {clients}") for clients, style in lines.items()]
    figure.legend(handles=names, loc="outside right center", fontsize="small")
    for path in paths:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", nargs="+", type=int, default=[2, 4, 8, 16])
    parser.add_argument("--clients", nargs="+", type=int, default=[20, 100])
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--png", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = list(error_table(options.shards, options.clients))
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    if paths := [path for path in (options.svg, options.png) if path]:
        draw(rows, paths)


if __name__ == "__main__":
    main()
