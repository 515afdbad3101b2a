"""Components of result pages: tables, values, plots, samples and provenance.

A page is Markdown with placeholders: `{{ scores("parameters", "BLEU=bleu") }}` calls a component of
this module or of `special.py` with the page, and stands for what it returns.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from plan import Plan, check
from results import Row, read_results

from regard.core.files import write_text
from regard.plots import curves, figure, heatmap
from regard.plots.inputs import MAX_WIDTH

Runs = list[Row]

MIN_COUNT = 20
"""Groups of fewer test examples are left out."""
DIGITS = {"cider": 3, "ssim": 3, "mse": 4, "source_mse": 4, "psnr": 2, "source_psnr": 2}
NONE = "∅"

_PLACEHOLDER = re.compile(r"\{\{ (.+?) \}\}", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """A page that is being generated."""

    plan: Plan
    value: Row
    """The result file; of several files, by name."""
    folder: Path
    """The folder of result files."""
    out: Path
    """The folder of pages and plots."""

    def select(self, where: str = "*") -> Runs:
        """Return the runs whose name matches a pattern; patterns are separated by `|`."""
        return [
            run
            for run in self.value["runs"]
            if any(fnmatchcase(run["name"], one) for one in where.split("|"))
        ]

    def save(self, name: str, plot: Figure | str, caption: str) -> str:
        """Save a plot as `PAGE-NAME.svg` and return the link that shows it."""
        file = f"{self.plan.name}{name and '-'}{name}.svg"
        if isinstance(plot, str):
            write_text(self.out / file, plot)
        else:
            figure.save(self.out / file, plot)
        return f"![{caption}]({file})"


Component = Callable[..., object]
COMPONENTS: dict[str, Component] = {}


def component(function: Component) -> Component:
    """Make a function available to pages."""
    COMPONENTS[function.__name__] = function
    return function


def render(page: Page) -> str:
    """Return a page's Markdown with all placeholders replaced."""
    names: Row = {name: partial(function, page) for name, function in COMPONENTS.items()}
    names |= {"value": page.value, "runs": page.value.get("runs", [])}
    # Every line of a template is a block; lines of one list or table stay together.
    blocks = re.sub(
        r"^(([-|]) .*)\n\n(?=\2 )",
        r"\1\n",
        page.plan.page.strip().replace("\n", "\n\n"),
        flags=re.M,
    )
    # Plans are part of this repository: their expressions are code like that of this module.
    text = _PLACEHOLDER.sub(lambda match: str(eval(match[1].strip(), names)), blocks)
    return f"# {page.plan.title}\n\n" + re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table: the first column to the left, the others to the right."""
    lines = [" | ".join(head), " | ".join(["---"] + ["---:"] * (len(head) - 1))]
    lines += [" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def with_interval(score: Mapping[str, Any], digits: int = 1) -> str:
    """Return a score with half its 95 % interval."""
    low, high = score.get("interval") or (0, 0)
    half = f" ± {(high - low) / 2:.{digits}f}" if score.get("interval") else ""
    return f"{score['value']:.{digits}f}{half}"


def values_of(runs: Runs, metric: str) -> list[float]:
    """Return a score of each run."""
    return [run["test"]["scores"][metric]["value"] for run in runs]


def mean_and_std(values: Sequence[float], digits: int = 1) -> str:
    """Return a mean, and the standard deviation of several values."""
    std = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{std}"


def spread(runs: Runs, metric: str, digits: int | None = None) -> str:
    """Return mean ± standard deviation over seeds; of a single run, half its 95 % interval."""
    digits = DIGITS.get(metric, 1) if digits is None else digits
    if any(metric not in run["test"]["scores"] for run in runs):
        return "–"
    if len(runs) == 1:
        return with_interval(runs[0]["test"]["scores"][metric], digits)
    return mean_and_std(values_of(runs, metric), digits)


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    for mark in "\\`*_[]<>":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def by_name(runs: Runs) -> dict[str, Runs]:
    """Return runs grouped by name."""
    return {
        name: [r for r in runs if r["name"] == name]
        for name in dict.fromkeys(r["name"] for r in runs)
    }


def first_runs(runs: Runs) -> Runs:
    """Return the first run of each name."""
    return [group[0] for group in by_name(runs).values()]


def _seconds(runs: Runs) -> float:
    return mean(run["training"]["seconds"] for run in runs)


COLUMNS: dict[str, Callable[[Runs, int], object]] = {
    "parameters": lambda runs, digits: f"{runs[0]['parameters'] / 1e6:.{digits}f} M",
    "runs": lambda runs, _: runs[0].get("members", len(runs)),
    "minutes": lambda runs, digits: f"{_seconds(runs) / 60:.{digits}f}",
    "seconds": lambda runs, _: f"{_seconds(runs):.0f}",
    "tokens/s": lambda runs, _: f"{runs[0]['training']['tokens_per_second']:,.0f}",
    "best": lambda runs, digits: mean_and_std([run["best"] for run in runs], digits),
    "long": lambda runs, _: mean_and_std([run["test"]["bleu_long"]["value"] for run in runs]),
    "gflops": lambda runs, _: f"{runs[0]['flops'] / 1e9:.3f}",
    "batch": lambda runs, _: f"{_set(runs, 'max_tokens') * _set(runs, 'accumulate'):,}",
    "limit": lambda runs, _: ", ".join(
        f"{_set(runs, f'max_{unit}'):,.0f} {unit}"
        for unit in ("epochs", "steps", "minutes")
        if _set(runs, f"max_{unit}")
    ),
    "averaging": lambda runs, _: (
        f"last {_set(runs, 'average_last')}" if runs[0].get("is_averaged") else "no"
    ),
}
"""Columns that are neither scores nor paths: (runs of one name, digits) → cell."""


def _set(runs: Runs, name: str) -> Any:
    """Return a setting by the last part of its name."""
    return next(v for key, v in runs[0]["settings"].items() if key.endswith(f".{name}"))


def cell(runs: Runs, spec: str) -> str:
    """Return a cell for `TITLE=COLUMN:DIGITS`; title and digits may be missing.

    A column is one of `COLUMNS`, a score (`METRIC`; `METRIC!first` of the first run, `METRIC!mean`
    without a deviation, `METRIC!percent` of a share between 0 and 1) or a path (`@KEY/KEY`).
    """
    key, _, form = spec.rpartition("=")[2].partition(":")
    metric, _, mode = key.partition("!")
    try:
        if key.startswith("@"):
            value: Any = runs[0]
            for name in key[1:].split("/"):
                value = value[name]
            return number(value, form)
        if key in COLUMNS:
            return str(COLUMNS[key](runs, int(form or 1)))
        if mode == "mean":
            return f"{mean(values_of(runs, metric)):.{form or DIGITS.get(metric, 1)}f}"
        if mode == "percent":
            return mean_and_std([100 * value for value in values_of(runs, metric)])
        chosen = runs[:1] if mode == "first" else runs
        return spread(chosen, metric, int(form) if form else None)
    except (KeyError, IndexError, TypeError):
        return "–" if "test" in runs[0] else ""


def number(value: Any, form: str = "") -> str:
    """Return a number, a score with its interval, or a difference with its p-value."""
    if isinstance(value, Mapping):
        if "p_value" in value:
            p = value["p_value"]
            return f"{value['value']:+.{form}f} (p {p:{'.3f' if p >= 0.0005 else '.1g'}})"
        return with_interval(value, int(form or 1))
    if isinstance(value, float) and not form:
        return f"{value:g}"
    is_format = not form or not form.isdigit()
    return f"{value:{form}}" if is_format else f"{value:.{form}f}"


@component
def scores(
    page: Page,
    *columns: str,
    where: str = "*",
    strip: str = "",
    model: str = "model",
    extra: Sequence[Row] = (),
    rows: Sequence[Sequence[str]] = (),
    sort: str = "",
    gain: str = "",
) -> str:
    """Return a table with a row for each name.

    Args:
        page: The page.
        columns: `TITLE=COLUMN:DIGITS`: a score, or one of `COLUMNS`.
        where: Pattern of names.
        strip: Pattern that is removed from the start of names; `-` keeps the last word only.
        model: Title of the first column.
        extra: Rows of the result file besides runs, such as ensembles.
        rows: Literal rows at the end.
        sort: Score to sort by, best first.
        gain: Score whose difference to the first of `extra` is shown.
    """
    groups = by_name(page.select(where))
    if sort:
        groups = dict(sorted(groups.items(), key=lambda pair: -mean(values_of(pair[1], sort))))
    cells = [
        (short(name, strip), *(cell(runs, column) for column in columns))
        for name, runs in groups.items()
    ]
    cells += [(row["name"], *(cell([row], column) for column in columns)) for row in extra]
    titles = [column.rpartition("=")[0] or column.partition(":")[0] for column in columns]
    if gain:
        base = values_of([extra[0]], gain)[0]
        gains = [f"{mean(values_of(runs, gain)) - base:+.1f}" for runs in groups.values()]
        cells = [(*row, g) for row, g in zip(cells, [*gains, *[""] * len(extra)], strict=True)]
        titles.append(f"{gain} over the {extra[0]['name']}")
    return table((model, *titles), [*cells, *rows])


def short(name: str, strip: str) -> str:
    """Return a name without its first words, or only its last word for `-`."""
    return name.split()[-1] if strip == "-" else re.sub(f"^(?:{strip})", "", name)


@component
def learning_curves(
    page: Page, metric: str, title: str, *, name: str = "learning", x: str = "step",
    where: str = "*", strip: str = "",
) -> str:  # fmt: skip
    """Plot the validation curve of the first run of each name, by step or by minutes."""
    series = {}
    for run in first_runs(page.select(where)):
        curve = run.get("curve")
        if curve and len(curve[metric]) > 1:
            xs = curve["step"] if x == "step" else [second / 60 for second in curve["seconds"]]
            series[short(run["name"], strip)] = list(zip(xs, curve[metric], strict=True))
    x_label = "step" if x == "step" else "minutes of training"
    plot = curves.lines(series, x_label=x_label, y_label=f"validation {title}")
    return page.save(name, plot, f"Validation {title} by {x_label}")


@component
def pivot(
    page: Page, metric: str, x_label: str, *, y_label: str, name: str, where: str = "*",
    file: str = "", has_table: bool = True,
) -> str:  # fmt: skip
    """Plot and list a score by the number that ends a run's name, with a series for the rest."""
    page = replace(page, value=read_results(page.folder / file)) if file else page
    found: dict[str, dict[int, Runs]] = {}
    for several in by_name(page.select(where)).values():
        series, _, size = several[0]["name"].rpartition(" ")
        found.setdefault(series, {})[int(size)] = several
    sizes = sorted({size for several in found.values() for size in several})
    points = {
        series: [(size, mean(values_of(several[size], metric))) for size in sorted(several)]
        for series, several in found.items()
    }
    plot = curves.scaling(points, x_label=x_label, y_label=y_label)
    link = page.save(name, plot, f"{y_label} by {x_label}")
    rows = [
        (f"{n:,}", *(spread(s[n], metric) if n in s else "–" for s in found.values()))
        for n in sizes
    ]
    return f"{link}\n\n{table((x_label, *found), rows)}" if has_table else link


