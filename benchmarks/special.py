"""Components of single result pages."""

from collections import Counter
from statistics import mean

import numpy as np
from components import (
    Page,
    edit_of,
    first_runs,
    lines,
    other_file,
    plain,
    spread,
    table,
    values_of,
    with_interval,
)
from results import Row, read_results

from regard.plots.scatter import grouped, projections
from regard.studies.compression.jpeg import Rate, plot_rates, psnr_at

MIN_CORRECT = 90
"""Least percentage of correct outputs of a length that counts as solved."""


def accuracy_by_compute(page: Page, data: str) -> str:
    """Plot validation accuracy over the operations of training."""
    series: dict[str, list[tuple[float, float]]] = {}
    for run in first_runs(page.select(f"{data} *")):
        training = run["training"]
        # Forward and backward take three times the operations of a forward pass.
        per_step = 3 * run["flops"] * training["target_tokens"] / training["steps"]
        points = zip(run["curve"]["step"], run["curve"]["accuracy"], strict=True)
        name = run["name"].removeprefix(f"{data} ")
        series[name] = [(step * per_step, accuracy) for step, accuracy in points]
    x_label, y_label = "floating-point operations of training", "validation accuracy %"
    return lines(page, f"compute-{data}", series, x_label=x_label, y_label=y_label, log="x")


def confusions(page: Page, data: str) -> str:
    """Return the pairs of labels that are confused most often, by all models together."""
    counts: dict[str, Counter[str]] = {}
    for run in first_runs(page.select(f"{data} *")):
        found = counts[run["name"].removeprefix(f"{data} ")] = Counter()
        for target, predictions in run["test"]["confusion"].items():
            for label in predictions.keys() - {target}:
                found[" – ".join(sorted((target, label)))] += predictions[label]
    total = sum(counts.values(), Counter[str]())
    pairs = sorted(total, key=lambda pair: (-total[pair], pair))[:8]
    rows = [("*all*", *(f"{found.total():,}" for found in counts.values()))]
    rows += [(pair, *(str(found[pair]) for found in counts.values())) for pair in pairs]
    text = f"Errors on {run['test']['num_examples']:,} test images (seed {run['seed']}), and the"
    return f"{text} most confused labels:\n\n{table(('labels', *counts), rows)}"


def errors_by_epoch(page: Page) -> str:
    """Plot training and test errors of networks by epoch, in two plots."""
    titles = {"training_error": "training error %", "error": "test error %"}
    links = []
    for key, title in titles.items():
        series = {
            f"{run['name']} layers": [
                (epoch, error)
                for epoch, step, error in zip(
                    *(run["curve"][name] for name in ("epoch", "step", key)), strict=True
                )
                # An epoch in which training was stopped is left out.
                if step == epoch * run["curve"]["step"][0]
            ]
            for run in page.select()
        }
        name = key.replace("_", "-")
        links.append(lines(page, name, series, x_label="epoch", y_label=title))
    return "\n\n".join(links)


def latent_plane(page: Page, where: str) -> str:
    """Plot test images by two latents, beside two principal components of the pixels."""
    planes = page.select(where)[0]["planes"]
    titles = {"latents": "latents", "pca": "PCA of the pixels"}
    points = {title: np.array(planes[name]["points"]) for name, title in titles.items()}
    plot = projections(points, planes["labels"], notes=dict.fromkeys(points, ""))
    return page.save("plane", plot, "Test images in the plane")


def compression_plot(page: Page, shape: str) -> str:
    """Plot PSNR by bits per pixel of learned codes and of JPEG, and describe its smallest file."""
    (other,) = [one for one in page.value["jpeg"] if one["shape"] == shape]
    rates = [Rate(*one) for one in other["rates"]]
    runs = [run for run in page.select() if run["shape"] == shape]
    for run in runs:
        equal = psnr_at(rates, run["bits_per_pixel"])
        run["jpeg"] = "no file as small" if equal is None else f"{equal:.2f}"
    points = [(run["bits_per_pixel"], run["psnr"]["value"]) for run in runs]
    link = page.save(shape, plot_rates(rates, {"learned codes": points}), "PSNR by bits per pixel")
    least = rates[0]
    about = f"{least.bits_per_pixel:.3f} bits per pixel, {least.psnr:.2f} dB; {least.setting}"
    return f"{link}\n\nThe smallest JPEG sheet has {least.num_bytes:,} bytes ({about})."


