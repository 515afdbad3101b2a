"""Sections of a comparison: tables, some with a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.metrics.result import Group
from regard.metrics.text.bleu import bleu
from regard.plots.inputs import Points
from regard.studies.compare.comparison import Comparison, RunScores
from regard.studies.compare.finished_runs import FinishedRun

MIN_SENTENCES = 20
"""Minimum number of sentences of a point in a chart: BLEU of fewer is unreliable."""

MAX_SETTINGS = 12
"""Maximum number of settings in the table of those that differ."""

LONG = 20
"""Number of source words above which a sentence is long."""


@dataclass(frozen=True)
class Chart:
    """Line chart with one line per run."""

    x_label: str
    """Label of the x axis."""
    y_label: str
    """Label of the y axis."""
    series: Mapping[str, Points]
    """Points by the name of a run."""


@dataclass(frozen=True)
class ComparisonSection:
    """Heading, explanation and table of a section."""

    title: str
    """Heading."""
    note: str
    """Explanation of the numbers."""
    head: Sequence[str]
    """Names of the columns."""
    rows: Sequence[Sequence[object]]
    """Numbers or text."""
    chart: Chart | None = None
    """Chart of the same numbers."""


def comparison_sections(comparison: Comparison) -> list[ComparisonSection]:
    """Return the sections of a comparison, in order."""
    first = comparison.runs[0]
    sections = [_quality(comparison), _cost(comparison)]
    if different := different_settings([scored.run for scored in comparison.runs]):
        sections.append(_settings(comparison, different))
    sections.append(_lengths(comparison))
    if first.by_position:
        sections.append(_positions(comparison))
    if first.by_tag:
        sections += [
            _phenomena(comparison, "bleu", "BLEU by phenomenon"),
            _phenomena(comparison, "accuracy", "Exact matches by phenomenon, in percent"),
        ]
    if first.verbs:
        sections.append(_verbs(comparison))
    return sections


def overview(comparison: Comparison) -> ComparisonSection:
    """Return the most important numbers, with a column for each run."""
    columns = []
    for scored in comparison.runs:
        parameters, seconds, throughput = _training_cost(scored)
        error_rate = scored.run.metrics["test"]["scores"].get("aer")
        columns.append(
            {
                "parameters": parameters,
                "seconds of training": seconds,
                "target tokens/s": throughput,
                "BLEU": _score(scored, "bleu"),
                "chrF": _score(scored, "chrf"),
                f"BLEU above {LONG} words": _bleu_of_long(scored.run),
                "alignment error rate": error_rate["value"] if error_rate else "–",
            }
        )
    return ComparisonSection(
        title="Overview",
        note=f"{comparison.num_examples:,} test sentences; ± is half the 95 % confidence interval.",
        head=("", *comparison.names),
        rows=[(name, *(column[name] for column in columns)) for name in columns[0]],
    )


def _training_cost(scored: RunScores) -> tuple[int, int, int]:
    """Return the number of parameters, the seconds of training and target tokens per second."""
    metrics = scored.run.metrics
    seconds, throughput = (metrics["training"][key] for key in ("seconds", "tokens_per_second"))
    return metrics["parameters"], round(seconds), round(throughput)


def _bleu_of_long(run: FinishedRun) -> float | str:
    triples = zip(run.examples, run.outputs, run.references, strict=True)
    pairs = [(out, right) for one, out, right in triples if len(one.source.split()) > LONG]
    return bleu(*map(list, zip(*pairs, strict=True))).value if pairs else "–"


def _quality(comparison: Comparison) -> ComparisonSection:
    rows = [
        (
            scored.run.name,
            _score(scored, "bleu"),
            _difference(scored, "bleu"),
            _score(scored, "chrf"),
            _difference(scored, "chrf"),
            scored.results["accuracy"].value,
        )
        for scored in comparison.runs
    ]
    return ComparisonSection(
        title="Quality",
        note=f"{comparison.num_examples:,} test sentences; ± is half the 95 % confidence interval. "
        f"Δ is the difference to {comparison.names[0]}, with the p-value of a paired bootstrap "
        "test: below 0.05, the difference is significant on these test sentences. The test does "
        "not account for the variance between seeds.",
        head=("run", "BLEU", "Δ BLEU", "chrF", "Δ chrF", "exact %"),
        rows=rows,
    )


def _cost(comparison: Comparison) -> ComparisonSection:
    rows = [
        (run.name, run.decoder, *_training_cost(scored), run.metrics["hardware"])
        for scored in comparison.runs
        for run in [scored.run]
    ]
    return ComparisonSection(
        title="Cost",
        note="Seconds of training, and target tokens per second, validation included.",
        head=("run", "decoder", "parameters", "seconds", "tokens/s", "hardware"),
        rows=rows,
    )


def different_settings(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the settings whose values differ: kinds first, then those that all runs have."""
    names = {name: None for run in runs for name in run.settings}  # in their order
    different = [name for name in names if len({str(run.settings.get(name)) for run in runs}) > 1]

    def importance(name: str) -> tuple[bool, bool]:
        return not name.endswith(".kind"), any(name not in run.settings for run in runs)

    return sorted(different, key=importance)