@component
def other_file(page: Page, file: str) -> str:
    """Return the command and the link of another result file."""
    return f"`{read_results(page.folder / file)['command']}`; result file: [`{file}`]({file})"


def middle(name: str) -> float:
    """Return the middle of a group of lengths, such as `≤ 5`, `6–10` or `> 50`."""
    low, _, high = name.replace("≤ ", "0–").replace("> ", "").partition("–")
    return (float(low) + float(high or low)) / 2


@component
def by_length(
    page: Page, metric: str, title: str, *, name: str = "lengths", where: str = "*",
    strip: str = "", kind: str = "lines",
) -> str:  # fmt: skip
    """Plot a score by source length: lines of the mean over seeds, or bars of the first run."""
    groups = by_name(page.select(where))
    if kind == "bars":
        first = next(iter(groups.values()))[0]
        bars = {
            f"{group['name']} ({group['count']:,})": group[metric]
            for group in first["test"]["by_length"]
            if group["count"] >= MIN_COUNT
        }
        return page.save(name, curves.bars(bars, x_label=title), f"{title} by source length")
    series: dict[str, list[tuple[float, float]]] = {}
    for model, runs in groups.items():
        for group in runs[0]["test"]["by_length"]:
            is_open = group["name"].startswith(">") and metric == "bleu"
            if group["count"] >= MIN_COUNT and not is_open:
                value = mean(at_length(run, group["name"], metric) for run in runs)
                series.setdefault(short(model, strip), []).append((middle(group["name"]), value))
    plot = curves.lines(series, x_label="words in the source", y_label=title)
    return page.save(name, plot, f"{title} by source length")


