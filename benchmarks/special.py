"""Components of single result pages."""

from collections import Counter
from itertools import pairwise
from statistics import mean

import numpy as np
from components import (
    MIN_COUNT,
    Page,
    Runs,
    at_length,
    by_name,
    component,
    first_runs,
    machine,
    mean_and_std,
    plain,
    scores,
    spread,
    table,
    values_of,
)
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, StrMethodFormatter
from results import Row, read_results

from regard.plots import curves, heatmap
from regard.plots.figure import COLORS, style
from regard.plots.scatter import grouped, projections
from regard.studies.compression.jpeg import Rate, plot_rates, psnr_at

_BLUE, _ORANGE, _GREEN, _PURPLE, _, _GREY = COLORS
STYLES = {
    "sutskever2014": (_GREY, "-", "o"),
    "cho2014": (_GREY, "--", "s"),
    "bahdanau2015": (_ORANGE, "-", "o"),
    "luong2015": (_ORANGE, "--", "s"),
    "gehring2017": (_GREEN, "-", "o"),
    "vaswani2017-small": (_BLUE, "-", "o"),
    "vaswani2017-tiny": (_BLUE, "--", "s"),
    "modern-small": (_PURPLE, "-", "o"),
}
"""Colour, dash and marker of each model of the ladder; a colour is a family of models."""


@component
def ladder_summary(page: Page) -> str:
    """Return the best model and the largest difference between neighbouring rows."""
    values = {run["name"]: run["test"]["scores"]["bleu"]["value"] for run in page.select()}
    best = max(values, key=lambda name: values[name])
    steps = {(low, high): values[high] - values[low] for low, high in pairwise(values)}
    low, high = max(steps, key=lambda pair: steps[pair])
    return (
        f"{best} is the best with {values[best]:.1f} BLEU; the largest difference from one row to "
        f"the next, {steps[low, high]:+.1f}, is the one from {low} to {high}."
    )


@component
def ladder_plot(page: Page, kind: str, x_label: str, *, y_label: str) -> str:
    """Plot one line per model, named in the order of their last values."""
    series = {}
    for run in page.select():
        if kind == "curves":
            minutes = [second / 60 for second in run["curve"]["seconds"]]
            series[run["name"]] = list(zip(minutes, run["curve"]["bleu"], strict=True))
        else:
            groups = run["comparison"][{"lengths": "by_length", "positions": "by_position"}[kind]]
            series[run["name"]] = [(x, y) for x, y, count in groups if count >= MIN_COUNT]
    with style():
        plot = Figure(figsize=(7.2, 4.2))
        axes = plot.add_subplot()
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.grid(axis="y")
        for name in sorted(series, key=lambda name: series[name][-1][1], reverse=True):
            colour, dash, marker = STYLES[name]
            xs, ys = zip(*series[name], strict=True)
            shape = marker if len(xs) <= 20 else None
            axes.plot(xs, ys, dash, color=colour, marker=shape, ms=4, lw=1.6, label=name)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3.2)
    return page.save(kind, plot, f"{y_label} by {x_label}")


@component
def length_table(page: Page) -> str:
    """Return BLEU by source length, and what became of the paper's two claims."""
    runs = page.select()
    groups = [group for group in runs[0]["test"]["by_length"] if group["count"] >= MIN_COUNT]
    rows = [
        (group["name"], group["count"], *(f"{at_length(run, group['name']):.1f}" for run in runs))
        for group in groups
    ]
    named = {run["name"]: run for run in runs}
    attention, fixed = named["RNNsearch-30"], named["RNNencdec-50"]
    ahead = sum(at_length(attention, g["name"]) > at_length(fixed, g["name"]) for g in groups)
    changes = ", that of ".join(
        f"{name} goes from {at_length(run, '16–20'):.1f} to {at_length(run, '46–50'):.1f}"
        for name, run in named.items()
        if name.endswith("-50")
    )
    claims = f"RNNsearch-30 is ahead of RNNencdec-50 in {ahead} of {len(groups)} groups."
    claims += f" From 16–20 to 46–50 words, BLEU changes: that of {changes}."
    found = table(("source words", "sentences", *(run["name"] for run in runs)), rows)
    return f"{found}\n\n{claims}"


