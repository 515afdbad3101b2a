"""Draw the result pages in `docs/results` from the JSON files beside them.

python benchmarks/pages.py
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from regard.core.files import read_json, write_text
from regard.visual import curves, picture

FOLDER = Path(__file__).parent.parent / "docs" / "results"
Runs = list[dict[str, Any]]


def main() -> None:
    """Draw every page whose results are there."""
    for name, write in PAGES.items():
        path = FOLDER / f"{name}.json"
        if path.exists():
            write_text(FOLDER / f"{name}.md", write(read_json(path)))
            print(f"docs/results/{name}.md")
    machines = [read_json(path) for path in sorted(FOLDER.glob("speed-*.json"))]
    if machines:
        write_text(FOLDER / "speed.md", _speed(machines))
        print("docs/results/speed.md")
    cost = [path for device in ("cpu", "cuda") if (path := FOLDER / f"cost-{device}.json").exists()]
    if cost:
        write_text(FOLDER / "cost.md", _cost({path: read_json(path) for path in cost}))
        print("docs/results/cost.md")


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join(["---"] + ["---:"] * (len(head) - 1))]
    lines += [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _score(run: dict[str, Any], name: str, digits: int = 1) -> str:
    score = run["test"]["scores"].get(name)
    if score is None:
        return "–"
    spread = ""
    if "interval" in score:
        low, high = score["interval"]
        spread = f" ± {(high - low) / 2:.1f}"
    return f"{score['value']:.{digits}f}{spread}"


def _making(value: dict[str, Any]) -> str:
    run = value["runs"][0]
    signatures = sorted({f"{s['name']} `{s['signature']}`" for s in run["test"]["scores"].values()})
    seeds = sorted({str(one["seed"]) for one in value["runs"]})
    commits = sorted({one["commit"] for one in value["runs"]})
    return "\n".join(
        [
            "## How it was made",
            "",
            f"- `{value['command']}`, each run as its own process",
            f"- {run['hardware']}, torch {run['torch']}, commit {', '.join(commits)}, "
            f"seeds {', '.join(seeds)}",
            *(f"- {signature}" for signature in signatures),
            f"- every number: [`{value['experiment']}.json`]({value['experiment']}.json)",
        ]
    )


def _samples(runs: Runs, names: Sequence[str], num: int) -> str:
    chosen = [run for run in runs if run["name"] in names]
    parts = [f"## The first {num} test sentences, unpicked", ""]
    for number in range(num):
        source, reference, _ = chosen[0]["samples"][number]
        parts += [f"{number + 1}. {source}", f"   - *reference*: {reference}"]
        parts += [f"   - {run['name']}: {run['samples'][number][2]}" for run in chosen]
    return "\n".join(parts)


def _multi30k(value: dict[str, Any]) -> str:
    runs: Runs = value["runs"]
    rows = [
        (
            run["name"],
            f"{run['parameters'] / 1e6:.1f} M",
            _score(run, "bleu"),
            _score(run, "bleu_lower_cased"),
            _score(run, "chrf"),
            f"{run['training']['seconds']:.0f} s",
            f"{run['training']['tokens_per_second']:,.0f}",
        )
        for run in runs
    ]
    head = ("model", "weights", "BLEU", "lower-cased", "chrF2", "training", "tokens/s")
    return "\n".join(
        [
            "# Multi30k, English → German",
            "",
            "Test set test_2016_flickr (1,000 sentences), beam 5, joint BPE of 8,000 pieces, tied "
            "embeddings, dropout 0.4, label smoothing 0.1, 30 epochs. The runs shared one GPU, "
            f"{runs[0].get('jobs_side_by_side', 1)} side by side.",
            "",
            _table(head, rows),
            "",
            "What attention buys is the step from the first two rows to the third. On sentences "
            "this short every attention helps, and the window that walks along does well: English "
            "and German captions run nearly in step. Input feeding did not pay here: the same "
            "model without it is better and three times as fast.",
            "",
            _samples(runs, ("sutskever2014", "cho2014", "bahdanau2015", "luong2015 dot"), 8),
            "",
            _making(value),
            "",
        ]
    )


def _lengths(title: str) -> Callable[[dict[str, Any]], str]:
    def write(value: dict[str, Any]) -> str:
        runs: Runs = value["runs"]
        name = value["experiment"]
        series = {run["name"]: _points(run["test"]["by_length"]) for run in runs}
        figure = curves.lines(series, x_label="words in the source", y_label="BLEU")
        picture.save(FOLDER / f"{name}.svg", figure)
        groups = [group for group in runs[0]["test"]["by_length"] if group["count"] >= LEAST]
        rows = [
            (group["name"], group["count"], *(_at(run, group["name"]) for run in runs))
            for group in groups
        ]
        return "\n".join(
            [
                f"# BLEU by source length: {title}",
                "",
                "As Bahdanau et al. 2015 draw it (figure 2): a fixed context (`RNNencdec`, recipe "
                "cho2014) and attention (`RNNsearch`, recipe bahdanau2015), trained on examples of "
                "at most 30 or 50 words, tested up to 60. The sentences are short, so 1–5 "
                "neighbours are joined (1–6 in the test, three cuts of the same sentences).",
                "",
                f"![BLEU by source length]({name}.svg)",
                "",
                _table(("source words", "sentences", *(run["name"] for run in runs)), rows),
                "",
                _verdict({run["name"]: run for run in runs}, [group["name"] for group in groups]),
                "",
                _making(value),
                "",
            ]
        )

    return write


def _verdict(runs: dict[str, dict[str, Any]], groups: Sequence[str]) -> str:
    """Say what became of the paper's two claims."""
    attention, fixed = runs["RNNsearch-30"], runs["RNNencdec-50"]
    ahead = sum(float(_at(attention, name)) > float(_at(fixed, name)) for name in groups)
    changes = " and ".join(
        f"{name} from {_at(runs[name], '16–20')} to {_at(runs[name], '46–50')}"
        for name in ("RNNsearch-50", "RNNencdec-50")
    )
    return (
        f"RNNsearch-30 is ahead of RNNencdec-50 in {ahead} of {len(groups)} groups. From 16–20 to "
        f"46–50 words, {changes} BLEU."
    )