def at_length(run: Row, name: str, metric: str = "bleu") -> float:
    """Return the score of a group of lengths."""
    found = [group[metric] for group in run["test"]["by_length"] if group["name"] == name]
    return float(found[0]) if found else float("nan")


@component
def error_table(page: Page, where: str = "*") -> str:
    """Return the output tokens with most errors beside the most frequent errors of a run."""
    run = page.select(where)[0]
    cells = [
        (
            one["name"],
            f"{one['count']:,}",
            f"{next(v for k, v in one.items() if k not in ('name', 'count')):.1f}",
            f"{edit['right'] or NONE} → {edit['written'] or NONE}",
            f"{edit['count']:,}",
        )
        for one, edit in zip(run["test"]["by_unit"], run["test"]["edits"], strict=False)
    ]
    head = ("most errors", "occurs", "wrong %", "most frequent errors", "count")
    return table(head, cells)


@component
def attention_maps(page: Page, where: str = "*", *, name: str = "", heading: str = "") -> str:
    """Plot the attention maps of the first run that has any, or of every run under a heading."""
    parts = []
    for run in page.select(where):
        maps = run.get("maps") or []
        stem = name or run["name"].replace(",", "").replace(" ", "-")
        parts += [f"### {heading}: {run['name']}"] if heading and maps else []
        for number, one in enumerate(maps, start=1):
            columns = [*map(_both_ends, one["columns"])]
            plot = str(heatmap.svg(np.array(one["weights"]), one["rows"], columns))
            caption = f"{plain(one['source'])} → {plain(one['target'])}"
            parts.append(page.save(f"{stem}-{number}".strip("-"), _compact(plot), caption))
        if maps and not heading:
            break
    return "\n\n".join(parts)


