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
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from plan import Plan, check
from results import Row, read_results

from regard.core.files import write_text
from regard.plots import curves, figure, heatmap
from regard.plots.inputs import Points

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
        runs, patterns = self.value.get("runs", []), where.split("|")
        return [run for run in runs if any(fnmatchcase(run["name"], one) for one in patterns)]

    def save(self, name: str, plot: Figure | str, caption: str) -> str:
        """Save a plot as `PAGE-NAME.svg` and return the link that shows it."""
        file = f"{self.plan.name}{name and '-'}{name}.svg"
        write_text(self.out / file, plot if isinstance(plot, str) else figure.to_svg(plot))
        return f"![{caption}]({file})"


def render(page: Page, components: Sequence[Callable[..., object]]) -> str:
    """Return a page's Markdown with all placeholders replaced by what components return."""
    names: Row = {one.__name__: partial(one, page) for one in components}
    names |= {"value": page.value, "runs": page.value.get("runs", []), "select": page.select}
    names |= {"table": table, "spread": spread}
    # Every line of a template is a block; lines of one list or table stay together.
    blocks = page.plan.page.strip().replace("\n", "\n\n")
    blocks = re.sub(r"^(([-|]) .*)\n\n(?=\2 )", r"\1\n", blocks, flags=re.M)
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
    text, interval = f"{score['value']:.{digits}f}", score.get("interval")
    return f"{text} ± {(interval[1] - interval[0]) / 2:.{digits}f}" if interval else text


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
    groups: dict[str, Runs] = {}
    for run in runs:
        groups.setdefault(run["name"], []).append(run)
    return groups


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
}
"""Columns that are neither scores nor paths: (runs of one name, digits) → cell."""


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
    """Return a number, a score with half its interval, or a difference with its p-value."""
    if isinstance(value, Mapping):
        if "p_value" in value:
            p, (low, high) = value["p_value"], value["interval"]
            interval = f"[{low:+.{form}f}, {high:+.{form}f}]"
            return f"{value['value']:+.{form}f} {interval} (p {p:{'.3f' if p >= 5e-4 else '.1g'}})"
        return with_interval(value, int(form or 1))
    form = form or "g" * isinstance(value, float)
    return f"{value:.{form}f}" if form.isdigit() else f"{value:{form}}"


def scores(
    page: Page, *columns: str, where: str = "*", strip: str = "", model: str = "model",
    extra: Sequence[Row] = (), rows: Sequence[Sequence[str]] = (), sort: str = "",
) -> str:  # fmt: skip
    """Return a table with a row for each name, and columns `TITLE=COLUMN:DIGITS` (see `cell`).

    `strip` is removed from the start of names (`-` keeps the last word only). Rows of the result
    file besides runs follow (`extra`), and literal ones (`rows`). `sort` is a score, best first.
    """
    groups = by_name(page.select(where))
    if sort:
        groups = dict(sorted(groups.items(), key=lambda pair: -mean(values_of(pair[1], sort))))
    named = [(short(name, strip), runs) for name, runs in groups.items()]
    named += [(row["name"], [row]) for row in extra]
    cells = [(name, *(cell(runs, column) for column in columns)) for name, runs in named]
    titles = [column.rpartition("=")[0] or column.partition(":")[0] for column in columns]
    return table((model, *titles), [*cells, *rows])


def short(name: str, strip: str) -> str:
    """Return a name without its first words, or only its last word for `-`."""
    return name.split()[-1] if strip == "-" else re.sub(f"^(?:{strip})", "", name)


def lines(
    page: Page, name: str, series: Mapping[str, Points], *, x_label: str, y_label: str,
    log: str = "", digits: int | None = None, shaded: tuple[str, float, float] | None = None,
) -> str:  # fmt: skip
    """Plot points by name, and list their values with `digits` if given.

    `log` names the logarithmic axes: `x` or `xy`. `shaded` is a name and a range of x to highlight.
    """
    draw = curves.scaling if log else partial(curves.lines, shaded=shaded)
    plot = draw(series, x_label=x_label, y_label=y_label)
    if log == "xy":
        axes = plot.axes[0]
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    link = page.save(name, plot, f"{y_label} by {x_label}")
    if digits is None:
        return link
    columns = [dict(points) for points in series.values()]
    rows = [(f"{x:,}", *(f"{column[x]:,.{digits}f}" for column in columns)) for x in columns[0]]
    return f"{link}\n\n{table((x_label, *series), rows)}"


