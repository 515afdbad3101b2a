"""Sections of a comparison: a table each, and a curve where there is one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.metrics.result import Group
from regard.metrics.text.bleu import bleu
from regard.plots.inputs import Points
from regard.studies.compare.comparison import Comparison, Standing
from regard.studies.compare.contenders import Contender

LEAST = 20
"""On fewer sentences than this BLEU says little: a curve leaves them out."""

LONG = 20
"""Words in a source beyond which it counts as long."""


@dataclass(frozen=True)
class Chart:
    """One line per run."""

    x_label: str
    """Label of the x axis."""
    y_label: str
    """Label of the y axis."""
    series: Mapping[str, Points]
    """Points by the name of a run."""


@dataclass(frozen=True)
class Part:
    """A section: heading, explanation and table."""

    title: str
    """The heading."""
    note: str
    """Explanation of the numbers."""
    head: Sequence[str]
    """Names of the columns."""
    rows: Sequence[Sequence[object]]
    """Numbers or text."""
    chart: Chart | None = None
    """The same as curves."""


def find_parts(comparison: Comparison) -> list[Part]:
    """Return the sections of a comparison, in order."""
    first = comparison.standings[0]
    parts = [_quality(comparison), _cost(comparison), _lengths(comparison)]
    if first.by_position:
        parts.append(_positions(comparison))
    if first.by_tag:
        parts += [
            _phenomena(comparison, "bleu", "BLEU by phenomenon"),
            _phenomena(comparison, "accuracy", "Exact matches by phenomenon, in percent"),
        ]
    if first.verbs:
        parts.append(_verbs(comparison))
    return parts


def glance(comparison: Comparison) -> Part:
    """Return the most important numbers, with a column for each run."""
    columns = []
    for standing in comparison.standings:
        parameters, seconds, speed = _making(standing)
        error_rate = standing.contender.metrics["test"]["scores"].get("aer")
        columns.append(
            {
                "parameters": parameters,
                "seconds of training": seconds,
                "target tokens/s": speed,
                "BLEU": _score(standing, "bleu"),
                "chrF": _score(standing, "chrf"),
                f"BLEU above {LONG} words": _bleu_of_long(standing.contender),
                "alignment error rate": error_rate["value"] if error_rate else "–",
            }
        )
    return Part(
        title="At a glance",
        note=f"{comparison.num_examples:,} test sentences; ± is the 95 % confidence interval.",
        head=("", *comparison.names),
        rows=[(name, *(column[name] for column in columns)) for name in columns[0]],
    )


def _making(standing: Standing) -> tuple[int, int, int]:
    """Return the number of parameters, the seconds of training and target tokens per second."""
    metrics = standing.contender.metrics
    seconds, speed = (metrics["training"][name] for name in ("seconds", "tokens_per_second"))
    return metrics["parameters"], round(seconds), round(speed)


def _bleu_of_long(contender: Contender) -> float | str:
    triples = zip(contender.examples, contender.outputs, contender.references, strict=True)
    pairs = [(out, right) for one, out, right in triples if len(one.source.split()) > LONG]
    return bleu(*map(list, zip(*pairs, strict=True))).value if pairs else "–"


def _quality(comparison: Comparison) -> Part:
    rows = [
        (
            standing.contender.name,
            _score(standing, "bleu"),
            _difference(standing, "bleu"),
            _score(standing, "chrf"),
            _difference(standing, "chrf"),
            standing.results["accuracy"].value,
        )
        for standing in comparison.standings
    ]
    return Part(
        title="Quality",
        note=f"{comparison.num_examples:,} test sentences; ± is the 95 % confidence interval. Δ is "
        f"the difference to {comparison.names[0]}, with the p-value of a paired bootstrap test: "
        "below 0.05 it is hardly chance. It speaks of these test sentences, not of what another "
        "seed would have learned.",
        head=("run", "BLEU", "Δ BLEU", "chrF", "Δ chrF", "exact %"),
        rows=rows,
    )


def _cost(comparison: Comparison) -> Part:
    rows = [
        (run.name, run.decoder, *_making(standing), run.metrics["hardware"])
        for standing in comparison.standings
        for run in [standing.contender]
    ]
    return Part(
        title="Cost",
        note="Seconds of training, and target tokens trained on a second, validation included.",
        head=("run", "decoder", "parameters", "seconds", "tokens/s", "hardware"),
        rows=rows,
    )


def _lengths(comparison: Comparison) -> Part:
    groups = [standing.by_length for standing in comparison.standings]
    frequent = [[group for group in own if group.count >= LEAST] for own in groups]
    return Part(
        title="BLEU by source length",
        note=f"The curve leaves out lengths with fewer than {LEAST} sentences.",
        head=("source words", "sentences", *comparison.names),
        rows=_rows(groups, "bleu"),
        chart=Chart("words in the source", "BLEU", _series(comparison, frequent, "bleu")),
    )


def _positions(comparison: Comparison) -> Part:
    groups = [standing.by_position for standing in comparison.standings]
    series = _series(comparison, groups, "accuracy")
    return Part(
        title="Accuracy by target position",
        note="How many words of the reference each model foretells, given the right ones before "
        "them (teacher forcing), by tenths of the target, punctuation left out. A model that "
        "remembers less and less of the source falls behind towards the end.",
        head=("of the target", *comparison.names),
        rows=[(name, *values) for name, _, *values in _rows(groups, "accuracy")],
        chart=Chart("place in the target, in percent", "words foretold, %", series),
    )


def _phenomena(comparison: Comparison, score: str, title: str) -> Part:
    return Part(
        title=title,
        note="A sentence counts for each phenomenon it is tagged with.",
        head=("phenomenon", "sentences", *comparison.names),
        rows=_rows([standing.by_tag for standing in comparison.standings], score),
    )


def _verbs(comparison: Comparison) -> Part:
    rows = []
    for standing in comparison.standings:
        assert standing.verbs is not None
        detail = standing.verbs.detail
        counts = (int(detail[name]) for name in ("verbs", "in_place", "misplaced", "missing"))
        rows.append((standing.contender.name, *counts, standing.verbs.value))
    return Part(
        title="Verbs at the end of dependent clauses",
        note="In sentences tagged verb_last, the last word of each German dependent clause of the "
        "reference, as punctuation and opening word show it. In place: a clause of the output ends "
        "in it. Misplaced: the output has it elsewhere, an error of word order. Missing: it is not "
        "there.",
        head=("run", "verbs", "in place", "misplaced", "missing", "misplaced %"),
        rows=rows,
    )


def _score(standing: Standing, name: str) -> str:
    result = standing.results[name]
    if result.interval is None:
        return f"{result.value:.2f}"
    low, high = result.interval
    return f"{result.value:.2f} ± {(high - low) / 2:.2f}"


def _difference(standing: Standing, name: str) -> str:
    found = standing.differences.get(name)
    return f"{found.value:+.2f} (p {found.p_value:.3f})" if found else "–"


def _rows(groups: Sequence[Sequence[Group]], score: str) -> list[tuple[object, ...]]:
    """Return a row for each group: its name, its size, and the score of each run."""
    return [
        (same[0].name, same[0].count, *(group.results[score].value for group in same))
        for same in zip(*groups, strict=True)
    ]


def _series(
    comparison: Comparison, groups: Sequence[Sequence[Group]], score: str
) -> dict[str, Points]:
    return {
        name: [(one.position, one.results[score].value) for one in own if one.position is not None]
        for name, own in zip(comparison.names, groups, strict=True)
    }