@component
def tag_table(
    page: Page, metric: str, title: str, *, where: str = "*", strip: bool = False,
    has_counts: bool = True, tags: dict[str, list[str]] | None = None,
) -> str:  # fmt: skip
    """Return a score by tag, the mean over the seeds of each model."""
    groups = by_name(page.select(where))
    groups = {name.split()[-1]: runs[:1] for name, runs in groups.items()} if strip else groups
    found = {
        name: [{one["name"]: one for one in run["test"]["by_tag"]} for run in runs]
        for name, runs in groups.items()
    }
    first = next(iter(found.values()))[0]
    listed = [(f"{g}: {tag}", tag) for g, names in tags.items() for tag in names] if tags else None
    rows = [
        (
            shown,
            *([f"{first[tag]['count']:,}"] if has_counts else []),
            *(mean_and_std([one[tag][metric] for one in several]) for several in found.values()),
        )
        for shown, tag in listed or [(tag, tag) for tag in first]
        if all(tag in one for several in found.values() for one in several)
    ]
    counts = ["examples"] if has_counts else []
    return table((title, *counts, *found), rows)


@component
def task_bars(page: Page) -> str:
    """Return the number of solved tasks, and plot the accuracy of each as the mean of all runs."""
    found: dict[str, list[float]] = {}
    for run in page.select():
        for group in run["test"]["by_tag"]:
            found.setdefault(group["name"], []).append(group["accuracy"])
    means = {name: mean(values) for name, values in sorted(found.items())}
    link = page.save("tasks", curves.bars(means, x_label="correct %"), "Accuracy by task")
    solved = sum(value >= 95 for value in means.values())
    text = (
        f"{solved} of {len(means)} are solved; the mean over tasks is {mean(means.values()):.1f} %."
    )
    return f"{text}\n\n{link}"


@component
def image_differences(page: Page) -> str:
    """Return how much better translations are with the right image."""
    found: Runs = page.value["differences"]
    ordered = [one for one in found if one["seeds"] != "all"]
    overall = [one for one in found if one["seeds"] == "all"]
    rows, claims = [], []
    for one in [*ordered, *overall]:
        name = f"{one['baseline']}, seed {one['seeds']}"
        is_all = one["seeds"] == "all"
        cells, words = [f"**{one['baseline']}, all seeds**" if is_all else name], []
        for difference in one["differences"].values():
            low, high = difference["interval"]
            p = difference["p_value"]
            cells.append(f"{difference['value']:+.2f} [{low:+.2f}, {high:+.2f}], p = {p:.3f}")
            verdict = (
                "better" if low > 0 else "worse" if high < 0 else "not significantly different"
            )
            words.append(f"{verdict} by {difference['name']}")
        rows.append(cells)
        if is_all:
            text = f"- With the right image, compared with {one['baseline']}, over all seeds: "
            claims.append(f"{text}{', '.join(words)}.")
    names = [difference["name"] for difference in found[0]["differences"].values()]
    signature = next(iter(found[0]["differences"].values()))["signature"]
    head = table(("baseline", *names), rows)
    return "\n".join([head, "", *claims, "", f"`{signature}`"])


@component
def accuracy_by_compute(page: Page, data: str) -> str:
    """Plot validation accuracy over the operations of training."""
    series = {}
    for run in page.select(f"{data} *"):
        training = run["training"]
        # Forward and backward take three times the operations of a forward pass.
        per_step = 3 * run["flops"] * training["target_tokens"] / training["steps"]
        points = zip(run["curve"]["step"], run["curve"]["accuracy"], strict=True)
        series.setdefault(
            run["name"].removeprefix(f"{data} "), [(s * per_step, y) for s, y in points]
        )
    x_label, y_label = "floating-point operations of training", "validation accuracy %"
    plot = curves.scaling(series, x_label=x_label, y_label=y_label)
    return page.save(f"compute-{data}", plot, "Validation accuracy by compute")