def learning_curves(
    page: Page, metric: str, title: str, *, name: str = "learning", x: str = "step",
    where: str = "*", strip: str = "",
) -> str:  # fmt: skip
    """Plot the validation curve of the first run of each name, by step or by minutes."""
    series = {}
    for run in first_runs(page.select(where)):
        if (curve := run.get("curve")) and len(curve[metric]) > 1:
            xs = curve["step"] if x == "step" else [second / 60 for second in curve["seconds"]]
            series[short(run["name"], strip)] = list(zip(xs, curve[metric], strict=True))
    x_label = "step" if x == "step" else "minutes of training"
    return lines(page, name, series, x_label=x_label, y_label=f"validation {title}")


def pivot(
    page: Page, metric: str, x_label: str, *, y_label: str, name: str, where: str = "*",
    file: str = "", has_table: bool = True,
) -> str:  # fmt: skip
    """Plot and list a score by the number that ends a run's name, with a series for the rest."""
    page = replace(page, value=read_results(page.folder / file)) if file else page
    found: dict[str, dict[int, Runs]] = {}
    for runs in by_name(page.select(where)).values():
        series, _, size = runs[0]["name"].rpartition(" ")
        found.setdefault(series, {})[int(size)] = runs
    points = {
        series: [(size, mean(values_of(sizes[size], metric))) for size in sorted(sizes)]
        for series, sizes in found.items()
    }
    link = lines(page, name, points, x_label=x_label, y_label=y_label, log="x")
    rows = [
        (f"{size:,}", *(spread(s[size], metric) if size in s else "–" for s in found.values()))
        for size in sorted({size for sizes in found.values() for size in sizes})
    ]
    return f"{link}\n\n{table((x_label, *found), rows)}" if has_table else link


def images(page: Page, *patterns: str) -> str:
    """Return links to the saved images whose names match patterns."""
    found = [path for pattern in patterns for path in sorted(page.folder.glob(pattern))]
    return "\n\n".join(f"![{path.stem}]({path.name})" for path in found)


def other_file(page: Page, file: str) -> str:
    """Return the command and the link of another result file."""
    return f"`{read_results(page.folder / file)['command']}`; result file: [`{file}`]({file})"


def by_length(
    page: Page, metric: str, title: str, *, name: str = "lengths", where: str = "*"
) -> str:
    """Plot a score by source length, the mean over seeds."""
    series: dict[str, list[tuple[float, float]]] = {}
    for model, runs in by_name(page.select(where)).items():
        for same in zip(*(run["test"]["by_length"] for run in runs), strict=True):
            group = same[0]["name"]  # such as `≤ 5`, `6–10` or `> 50`
            low, _, high = group.replace("≤ ", "0–").replace("> ", "").partition("–")
            if same[0]["count"] >= MIN_COUNT and not (group[0] == ">" and metric == "bleu"):
                middle = (float(low) + float(high or low)) / 2
                series.setdefault(model, []).append((middle, mean(one[metric] for one in same)))
    return lines(page, name, series, x_label="words in the source", y_label=title)