def unseen_speakers(page: Page, file: str) -> str:
    """Return the error rate of each speaker with models trained with and without the speaker."""
    held_out = {run["name"].split()[-1]: run for run in read_results(page.folder / file)["runs"]}
    known = page.select("chan2016-laptop, attention and CTC")[0]["test"]["by_tag"]
    rates = {group["name"]: group["wer"] for group in known}
    rows = [(name, f"{rates[name]:.1f}", spread([run], "wer")) for name, run in held_out.items()]
    means = mean(rates[name] for name in held_out), mean(values_of([*held_out.values()], "wer"))
    rows.append(("*mean*", *(f"{value:.1f}" for value in means)))
    return f"{table(('speaker', 'in training', 'held out'), rows)}\n\n{other_file(page, file)}"


def wrong_transcripts(page: Page) -> str:
    """Return the most frequent word errors and the first wrong transcripts of some runs."""
    parts = []
    for run in page.select():
        edits = run["test"].get("edits", [])[:5]
        if run.get("wrong") and edits:
            listed = ", ".join(f"{edit_of(edit)} ({edit['count']})" for edit in edits)
            rows = [[plain(text) for text in row] for row in run["wrong"]]
            parts += [f"`{run['recipe']}`, seed {run['seed']}: {listed}. First wrong transcripts:"]
            parts += [table(("speaker", "target", "output"), rows)]
    return "\n\n".join(parts)


def long_recordings(page: Page) -> str:
    """Return the errors in one long recording by the length of its chunks, and the memory."""
    cells: dict[str, dict[str, str]] = {}
    for row in page.value["chunks"]:
        text = f"{row['wer']:.1f} (+{row['inserted']} −{row['deleted']})"
        column = f"pauses {row['pause']:g} s, chunks ≤ {row['chunk']} s"
        cells.setdefault(row["run"], {})[column] = text
    errors = [(name, *found.values()) for name, found in cells.items()]
    rows = page.value["memory"]
    memory = [(row["minutes"], f"{row['mib']:,}", f"{row['seconds']:.0f}") for row in rows]
    parts = [
        table(("model", *next(iter(cells.values()))), errors),
        "Peak memory of the whole command on a CPU, torch included, by length of the recording:",
        table(("minutes of audio", "peak memory, MiB", "seconds"), memory),
    ]
    return "\n\n".join(parts)


def sampled_sentences(page: Page) -> str:
    """Return sentences decoded from samples of the prior."""
    parts = []
    for run in page.select():
        listed = [f"- {plain(sentence)}" for sentence in run.get("sampled", [])]
        parts += [f"With {run['dim']} latents:", "\n".join(listed)] if listed else []
    return "\n\n".join(parts)


def interpolations(page: Page) -> str:
    """Return decoded interpolations between test sentences, for the widest latents."""
    parts = []
    for name in dict.fromkeys(run["name"].rpartition(" ")[0] for run in page.select()):
        run = max(page.select(f"{name} *"), key=lambda run: int(run["dim"]))
        parts.append(f"### {name}, {run['dim']} latents")
        for first, *between, last in run["interpolations"]:
            parts.append(f"*{plain(first)}* … *{plain(last)}*")
            parts.append("\n".join(f"- {plain(one)}" for one in dict.fromkeys(between)))
    return "\n\n".join(parts)


def generated_texts(page: Page, where: str) -> str:
    """Return generated texts as they are."""
    runs = page.select(where)
    return "\n\n".join(f"*{run['name']}*\n\n```text\n{run['text']}\n```" for run in runs)


def paraphrase_plot(page: Page, *names: str) -> str:
    """Plot groups of paraphrases on their first two principal components."""
    plotted = page.value["plotted"]
    groups = list(dict.fromkeys(one["group"] for one in plotted))
    panels = {
        f"{run['name']} · {100 * run['variance']:.0f} %": [(x, y) for x, y in run["points"]]
        for run in page.select("|".join(names))
    }
    numbers = [groups.index(one["group"]) for one in plotted]
    plot = grouped(panels, [one["text"] for one in plotted], groups=numbers)
    return page.save("", plot, "Paraphrases on two principal components")