@component
def confusions(page: Page, data: str) -> str:
    """Return the pairs of labels that are confused most often, by all models together."""
    counts: dict[str, Counter[str]] = {}
    runs = first_runs(page.select(f"{data} *"))
    for run in runs:
        found = counts.setdefault(run["name"].removeprefix(f"{data} "), Counter())
        for target, predictions in run["test"]["confusion"].items():
            for label, count in predictions.items():
                if label != target:
                    found[" – ".join(sorted((target, label)))] += count
    total = sum(counts.values(), Counter[str]())
    rows = [(pair, *(found[pair] for found in counts.values())) for pair, _ in total.most_common(8)]
    sums = ", ".join(f"{name} {found.total():,}" for name, found in counts.items())
    number = runs[0]["test"]["num_examples"]
    text = (
        f"Errors on {number:,} test images (seed {runs[0]['seed']}): {sums}. Most confused labels:"
    )
    return f"{text}\n\n{table(('labels', *counts), rows)}"


@component
def code_sizes(page: Page, where: str) -> str:
    """Plot the error of autoencoders beside that of PCA by the number of latents."""
    runs = page.select(where)
    series = {
        "autoencoder": [(run["code"], *values_of([run], "mse")) for run in runs],
        "PCA": [(run["code"], run["pca"]["value"]) for run in runs],
    }
    plot = curves.scaling(series, x_label="latent dimensions", y_label="mean squared error")
    axes = plot.axes[0]
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    return page.save("sizes", plot, "Error by latent dimensions")


@component
def latent_plane(page: Page, where: str) -> str:
    """Plot test images by two latents, beside two principal components of the pixels."""
    found = page.select(where)[0]["planes"]
    titles = {"latents": "latents", "pca": "PCA of the pixels"}
    points = {
        titles[name]: np.array(plane["points"]) for name, plane in found.items() if name in titles
    }
    notes = {
        titles[name]: f"15 neighbours {plane['accuracy']['value']:.1f} %, "
        f"MSE {plane['error']['value']:.4f}"
        for name, plane in found.items()
        if name in titles
    }
    plot = projections(points, found["labels"], notes=notes)
    return page.save("plane", plot, "Test images in the plane")


@component
def restoration(page: Page, where: str) -> str:
    """Return the errors of outputs beside those of a baseline, with sheets of images."""
    columns = ("data=@data", "baseline=@baseline", "its MSE=source_mse", "MSE=mse")
    columns += ("its PSNR=source_psnr", "PSNR in dB=psnr", "SSIM=ssim")
    parts = []
    for run in page.select(where):
        name = run["test"]["scores"]["source_psnr"]["name"]
        run["baseline"] = name.partition("(")[2].rstrip(")")
        file = f"{page.plan.name}-{run['name'].replace(' ', '-')}.png"
        if (page.folder / file).exists():
            parts += [f"### {run['name'].capitalize()}", f"![{run['name']}]({file})"]
    return "\n\n".join([scores(page, *columns, where=where), *parts])


@component
def anomaly_plot(page: Page, group: str) -> str:
    """Plot errors of normal and anomalous images and ROC curves, for the best code size."""
    runs = page.select(f"{group} *")
    best = max(runs, key=lambda run: float(run["anomalies"]["autoencoder"]["auc"]["value"]))
    found = best["anomalies"]
    plotted = found["plotted"]
    names = {"autoencoder": "autoencoder", "pca": f"PCA, {found['num_components']} components"}
    plot = curves.detection(
        {name: plotted["autoencoder"][name] for name in ("normal", "anomalous")},
        {
            f"{name}: {found[key]['auc']['value']:.3f}": [
                *zip(plotted[key]["false_alarms"], plotted[key]["detected"], strict=True)
            ]
            for key, name in names.items()
        },
        x_label="squared error",
        threshold=found["autoencoder"]["threshold"],
    )
    link = page.save(group, plot, "Errors of normal and anomalous images, and ROC curves")
    return f"With {found['width']} latents:\n\n{link}"


