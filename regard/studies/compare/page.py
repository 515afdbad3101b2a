"""A comparison as one self-contained page."""

from regard.plots import curves
from regard.plots.figure import to_svg
from regard.plots.html import Section, facts, figure, join, paragraph, report, table
from regard.plots.inputs import Markup
from regard.studies.compare.comparison import Comparison
from regard.studies.compare.disagreement import Disagreement
from regard.studies.compare.sections import Part, find_parts


def comparison_page(comparison: Comparison, *, title: str = "") -> Markup:
    """Write a comparison as HTML.

    Args:
        comparison: What was found.
        title: The heading of the page; the names of the runs if not given.
    """
    names = comparison.names
    sections = [Section(part.title, _part(part)) for part in find_parts(comparison)]
    if comparison.disagreements:
        note = paragraph(
            "The sentences with the greatest distance between the best and the worst answer, by "
            "chrF of the single sentence."
        )
        shown = [_disagreement(found, names) for found in comparison.disagreements]
        sections.append(Section("Where the outputs differ most", join(note, *shown)))
    sections.append(Section("How it was made", _making(comparison)))
    return report(title or " · ".join(names), sections)


def _part(part: Part) -> Markup:
    pieces = [paragraph(part.note)]
    chart = part.chart
    if chart is not None and not chart.is_empty:
        drawing = curves.lines(chart.series, x_label=chart.x_label, y_label=chart.y_label)
        pieces.append(figure(to_svg(drawing)))
    return join(*pieces, table(part.head, part.rows))


def _disagreement(found: Disagreement, names: list[str]) -> Markup:
    # The reference is the measure of all the others, so its own chrF is 100.
    rows = [("reference", found.reference, 100.0)]
    rows += zip(names, found.outputs, found.values, strict=True)
    return join(paragraph(found.source), table(["run", "output", "chrF"], rows))


def _making(comparison: Comparison) -> Markup:
    values: dict[str, object] = {}
    first, last = comparison.standings[0], comparison.standings[-1]
    for result in first.results.values():
        values[result.name] = result.signature
    for difference in last.differences.values():
        values[f"Δ {difference.name}"] = difference.signature
    values["command"] = comparison.making["command"]
    for standing in comparison.standings:
        metrics = standing.contender.metrics
        made = ", ".join(
            f"{what} {metrics[what]}" for what in ("commit", "torch", "seed") if metrics[what] != ""
        )
        values[standing.contender.name] = f"{metrics['command']} ({made})"
    return facts(values)