def nearest_sentences(page: Page) -> str:
    """Return the nearest sentence of the first queries, by each model."""
    found = {run["name"]: run["nearest"] for run in page.select()}
    found["bag of words"] = page.value["nearest"]
    parts = []
    for number, query in enumerate(page.value["queries"]):
        parts.append(f"{number + 1}. {plain(query['text'])} (*{plain(query['group'])}*)")
        for name, rows in found.items():
            mark = "✓" if rows[number]["is_right"] else "✗"
            parts.append(f"   - {name}: {mark} {plain(rows[number]['text'])}")
    return "\n".join(parts)


def generalisation(page: Page, kind: str) -> str:
    """Plot accuracy by length for models or kinds of positions; list it inside and outside."""
    parts = []
    means: dict[str, list[tuple[float, float]]] = {}
    for problem, about in page.plan.prepare["length_generalisation"].items():
        low, high = about["trained"]
        runs = first_runs(page.select(f"{kind} {problem} *"))
        series = {run["name"].split(maxsplit=2)[2]: _by_length(run) for run in runs}
        rows = []
        for model, points in series.items():
            shorter = [y for x, y in points if x < low]
            inside = mean(y for x, y in points if low <= x <= high)
            longer = mean(y for x, y in points if x > high)
            means.setdefault(model, []).append((inside, longer))
            first = f"{shorter[0]:.0f}" if shorter else "–"
            last = _last_correct(points, low) or "–"
            rows.append((model, first, f"{inside:.1f}", f"{longer:.1f}", last))
        if rows:
            head = (problem, "shorter", f"trained ({low}–{high})", "longer", "correct up to")
            parts += [table(head, rows)]
            x_label, y_label = f"{problem}: {about['unit']}", "correct outputs, %"
            name, shaded = f"{kind}-{problem}", ("trained", low, high)
            parts += [lines(page, name, series, x_label=x_label, y_label=y_label, shaded=shaded)]
    found = {model: map(mean, zip(*pairs, strict=True)) for model, pairs in means.items()}
    overall = [(model, *(f"{value:.1f}" for value in values)) for model, values in found.items()]
    return "\n\n".join([table(("mean of all problems", "trained", "longer"), overall), *parts])


def _by_length(run: Row) -> list[tuple[int, float]]:
    """Return accuracy by length, without lengths of few examples."""
    groups = [group for group in run["test"]["by_tag"] if group["count"] >= 20]
    return sorted((int(group["name"]), group["accuracy"]) for group in groups)


def _last_correct(points: list[tuple[int, float]], low: int) -> int:
    """Return the length up to which most outputs of every tested length are correct."""
    wrong = min((x for x, y in points if x >= low and y < MIN_CORRECT), default=points[-1][0] + 1)
    return max((x for x, _ in points if low <= x < wrong), default=0)


COSTS = {"seconds": ("milliseconds", 1e3), "peak_bytes": ("MiB of memory", 2**-20)}
"""Units of measured costs, with the factor to get them."""


def _costs(page: Page, name: str, points: dict[str, list[Row]], *, digits: int) -> str:
    """Plot and list time and memory by length."""
    parts = []
    for key, (unit, factor) in COSTS.items():
        series = {n: [(p["length"], factor * p[key]) for p in ps] for n, ps in points.items()}
        file = f"{name.partition(' ')[0]}-{key.partition('_')[0]}"
        labels = {"x_label": "positions", "y_label": f"{name}: {unit}"}
        parts.append(lines(page, file, series, **labels, log="xy", digits=digits))
    return "\n\n".join(parts)


def layer_costs(page: Page) -> str:
    """Return time and memory of layers by length, for each device."""
    return "\n\n".join(
        f"## {value['hardware']}\n\n{_costs(page, file[5:-5], value['layers'], digits=1)}"
        for file, value in page.value.items()
    )