LEAST = 20
"""Fewer sentences than this say little."""


def _points(groups: Runs) -> list[tuple[float, float]]:
    points = []
    for group in groups:
        low, _, high = group["name"].replace("≤ ", "0–").partition("–")
        if high and group["count"] >= LEAST:
            points.append(((float(low) + float(high)) / 2, group["bleu"]))
    return points


def _at(run: dict[str, Any], name: str) -> str:
    found = [group["bleu"] for group in run["test"]["by_length"] if group["name"] == name]
    return f"{found[0]:.1f}" if found else "–"


def _phrasebook(value: dict[str, Any]) -> str:
    runs: Runs = value["runs"]
    names = list(dict.fromkeys(run["name"] for run in runs))
    by_name = {name: [run for run in runs if run["name"] == name] for name in names}
    long = "bleu_above_20_words"
    rows = [
        (
            name,
            f"{own[0]['parameters'] / 1e6:.1f} M",
            _mean([run["test"]["scores"]["bleu"]["value"] for run in own]),
            _mean([run["test"][long]["value"] for run in own]),
            _mean([run["test"]["scores"]["accuracy"]["value"] for run in own]),
            _mean([100 * run["test"]["scores"]["aer"]["value"] for run in own])
            if "aer" in own[0]["test"]["scores"]
            else "–",
        )
        for name, own in by_name.items()
    ]
    head = ("model", "weights", "BLEU", "above 20 words", "exact %", "AER %")
    series = {
        name: _points(
            [
                {**group, "bleu": mean(float(_at(run, group["name"])) for run in own)}
                for group in own[0]["test"]["by_length"]
            ]
        )
        for name, own in by_name.items()
    }
    figure = curves.lines(series, x_label="words in the source", y_label="BLEU")
    picture.save(FOLDER / "phrasebook-lengths.svg", figure)
    tags = [
        (
            group["name"],
            group["count"],
            *(
                _mean([g["bleu"] for run in by_name[n] for g in _tag(run, group["name"])])
                for n in names
            ),
        )
        for group in runs[0]["test"]["by_tag"]
    ]
    seeds = len(by_name[names[0]])
    return "\n".join(
        [
            "# phrasebook, English → German",
            "",
            "The embedded data set: 20,000 training pairs, 1,000 held-out test pairs, laptop "
            f"recipes, 6 epochs, beam 4; mean of {seeds} seeds ± standard deviation. Two runs "
            "shared the two cores, one thread each. AER: each word of the right translation linked "
            "to the source word the model looks at most while writing it, against the gold "
            "alignment.",
            "",
            _table(head, rows),
            "",
            "A fixed context is far behind wherever a sentence is longer than a few words. The "
            "stacked LSTMs of sutskever2014 have hardly begun to learn in so short a training.",
            "",
            "![BLEU by source length](phrasebook-lengths.svg)",
            "",
            "## BLEU by phenomenon",
            "",
            _table(("phenomenon", "sentences", *names), tags),
            "",
            _samples([own[0] for own in by_name.values()], names, 8),
            "",
            _making(value),
            "",
        ]
    )


