"""What a layer costs in time, memory and multiplications."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from regard.plots import figure as picture

from .parts import Runs, table

COSTS: dict[str, tuple[str, str, str]] = {
    "GRU": ("6 n d²", "n", "n"),
    "convolution": ("2 k n d²", "1", "n / k"),
    "attention, explicit": ("4 n d² + 2 n² d", "1", "1"),
    "attention, fused": ("4 n d² + 2 n² d", "1", "1"),
}
"""Multiplications forward, steps that wait for each other, farthest way between two positions."""


def _multiplications(layer: str, length: int, value: dict[str, Any]) -> float:
    dim, kernel = float(value["dim"]), float(value["kernel"])
    if layer == "GRU":
        return 6 * length * dim**2
    if layer == "convolution":
        return 2 * kernel * length * dim**2
    return 4 * length * dim**2 + 2 * length**2 * dim


def write(values: dict[str, dict[str, Any]], folder: Path) -> str:
    """Write one page from what was measured on each device, and draw its picture."""
    measured = list(values.values())
    first = measured[0]
    picture.save(folder / "cost.svg", _figure(measured))
    theory = [(layer, *words) for layer, words in COSTS.items()]
    theory_head = ("layer", "multiplications forward", "steps in a row", "longest way")
    parts = [
        "# What a layer costs as texts grow",
        "",
        f"One layer of width d = {first['dim']}, one text of n positions, forward and backward, "
        f"float32: a GRU, a gated convolution of kernel k = {first['kernel']}, and self-attention "
        f"with {first['heads']} heads, once with its weights written down and once through torch's "
        "fused kernel. In theory (Vaswani et al. 2017, table 1):",
        "",
        table(theory_head, theory),
        "",
        "![Time, memory and multiplications by length](cost.svg)",
        "",
        *(line for value in measured for line in _measured(value)),
        "Time is the best of many passes: on a CPU the processor time of one thread, which does "
        "not count what else the machine was doing, on a GPU the time on the clock. Memory is the "
        "peak of what torch allocates during one pass beyond weights and input: on a GPU as its "
        "allocator counts it, on a CPU from the profiler, which sees every allocation, those "
        "inside kernels included.",
        "",
        "## How it was made",
        "",
        *(
            f"- `{value['command']}`: {value['hardware']}, torch {value['torch']}, commit "
            f"{value['commit']}; every number: [`{name}`]({name})"
            for name, value in values.items()
        ),
        "",
    ]
    return "\n".join(parts)


def _measured(value: dict[str, Any]) -> list[str]:
    layers: dict[str, Runs] = value["layers"]
    lengths = value["lengths"]
    head = ("n", *layers)
    times, peaks = (
        table(
            head,
            [
                (f"{length:,}", *(f"{points[i][key] * unit:,.1f}" for points in layers.values()))
                for i, length in enumerate(lengths)
            ],
        )
        for key, unit in (("seconds", 1e3), ("peak_bytes", 2**-20))
    )
    growth = {
        name: f"{points[-1]['peak_bytes'] / points[-2]['peak_bytes']:.1f}"
        for name, points in layers.items()
    }
    last = {name: points[-1]["seconds"] for name, points in layers.items()}
    fastest = min(last, key=lambda name: last[name])
    verdict = (
        f"From {lengths[-2]:,} to {lengths[-1]:,} positions the memory of explicit attention grows "
        f"{growth['attention, explicit']} times, that of fused attention "
        f"{growth['attention, fused']} times. At {lengths[-1]:,} the {fastest} "
        f"is the fastest, and fused attention takes "
        f"{last['attention, fused'] / last['GRU']:.2f} times as long as the GRU; at {lengths[0]:,} "
        f"it took {layers['attention, fused'][0]['seconds'] / layers['GRU'][0]['seconds']:.2f}."
    )
    return [
        f"## {value['hardware']}",
        "",
        "Milliseconds:",
        "",
        times,
        "",
        "Peak memory in MiB:",
        "",
        peaks,
        "",
        verdict,
        "",
    ]


def _figure(values: list[dict[str, Any]]) -> Figure:
    with picture.style():
        figure = Figure(figsize=(11, 3.4 * len(values)), layout="constrained")
        for row, panels in zip(values, figure.subplots(len(values), 3, squeeze=False), strict=True):
            for number, (layer, points) in enumerate(row["layers"].items()):
                lengths = row["lengths"]
                columns = (
                    [1e3 * point["seconds"] for point in points],
                    [point["peak_bytes"] / 2**20 for point in points],
                    [_multiplications(layer, length, row) / 1e6 for length in lengths],
                )
                for axes, column in zip(panels, columns, strict=True):
                    # Two pairs multiply alike: a dashed line lets the one below be seen.
                    dash = "--" if number % 2 else "-"
                    colour = picture.COLORS[number]
                    axes.plot(lengths, column, dash, color=colour, marker="o", ms=4, label=layer)
            titles = ("time, ms", "peak memory, MiB", "theory: million multiplications forward")
            for axes, title in zip(panels, titles, strict=True):
                axes.set(xscale="log", yscale="log", xlabel="positions n")
                axes.set_title(title, loc="left", fontsize=11)
                axes.set_xticks(row["lengths"], [f"{length:,}" for length in row["lengths"]])
                axes.minorticks_off()
                axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
                axes.grid()
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=len(names))
    return figure