@component
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
    return (
        f"{link}\n\nThe smallest JPEG sheet has {least.num_bytes:,} bytes "
        f"({least.bits_per_pixel:.3f} bits per pixel, {least.psnr:.2f} dB; {least.setting})."
    )


@component
def unseen_speakers(page: Page, file: str) -> str:
    """Return the error rate of each speaker with models trained with and without the speaker."""
    value = read_results(page.folder / file)
    recipe = value["runs"][0]["recipe"]
    known = [run for run in page.select(f"{recipe}, attention and CTC")][:1]
    rates = {group["name"]: group["wer"] for run in known for group in run["test"]["by_tag"]}
    held_out = {run["name"].split()[-1]: run for run in value["runs"]}
    rows = [(n, f"{rates[n]:.1f}", spread([run], "wer")) for n, run in held_out.items()]
    means = [mean(rates[n] for n in held_out), mean(values_of(list(held_out.values()), "wer"))]
    rows.append(("*mean*", *(f"{found:.1f}" for found in means)))
    listed = table(("speaker", "in training", "held out"), rows)
    return f"{listed}\n\n`{value['command']}`; result file: [`{file}`]({file})"


@component
def wrong_transcripts(page: Page) -> str:
    """Return the most frequent word errors and the first wrong transcripts of some runs."""
    parts = []
    for run in page.select():
        edits = run["test"].get("edits", [])[:5]
        if run.get("wrong") and edits:
            listed = ", ".join(
                f"{one['right'] or '∅'} → {one['written'] or '∅'} ({one['count']})" for one in edits
            )
            name = f"`{run['recipe']}`, attention and CTC, seed {run['seed']}"
            rows = [[plain(text) for text in row] for row in run["wrong"]]
            parts += [f"{name}: {listed}. First wrong transcripts of the test set:"]
            parts += [table(("speaker", "target", "output"), rows)]
    return "\n\n".join(parts)


@component
def alignment_plots(page: Page) -> str:
    """Return the saved spectrograms with alignments."""
    return "\n\n".join(
        f"![{run['recipe']}: {output}; target: {target}]"
        f"({page.plan.name}-{run['recipe']}-{number}.png)"
        for run in page.select()
        for number, (target, output) in enumerate(run.get("alignments", []), start=1)
    )


@component
def long_recordings(page: Page) -> str:
    """Return the errors in one long recording by the length of its chunks, and the memory."""
    found: Runs = page.value["chunks"]
    columns = list(dict.fromkeys((row["pause"], row["chunk"]) for row in found))
    cells: dict[str, list[str]] = {}
    for row in found:
        text = f"{row['wer']:.1f} (+{row['inserted']} −{row['deleted']})"
        cells.setdefault(row["run"], []).append(text)
    head = ("model", *(f"pauses {pause:g} s, chunks ≤ {chunk} s" for pause, chunk in columns))
    memory: Runs = page.value["memory"]
    lines = [(row["minutes"], f"{row['mib']:,}", f"{row['seconds']:.0f}") for row in memory]
    growth = memory[-1]["mib"] / memory[0]["mib"]
    longer = memory[-1]["minutes"] / memory[0]["minutes"]
    text = "Peak memory of the whole command on a CPU, torch included, by the length of the "
    text += f"recording: {growth:.2f} times as much for {longer:g} times the length."
    sizes = table(("minutes of audio", "peak memory, MiB", "seconds"), lines)
    rows = [(name, *texts) for name, texts in cells.items()]
    return f"{table(head, rows)}\n\n{text}\n\n{sizes}"