def _speed(machines: Runs) -> str:
    """Put the paces of all machines side by side."""
    names = [machine["runs"][0]["hardware"] for machine in machines]
    paces = [
        {run["recipe"]: run["tokens_per_second"] for run in machine["runs"]} for machine in machines
    ]
    rows = [
        (
            recipe,
            *(f"{pace[recipe]:,.0f}" for pace in paces),
            *(f"{MULTI30K_TOKENS * EPOCHS / pace[recipe] / 60:,.0f} min" for pace in paces),
        )
        for recipe in paces[0]
    ]
    head = ("recipe", *(f"tokens/s, {name}" for name in names))
    head += tuple(f"{EPOCHS} epochs, {name}" for name in names)
    making = [
        f"- `{machine['command']}`; {run['hardware']}, torch {run['torch']}, "
        f"commit {run['commit']}, seed {run['seed']}: [`{machine['experiment']}.json`]"
        f"({machine['experiment']}.json)"
        for machine in machines
        for run in machine["runs"][:1]
    ]
    return "\n".join(
        [
            "# What training on Multi30k takes",
            "",
            "Target tokens a second while training alone, bf16 matrix products, batches of 3,000 "
            f"positions; and what {EPOCHS} epochs of {MULTI30K_TOKENS:,} target tokens take at "
            "that pace, validation not counted.",
            "",
            _table(head, rows),
            "",
            "On the GPU a recurrent step is bound by launching kernels, not by arithmetic: of "
            "fourteen runs side by side ([multi30k.md](multi30k.md)) each is nearly as fast as "
            "one alone. Without attention, or without input feeding, a whole "
            "target runs through the fused kernels at once.",
            "",
            "## How it was made",
            "",
            *making,
            "",
        ]
    )


MULTI30K_TOKENS = 454_610
"""Target tokens of an epoch with the recipes' BPE of 8,000 pieces, end tokens included."""
EPOCHS = 30


def _tag(run: dict[str, Any], name: str) -> Runs:
    return [group for group in run["test"]["by_tag"] if group["name"] == name]


def _mean(values: Sequence[float]) -> str:
    middle = mean(values)
    if len(values) < 2:
        return f"{middle:.1f}"
    spread = (sum((value - middle) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{middle:.1f} ± {spread:.1f}"


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


def _cost(values: dict[Path, dict[str, Any]]) -> str:
    """Write one page from what was measured on each device."""
    measured = list(values.values())
    first = measured[0]
    picture.save(FOLDER / "cost.svg", _cost_figure(measured))
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
        _table(theory_head, theory),
        "",
        "![Time, memory and multiplications by length](cost.svg)",
        "",
        *(line for value in measured for line in _cost_measured(value)),
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
            f"{value['commit']}; every number: [`{path.name}`]({path.name})"
            for path, value in values.items()
        ),
        "",
    ]
    return "\n".join(parts)


def _cost_measured(value: dict[str, Any]) -> list[str]:
    layers: dict[str, Runs] = value["layers"]
    lengths = value["lengths"]
    head = ("n", *layers)
    times, peaks = (
        _table(
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


def _cost_figure(values: list[dict[str, Any]]) -> Figure:
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
                    colour = picture.COLOURS[number]
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


PAGES: dict[str, Callable[[dict[str, Any]], str]] = {
    "multi30k": _multi30k,
    "lengths-multi30k": _lengths("Multi30k"),
    "lengths-tatoeba": _lengths("Tatoeba"),
    "phrasebook": _phrasebook,
}


if __name__ == "__main__":
    main()