def long_sources(page: Page) -> str:
    """Return time and memory of whole models by source length."""
    parts = []
    for step, title in (("train", "training step"), ("search", "search")):
        points = {
            model: [{"length": point["length"], **point[step]} for point in about["points"]]
            for model, about in page.value["models"].items()
        }
        parts.append(_costs(page, title, points, digits=0))
    return "\n\n".join(parts)


TRIAL_COLUMNS = (
    "data", "pairs", "model", "width", "layers", "vocabulary", "batch", "optimizer",
    "learning_rate", "dropout", "label_smoothing", "steps", "epochs", "parameters", "loss", "bleu",
)  # fmt: skip


def trials_by_size(page: Page, file: str) -> str:
    """Return the best score of each laptop-sized model by data set and number of pairs."""
    best: dict[tuple[str, int], dict[str, Row]] = {}
    for row in _trials(page, file):
        if row["pairs"] >= 5_000 and row["model"] not in ("modern-small", "bahdanau2015"):
            models = best.setdefault((row["data"], row["pairs"]), {})
            models.setdefault(row["model"], row)
            models[row["model"]] = max(models[row["model"]], row, key=lambda one: one["bleu"])
    names = sorted({name for models in best.values() for name in models}, reverse=True)
    rows = [
        (data, f"{pairs:,}", *(f"{models[name]['bleu']:.1f}" for name in names))
        for (data, pairs), models in sorted(best.items())
    ]
    return table(("data", "pairs", *names), rows)


def step_times(page: Page, file: str) -> str:
    """Return the measured time of a training step."""
    times = dict(read_results(page.folder / file)["milliseconds_per_step"])
    machine = f"{times.pop('hardware')}, commit {times.pop('commit')}"
    listed = "; ".join(f"{name}: {value}" for name, value in times.items())
    return f"Milliseconds per step ({machine}): {listed}."


def all_trials(page: Page, file: str) -> str:
    """Return the settings and scores of all trials, the best ones of each data set first."""
    rows = sorted(_trials(page, file), key=lambda row: (row["data"], -row["pairs"], -row["bleu"]))
    cells = [[_trial_cell(row[name]) for name in TRIAL_COLUMNS] for row in rows]
    return table([name.replace("_", " ") for name in TRIAL_COLUMNS], cells)


def _trials(page: Page, file: str) -> list[Row]:
    columns = read_results(page.folder / file)["trials"]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _trial_cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value}"


def vector_variants(page: Page, where: str) -> str:
    """Return the retrieval accuracy of poolings and transforms on both held-out parts."""
    rows = []
    for run in page.select(where):
        variants = run["variants"]
        for pooling, transforms in variants["valid"].items():
            for name in transforms:
                found = [variants[side][pooling][name] for side in ("valid", "test")]
                cells = [with_interval(one["all"]["accuracy"]) for one in found]
                cells.append(with_interval(found[1]["other_words"]["accuracy"]))
                rows.append((run["name"], pooling, name, *cells))
    head = ("vectors", "pooling", "transform", "validation", "test", "test, other words")
    return table(head, rows)


def single_changes(page: Page, file: str) -> str:
    """Return the validation scores of single changes of recipes, with updates and CPU time."""
    parts = []
    value = read_results(page.folder / file)
    for model in dict.fromkeys(run["recipe"].removesuffix("-laptop") for run in value["runs"]):
        runs = [run for run in value["runs"] if run["name"].startswith(f"{model} ")]
        rows = [
            (
                run["name"].removeprefix(f"{model} "),
                f"{run['training']['steps']:,}",
                f"{run['training']['seconds']:.0f}",
                f"{run['curve']['loss'][-1]:.2f}",
                f"{run['best']:.1f}",
            )
            for run in runs
        ]
        parts.append(table((model, "updates", "seconds", "loss", "BLEU"), rows))
    return "\n\n".join([*parts, other_file(page, file)])


COMPONENTS = (
    accuracy_by_compute, confusions, errors_by_epoch, latent_plane, compression_plot,
    unseen_speakers, wrong_transcripts, long_recordings, sampled_sentences, interpolations,
    generated_texts, paraphrase_plot, nearest_sentences, generalisation, layer_costs, long_sources,
    trials_by_size, step_times, all_trials, vector_variants, single_changes,
)  # fmt: skip
"""Functions that pages of single experiments call."""