def _compact(svg: str) -> str:
    """Return an SVG without the tooltips of cells whose weight is 0."""
    return re.sub(r"\n<rect[^>]*><title>[^<]* 0(\.0+)?</title></rect>", "", svg)


def _both_ends(label: str) -> str:
    """Return a label that fits; of a sentence, its first word and its end."""
    if len(label) <= MAX_WIDTH:
        return label
    first, *rest = label.split()
    while rest and len(f"{first} … {' '.join(rest)}") > MAX_WIDTH:
        rest = rest[1:]
    return f"{first} … {' '.join(rest)}"


@component
def samples(
    page: Page, count: int, *, where: str = "*", strip: str = "", kind: str = "list",
    extra: Sequence[Row] = (), source: str = "source", target: str = "target",
) -> str:  # fmt: skip
    """Return the first test examples with the outputs of each run, as a list or as a table."""
    shown = [row for row in [*page.select(where), *extra] if row.get("samples")]
    names = [short(row["name"], strip) for row in shown]
    lines: list[Sequence[str]] = []
    parts = []
    for number, (given, right, _) in enumerate(shown[0]["samples"][:count]):
        outputs = [plain(row["samples"][number][2]) for row in shown]
        lines.append((plain(given), plain(right), *outputs))
        indent = " " * len(f"{number + 1}. ")
        parts.append(f"{number + 1}. {plain(given)}")
        parts += [f"{indent}- *{target}*: {plain(right)}"] if right and target else []
        parts += [
            f"{indent}- {name}: {output}" for name, output in zip(names, outputs, strict=True)
        ]
    return table((source, target, *names), lines) if kind == "table" else "\n".join(parts)