@component
def frame_attention(page: Page, where: str) -> str:
    """Plot the mean attention of each word over frames, and return the saved films."""
    parts = []
    for run in page.select(where):
        if not run.get("by_frame"):
            continue
        weights = np.array(list(run["by_frame"].values()))
        frames = [f"frame {number}" for number in range(1, weights.shape[1] + 1)]
        plot = str(heatmap.svg(weights, list(run["by_frame"]), frames))
        link = page.save(f"frames-{run['recipe']}", plot, "Attention of words over frames")
        text = f"Mean attention of each word over the frames of test videos (`{run['recipe']}`, "
        parts += [f"{text}seed {run['seed']}; a row sums to 1):", link]
    for run in page.select(where):
        for number, (target, output) in enumerate(run.get("videos", []), start=1):
            file = f"{page.plan.name}-{run['recipe']}-{number}.png"
            parts += [f"`{run['recipe']}`, test video {number}. Target: *{target}*."]
            parts += [f"![{output}]({file})"]
    return "\n\n".join(parts)


@component
def frame_order(page: Page) -> str:
    """Return the accuracy of directions on changed videos."""
    shown = [run for run in page.select() if "views" in run]
    rows = [(name, *(f"{run['views'][name]:.1f}" for run in shown)) for name in shown[0]["views"]]
    text = f"Accuracy in percent on {shown[0]['num_views']} test videos without hits and bounces, "
    text += "which start in the opposite direction when played backwards:"
    return f"{text}\n\n{table(('frames', *(run['recipe'] for run in shown)), rows)}"


@component
def question_plots(page: Page, where: str) -> str:
    """Return the saved sheets of questions with their attribution."""
    return "\n\n".join(
        f"The first test question of each kind about an image of its own ({run['recipe']}, seed "
        f"{run['seed']}): the image with the question, and the weight of each cell for the answer "
        f"({run['attribution']}). Below it stands the word of the question with the highest weight."
        f"\n\n![Weights of image cells](visual-questions-{run['recipe']}.png)"
        for run in page.select(where)
        if run.get("attribution")
    )


@component
def sampled_sentences(page: Page) -> str:
    """Return sentences decoded from samples of the prior."""
    parts = []
    for run in page.select():
        lines = [f"- {plain(sentence)}" for sentence in run.get("sampled", [])]
        parts += [f"With {run['dim']} latents:", "\n".join(lines)] if lines else []
    return "\n\n".join(parts)


@component
def interpolations(page: Page) -> str:
    """Return decoded interpolations between test sentences, for the widest latents."""
    parts = []
    for name in dict.fromkeys(run["name"].rpartition(" ")[0] for run in page.select()):
        run = max(page.select(f"{name} *"), key=lambda run: int(run["dim"]))
        parts.append(f"### {name}, {run['dim']} latents")
        for first, *between, last in run["interpolations"]:
            pairs = zip(between, [None, *between], strict=False)
            lines = [f"- {plain(one)}" for one, before in pairs if one != before]
            parts += [f"*{plain(first)}* … *{plain(last)}*", "\n".join(lines)]
    return "\n\n".join(parts)


@component
def generated_texts(page: Page, where: str) -> str:
    """Return generated texts as they are."""
    return "\n\n".join(
        f"*{run['name']}*\n\n```text\n{run['text']}\n```" for run in page.select(where)
    )


@component
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


@component
def nearest_sentences(page: Page) -> str:
    """Return the nearest sentence of the first queries, by each model."""
    found = {run["name"]: run["nearest"] for run in page.select()}
    found["bag of words"] = page.value["nearest"]
    lines = []
    for number, one in enumerate(page.value["queries"]):
        lines.append(f"{number + 1}. {plain(one['text'])} (*{plain(one['group'])}*)")
        for name, rows in found.items():
            mark = "✓" if rows[number]["is_right"] else "✗"
            lines.append(f"   - {name}: {mark} {plain(rows[number]['text'])}")
    return "\n".join(lines)