def _settings(comparison: Comparison, names: Sequence[str]) -> ComparisonSection:
    num_hidden = max(0, len(names) - MAX_SETTINGS)
    more = f" {num_hidden:,} more are not shown." if num_hidden else ""
    runs = [scored.run for scored in comparison.runs]
    return ComparisonSection(
        title="Settings",
        note=f"Settings that differ; – is a setting that a run does not have.{more}",
        head=("setting", *comparison.names),
        rows=[
            (name, *(str(run.settings.get(name, "–")) for run in runs))
            for name in names[:MAX_SETTINGS]
        ],
    )


def _lengths(comparison: Comparison) -> ComparisonSection:
    groups = [scored.by_length for scored in comparison.runs]
    frequent = [[group for group in of_run if group.count >= MIN_SENTENCES] for of_run in groups]
    return ComparisonSection(
        title="BLEU by source length",
        note=f"The chart omits lengths with fewer than {MIN_SENTENCES} sentences.",
        head=("source words", "sentences", *comparison.names),
        rows=_rows(groups, "bleu"),
        chart=Chart("words in the source", "BLEU", _series(comparison, frequent, "bleu")),
    )


def _positions(comparison: Comparison) -> ComparisonSection:
    groups = [scored.by_position for scored in comparison.runs]
    series = _series(comparison, groups, "accuracy")
    return ComparisonSection(
        title="Accuracy by target position",
        note="Percentage of reference words that each model predicts under teacher forcing, by "
        "tenths of the target, without punctuation. A model whose memory of the source fades "
        "has lower accuracy towards the end.",
        head=("of the target", *comparison.names),
        rows=[(name, *values) for name, _, *values in _rows(groups, "accuracy")],
        chart=Chart("position in the target, in percent", "predicted words, %", series),
    )


def _phenomena(comparison: Comparison, score: str, title: str) -> ComparisonSection:
    return ComparisonSection(
        title=title,
        note="A sentence counts for each phenomenon it is tagged with.",
        head=("phenomenon", "sentences", *comparison.names),
        rows=_rows([scored.by_tag for scored in comparison.runs], score),
    )


def _verbs(comparison: Comparison) -> ComparisonSection:
    rows = []
    for scored in comparison.runs:
        assert scored.verbs is not None
        detail = scored.verbs.detail
        counts = (int(detail[name]) for name in ("verbs", "in_place", "misplaced", "missing"))
        rows.append((scored.run.name, *counts, scored.verbs.value))
    return ComparisonSection(
        title="Verbs at the end of dependent clauses",
        note="The last word of each German dependent clause of the reference, in sentences tagged "
        "verb_last; clauses are found by punctuation and their first word. In place: a clause of "
        "the output ends with the word. Misplaced: the word is elsewhere in the output, an error "
        "of word order. Missing: the word is not in the output.",
        head=("run", "verbs", "in place", "misplaced", "missing", "misplaced %"),
        rows=rows,
    )


def _score(scored: RunScores, name: str) -> str:
    result = scored.results[name]
    if result.interval is None:
        return f"{result.value:.2f}"
    low, high = result.interval
    return f"{result.value:.2f} ± {(high - low) / 2:.2f}"


def _difference(scored: RunScores, name: str) -> str:
    diff = scored.differences.get(name)
    return f"{diff.value:+.2f} (p {diff.p_value:.3f})" if diff else "–"


def _rows(groups: Sequence[Sequence[Group]], score: str) -> list[tuple[object, ...]]:
    """Return a row for each group: name, size, and the score of each run."""
    return [
        (row[0].name, row[0].count, *(group.results[score].value for group in row))
        for row in zip(*groups, strict=True)
    ]


def _series(
    comparison: Comparison, groups: Sequence[Sequence[Group]], score: str
) -> dict[str, Points]:
    return {
        name: [
            (group.position, group.results[score].value)
            for group in of_run
            if group.position is not None
        ]
        for name, of_run in zip(comparison.names, groups, strict=True)
    }