@component
def changes(page: Page, where: str = "*", strip: str = "") -> str:
    """Return the overrides of the recipes: of all runs, and of each that has more."""
    found = {
        short(run["name"], strip): [w for w in run["overrides"] if not w.startswith(UNNAMED)]
        for run in first_runs(page.select(where))
    }
    first, *others = found.values()
    common = [word for word in first if all(word in words for words in others)]
    more = {name: [w for w in words if w not in common] for name, words in found.items()}
    named = {"all": common, **more}
    listed = "; ".join(f"{name} `{' '.join(words)}`" for name, words in named.items() if words)
    return f"Overrides of the recipes: {listed or 'none'}."


UNNAMED = ("start=", "init_from=", "teacher=", "model.copying.kind=")
"""Overrides that the names of runs give."""


@component
def pairs(_page: Page, first: str, second: str, values: Mapping[str, str]) -> str:
    """Return a table of two columns."""
    return table((first, second), list(values.items()))


@component
def score(page: Page, where: str, metric: str) -> str:
    """Return a score of the runs that a pattern selects."""
    return spread(page.select(where), metric)


@component
def note(page: Page) -> str:
    """Return the remark of a result file, if it has one."""
    return str(page.value.get("note", ""))


@component
def expectations(page: Page) -> str:
    """Return a table of the expectations of the plan, and whether each holds."""
    rows = []
    for one in page.plan.expect:
        try:
            claim, holds = check(one, page.value["runs"])
        except LookupError:
            claim, holds = f"{one['metric']} of {one['run']}", False
        rows.append((claim, "yes" if holds else "no"))
    return f"## Expectations\n\n{table(('claim', 'holds'), rows)}" if rows else ""


@component
def provenance(page: Page, where: str = "*", signatures: Sequence[str] = ()) -> str:
    """Return how to reproduce the results: command, hardware, versions, seeds, signatures."""
    runs = page.select(where)
    listed = {
        f"{score.get('name', name)} `{score['signature']}`"
        for name, score in runs[0]["test"]["scores"].items()
        if "signature" in score
    }
    seeds = sorted({str(run["seed"]) for run in runs})
    commits = sorted({run["commit"] for run in runs})
    machines = dict.fromkeys(f"{run['hardware']}, torch {run['torch']}" for run in runs)
    file = f"{page.value['experiment']}.json"
    lines = [
        "## How to reproduce",
        "",
        f"- `{page.value['command']}`, each run as a process of its own",
        f"- {'; '.join(machines)}, commit {', '.join(commits)}, seeds {', '.join(seeds)}",
        *(f"- {signature}" for signature in sorted(listed)),
        *(f"- {signature}" for signature in signatures),
        f"- result file: [`{file}`]({file})",
    ]
    return "\n".join(lines)


@component
def machine(page: Page, value: Row | None = None) -> str:
    """Return command and machine of a measurement without runs."""
    found = value or page.value
    seed = f", seed {found['seed']}" if "seed" in found else ""
    about = f"{found['hardware']}, torch {found['torch']}, commit {found['commit']}{seed}"
    return f"- `{found['command']}`: {about}"
