"""Render the sections of a comparison: as one self-contained page, or as terminal tables."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from regard.plots import curves
from regard.plots.figure import to_svg
from regard.plots.html import Section, facts, figure, join, paragraph, report, show_value, table
from regard.plots.inputs import Markup, clean
from regard.studies.compare.comparison import Comparison, Disagreement
from regard.studies.compare.sections import Part, find_parts

DISAGREEMENTS = "Where the outputs differ most"


def comparison_page(comparison: Comparison, *, title: str = "") -> Markup:
    """Return a comparison as an HTML page.

    Args:
        comparison: The measured runs.
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
        sections.append(Section(DISAGREEMENTS, join(note, *shown)))
    sections.append(Section("How it was made", _making(comparison)))
    return report(title or " · ".join(names), sections)


def show(comparison: Comparison, console: Console) -> None:
    """Print a comparison: its tables, where the outputs differ most, and the signatures."""
    for part in find_parts(comparison):
        console.print(part_table(part))
    if comparison.disagreements:
        console.print(Text(DISAGREEMENTS, style="bold"))
        for found in comparison.disagreements:
            console.print(_disagreement_table(found, comparison.names))
    for name, signature in _signatures(comparison).items():
        console.print(Text(f"{name}: {signature}"), soft_wrap=True)


def part_table(part: Part) -> RenderableType:
    """Return one section as a table under its title and note."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    numeric = [isinstance(value, int | float) for value in part.rows[0]]
    for name, is_number in zip(part.head, numeric, strict=True):
        table.add_column(Text(clean(name)), justify="right" if is_number else "left")
    for row in part.rows:
        table.add_row(*(Text(clean(show_value(value))) for value in row))
    return Group(Text(part.title, style="bold"), Text(part.note, style="dim"), table, Text())


def _part(part: Part) -> Markup:
    pieces = [paragraph(part.note)]
    chart = part.chart
    if chart is not None and any(chart.series.values()):
        drawing = curves.lines(chart.series, x_label=chart.x_label, y_label=chart.y_label)
        pieces.append(figure(to_svg(drawing)))
    return join(*pieces, table(part.head, part.rows))


def _disagreement(found: Disagreement, names: list[str]) -> Markup:
    # The reference is the measure of all the others, so its own chrF is 100.
    rows = [("reference", found.reference, 100.0)]
    rows += zip(names, found.outputs, found.values, strict=True)
    return join(paragraph(found.source), table(["run", "output", "chrF"], rows))


def _disagreement_table(found: Disagreement, names: list[str]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row(Text("source", style="dim"), "", Text(clean(found.source)))
    table.add_row(Text("reference", style="dim"), "", Text(clean(found.reference)))
    for name, value, output in zip(names, found.values, found.outputs, strict=True):
        table.add_row(Text(clean(name)), f"{value:.1f}", Text(clean(output)))
    return Group(table, Text())


def _signatures(comparison: Comparison) -> dict[str, str]:
    first, last = comparison.standings[0], comparison.standings[-1]
    return {result.name: result.signature for result in first.results.values()} | {
        f"Δ {difference.name}": difference.signature for difference in last.differences.values()
    }


def _making(comparison: Comparison) -> Markup:
    values = _signatures(comparison) | {"command": comparison.making["command"]}
    for standing in comparison.standings:
        metrics = standing.contender.metrics
        made = ", ".join(
            f"{what} {metrics[what]}" for what in ("commit", "torch", "seed") if metrics[what] != ""
        )
        values[standing.contender.name] = f"{metrics['command']} ({made})"
    return facts(values)