def curve_of(runs: Runs) -> list[tuple[int, float]]:
    """Return the mean accuracy over seeds by length, without lengths of few examples."""
    own = [sorted(run["test"]["by_tag"], key=lambda one: int(one["name"])) for run in runs]
    return [
        (int(several[0]["name"]), mean(one["accuracy"] for one in several))
        for several in zip(*own, strict=True)
        if several[0]["count"] >= MIN_COUNT
    ]


@component
def generalisation(page: Page, kind: str) -> str:
    """Return accuracy on trained and on longer lengths for models or kinds of positions."""
    problems: dict[str, Row] = page.plan.prepare["length_generalisation"]
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name, runs in by_name(page.select(f"{kind} *")).items():
        _, problem, model = name.split(maxsplit=2)
        found.setdefault(problem, {})[model] = curve_of(runs)
    found = {problem: found[problem] for problem in problems if problem in found}
    means: dict[str, list[tuple[float, float]]] = {}
    reached, shorter, plots = [], [], []
    for problem, models in found.items():
        low, high = problems[problem]["trained"]
        for model, curve in models.items():
            inside = mean(y for x, y in curve if low <= x <= high)
            means.setdefault(model, []).append((inside, mean(y for x, y in curve if x > high)))
        last = {model: _last_correct(curve, low) for model, curve in models.items()}
        best = max(last.values())
        names = [model for model in last if best and last[model] == best]
        who = "all" if len(names) == len(models) > 1 else ", ".join(names)
        tested = problems[problem]["tested"]
        reached.append((problem, f"{low}–{high}", tested[-1], best or "–", who or "none"))
        short = {model: curve[0] for model, curve in models.items() if curve[0][0] < low}
        if short:
            ranked = sorted(short, key=lambda model: -short[model][1])
            shares = ", ".join(f"{model} {short[model][1]:.0f} %" for model in ranked)
            length = next(iter(short.values()))[0]
            shorter.append(f"{problem} of {length} {problems[problem]['unit']}: {shares}")
        plot = curves.lines(
            models,
            x_label=f"{problem}: {problems[problem]['unit']}",
            y_label="correct outputs, %",
            shaded=("trained", low, high),
        )
        plot.axes[0].set_ylim(-3, 103)
        plots.append(page.save(f"{kind}-{problem}", plot, f"{problem}: accuracy by length"))
    rows = [
        (model, *(f"{a:.1f} / {b:.1f}" for a, b in pairs),
         f"{mean(a for a, _ in pairs):.1f} / {mean(b for _, b in pairs):.1f}")
        for model, pairs in means.items()
    ]  # fmt: skip
    head = ("problem", "trained", "tested up to", "correct up to", "by")
    return "\n\n".join(
        [
            table(("", *found, "mean"), rows),
            "Mean accuracy in percent over trained lengths / over longer ones.",
            "Greatest length up to which at least 90 % of the outputs are correct at every tested "
            "length, and the models that reach it:",
            table(head, reached),
            *([f"Shorter than in training, {'; '.join(shorter)}."] if shorter else []),
            *plots,
        ]
    )


def _last_correct(curve: list[tuple[int, float]], low: int) -> int:
    last = 0
    for length, accuracy in curve:
        if length >= low and accuracy < 90:
            break
        last = length if length >= low else last
    return last


@component
def generalisation_training(page: Page) -> str:
    """Return steps and seconds of training."""
    seconds = [run["training"]["seconds"] for run in page.select()]
    steps = " or ".join(f"{n:,}" for n in sorted({r["training"]["steps"] for r in page.select()}))
    return f"{steps} steps of 64 pairs ({min(seconds):.0f}–{max(seconds):.0f} s)"