def tag_table(
    page: Page, metric: str, title: str, *, key: str = "by_tag", where: str = "*",
    strip: str = "", tags: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return a score by tag (or another group of test examples), the mean over seeds."""
    found = {
        short(name, strip): [{one["name"]: one for one in run["test"][key]} for run in runs]
        for name, runs in by_name(page.select(where)).items()
    }
    first = next(iter(found.values()))[0]
    rows = [
        (tag, f"{first[tag]['count']:,}",
         *(mean_and_std([one[tag][metric] for one in several]) for several in found.values()))
        for tag in tags or first
        if all(tag in one for several in found.values() for one in several)
    ]  # fmt: skip
    return table((title, "examples", *found), rows)


def error_table(page: Page, where: str = "*") -> str:
    """Return the output tokens with most errors beside the most frequent errors of a run."""
    test = page.select(where)[0]["test"]
    rows = []
    for unit, edit in zip(test["by_unit"], test["edits"], strict=False):
        name, count, value = unit.values()
        rows.append((name, f"{count:,}", f"{value:.1f}", edit_of(edit), f"{edit['count']:,}"))
    return table(("most errors", "occurs", "wrong %", "most frequent errors", "count"), rows)


def edit_of(edit: Row) -> str:
    """Return a wrong token: what is right, and what was predicted."""
    return f"{edit['right'] or NONE} → {edit['written'] or NONE}"


def attention_maps(page: Page, where: str = "*", *, name: str = "", heading: str = "") -> str:
    """Plot the attention maps of the first run that has any, or of every run under a heading."""
    parts = []
    for run in page.select(where):
        maps = run.get("maps") or []
        stem = name or run["name"].replace(",", "").replace(" ", "-")
        parts += [f"### {heading}: {run['name']}"] if heading and maps else []
        for number, one in enumerate(maps, start=1):
            plot = str(heatmap.svg(np.array(one["weights"]), one["rows"], one["columns"]))
            # Cells whose weight is 0 get no tooltip.
            plot = re.sub(r"\n<rect[^>]*><title>[^<]* 0(\.0+)?</title></rect>", "", plot)
            caption = f"{plain(one['source'])} → {plain(one['target'])}"
            parts.append(page.save(f"{stem}-{number}".strip("-"), plot, caption))
        if maps and not heading:
            break
    return "\n\n".join(parts)


def samples(
    page: Page, count: int, *, where: str = "*", strip: str = "", kind: str = "list",
    extra: Sequence[Row] = (), source: str = "source", target: str = "target",
) -> str:  # fmt: skip
    """Return the first test examples with the outputs of each run, as a list or as a table."""
    shown = [row for row in [*page.select(where), *extra] if row.get("samples")]
    names = [short(row["name"], strip) for row in shown]
    examples = list(zip(*(row["samples"] for row in shown), strict=False))[:count]
    rows = [[*map(plain, one[0][:2]), *(plain(output) for _, _, output in one)] for one in examples]
    if kind == "table":
        return table((source, target, *names), rows)
    parts = []
    for number, (given, right, *outputs) in enumerate(rows, start=1):
        items = [f"*{target}*: {right}"] if right and target else []
        items += [f"{name}: {output}" for name, output in zip(names, outputs, strict=True)]
        indent = " " * len(f"{number}. ")
        parts += [f"{number}. {given}", *(f"{indent}- {item}" for item in items)]
    return "\n".join(parts)


def changes(page: Page, where: str = "*", strip: str = "") -> str:
    """Return the overrides of the recipes: of all runs, and of each that has more."""
    found = {
        short(run["name"], strip): [w for w in run["overrides"] if not w.startswith(UNNAMED)]
        for run in first_runs(page.select(where))
    }
    first, *others = found.values()
    common = [word for word in first if all(word in words for words in others)]
    more = {name: [w for w in words if w not in common] for name, words in found.items()}
    named = {"all": common, **more}.items()
    listed = "; ".join(f"{name} `{' '.join(words)}`" for name, words in named if words)
    return f"Overrides of the recipes: {listed or 'none'}."


UNNAMED = ("start=", "init_from=", "teacher=", "model.copying.kind=")
"""Overrides that the names of runs give."""


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


def provenance(page: Page, where: str = "*", signatures: Sequence[str] = ()) -> str:
    """Return how to reproduce the results: command, hardware, versions, seeds, signatures."""
    runs = page.select(where)
    metrics = runs[0]["test"]["scores"].items()
    listed = {f"{m.get('name', n)} `{m['signature']}`" for n, m in metrics if "signature" in m}
    seeds, commits = ({str(run[key]) for run in runs} for key in ("seed", "commit"))
    machines = dict.fromkeys(f"{run['hardware']}, torch {run['torch']}" for run in runs)
    about = f"commit {', '.join(sorted(commits))}, seeds {', '.join(sorted(seeds))}"
    items = [f"`{page.value['command']}`, each run as a process of its own"]
    items += [f"{'; '.join(machines)}, {about}", *sorted(listed), *signatures]
    file = f"{page.value['experiment']}.json"
    items += [f"result file: [`{file}`]({file})"]
    return "## How to reproduce\n\n" + "\n".join(f"- {item}" for item in items)


def machines(page: Page) -> str:
    """Return command, machine and result file of each measurement without runs."""
    files = page.value if page.plan.results else {f"{page.plan.name}.json": page.value}
    lines = []
    for name, value in files.items():
        found = {**value, **(value["runs"] or [{}])[0]}
        seed = f", seed {found['seed']}" if "seed" in found else ""
        about = f"{found['hardware']}, torch {found['torch']}, commit {found['commit']}{seed}"
        lines.append(f"- `{found['command']}`: {about}: [`{name}`]({name})")
    return "\n".join(lines)


COMPONENTS = (
    scores, lines, learning_curves, pivot, images, other_file, by_length, tag_table, error_table,
    attention_maps, samples, changes, expectations, provenance, machines,
)  # fmt: skip
"""Functions that pages of any experiment may call."""