@component
def training_speeds(page: Page, tokens: int, epochs: int) -> str:
    """Return tokens per second and the time of a full training for each machine."""
    machines = list(page.value.values())
    names = [one["runs"][0]["hardware"] for one in machines]
    found = [{run["recipe"]: run["tokens_per_second"] for run in one["runs"]} for one in machines]
    rows = [
        (
            recipe,
            *(f"{speed[recipe]:,.0f}" for speed in found),
            *(f"{tokens * epochs / speed[recipe] / 60:,.0f} min" for speed in found),
        )
        for recipe in found[0]
    ]
    head = (*(f"tokens/s, {name}" for name in names), *(f"{epochs} epochs, {n}" for n in names))
    return table(("recipe", *head), rows)


@component
def machines(page: Page) -> str:
    """Return command, machine and result file of each measurement."""
    return "\n".join(
        f"{machine(page, {**one, **(one['runs'] or [{}])[0]})}: [`{name}`]({name})"
        for name, one in page.value.items()
    )


Panels = dict[str, dict[str, list[float]]]
"""Values by length, by the title of a panel and the name of a line."""


def _plot_panels(rows: list[Panels], lengths: list[int], *, size: tuple[float, float]) -> Figure:
    """Plot rows of panels with logarithmic axes and one legend."""
    with style():
        plot = Figure(figsize=size, layout="constrained")
        grid = plot.subplots(len(rows), len(rows[0]), squeeze=False)
        for axes, (title, lines) in zip(
            grid.flat, [pair for row in rows for pair in row.items()], strict=True
        ):
            for number, (name, values) in enumerate(lines.items()):
                # Some lines of the layers coincide: dashes keep the one below visible.
                dash = "--" if number % 2 and len(lines) == 4 else "-"
                axes.plot(lengths, values, dash, color=COLORS[number], marker="o", ms=4, label=name)
            axes.set(xscale="log", yscale="log", xlabel="positions n")
            axes.set_title(title, loc="left", fontsize=11)
            axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
            axes.minorticks_off()
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if len(lines) > 4 else (1,)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axes.grid()
        handles, names = grid.flat[0].get_legend_handles_labels()
        plot.legend(handles, names, loc="outside upper left", ncols=len(names))
    return plot


def _by_length(lengths: list[int], lines: dict[str, list[float]], form: str) -> str:
    rows = [(f"{n:,}", *(f"{v[i]:{form}}" for v in lines.values())) for i, n in enumerate(lengths)]
    return table(("n", *lines), rows)


@component
def layer_costs(page: Page) -> str:
    """Return time, memory and multiplications of layers by length, for each device."""
    rows: list[Panels] = []
    parts = []
    for value in page.value.values():
        layers, lengths, d = value["layers"], value["lengths"], value["dim"]
        linear = {"GRU": 6 * d**2, "convolution": 2 * value["kernel"] * d**2}
        time = {name: [1e3 * p["seconds"] for p in points] for name, points in layers.items()}
        memory = {name: [p["peak_bytes"] / 2**20 for p in ps] for name, ps in layers.items()}
        theory = {
            name: [n * linear.get(name, 4 * d**2 + 2 * n * d) / 1e6 for n in lengths]
            for name in layers
        }
        rows.append({"time, ms": time, "peak memory, MiB": memory})
        rows[-1]["theory: million multiplications forward"] = theory
        growth = {name: f"{values[-1] / values[-2]:.1f}" for name, values in memory.items()}
        ratios = [f"{time['attention, fused'][i] / time['GRU'][i]:.2f}" for i in (0, -1)]
        fastest = min(time, key=lambda name: time[name][-1])
        parts += [
            f"## {value['hardware']}",
            "Milliseconds:",
            _by_length(lengths, time, ",.1f"),
            "Peak memory in MiB:",
            _by_length(lengths, memory, ",.1f"),
            f"From {lengths[-2]:,} to {lengths[-1]:,} positions the memory of explicit attention "
            f"grows {growth['attention, explicit']} times, that of fused attention "
            f"{growth['attention, fused']} times. At {lengths[-1]:,} the {fastest} is the fastest, "
            f"and fused attention takes {ratios[1]} times as long as the GRU; at {lengths[0]:,} it "
            f"takes {ratios[0]} times as long.",
        ]
    plot = _plot_panels(rows, lengths, size=(11, 3.4 * len(rows)))
    return "\n\n".join([page.save("", plot, "Time, memory and multiplications by length"), *parts])


@component
def long_sources(page: Page, length: int) -> str:
    """Return time and memory of whole models by source length, and compare them at one length."""
    models, lengths = page.value["models"], page.value["lengths"]
    found: Panels = {
        f"{words}, {unit}": {
            model: [factor * point[step][key] for point in models[model]["points"]]
            for model in models
        }
        for step, words in (("train", "training step"), ("search", "beam search"))
        for key, unit, factor in (("seconds", "seconds", 1.0), ("peak_bytes", "MiB", 2**-20))
    }
    forms = {title: ".2f" if title.endswith("seconds") else ",.0f" for title in found}
    tables = [
        f"{title.capitalize().replace('mib', 'MiB')}:\n\n{_by_length(lengths, lines, forms[title])}"
        for title, lines in found.items()
    ]
    column = lengths.index(length)
    seconds, memory, search, search_memory = (
        {model: values[column] for model, values in lines.items()} for lines in found.values()
    )
    full, near, pooled = "transformer", "window", "window, pooled memory"
    largest = max(*memory.values(), *search_memory.values()) / 2**10
    text = (
        f"With {length:,} tokens every model trains and searches in at most {largest:.1f} GiB. A "
        f"window makes a training step {seconds[full] / seconds[near]:.1f} times as fast and takes "
        f"{memory[full] / memory[near]:.1f} times less memory. A pooled memory makes the search "
        f"{search[near] / search[pooled]:.2f} times as fast and training "
        f"{seconds[near] / seconds[pooled]:.2f} times."
    )
    titles = list(found)
    rows = [{title: found[title] for title in titles[i : i + 2]} for i in (0, 2)]
    link = page.save("", _plot_panels(rows, lengths, size=(9, 6.4)), "Time and memory by length")
    return "\n\n".join([link, text, *tables])


@component
def operation_limits(page: Page, length: int) -> str:
    """Return the time of a training step beside the least time that its operations take."""
    rows = []
    for model, found in page.value["models"].items():
        point = next(p for p in found["points"] if p["length"] == length)["train"]
        least = point["flops"] / page.value["flops_per_second"]
        cells = (f"{point['flops'] / 1e9:.0f}", f"{least:.2f}", f"{point['seconds']:.2f}")
        rows.append((model, *cells, f"{point['seconds'] / least:.1f}"))
    return table(("model", "GFLOP", "least seconds", "seconds", "ratio"), rows)


@component
def reproduction(page: Page) -> str:
    """Return the numbers, plots and relations of a reproduced study."""
    numbers: dict[str, dict[str, float]] = page.value["numbers"]
    metrics = list(next(iter(numbers.values())))
    rows = [
        (
            name,
            *(f"{row[m]:.1f}" for m in metrics),
            f"{page.value['training'][name]['seconds']:.0f}",
        )
        for name, row in numbers.items()
    ]
    relations = [("yes" if one["holds"] else "no", one["claim"]) for one in page.value["relations"]]
    plots = [
        f"![{caption}](scenes-{name}.png)\n\n{caption}"
        for name, caption in page.value["plots"].items()
        if (page.folder / f"scenes-{name}.png").exists()
    ]
    parts = [table(("attention", *metrics, "seconds"), rows)]
    parts += [str(page.value.get("note", "")), *plots, "## Expected relations"]
    return "\n\n".join([*filter(None, parts), table(("holds", "relation"), relations)])
