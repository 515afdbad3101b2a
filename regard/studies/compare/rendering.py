"""Rendering of a comparison as one self-contained HTML page or as terminal tables."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from regard.core.terminal import clean
from regard.plots import curves
from regard.plots.figure import to_svg
from regard.plots.html import Section, facts, figure, join, paragraph, report, show_value, table
from regard.plots.inputs import Markup
from regard.studies.compare.comparison import Comparison, Disagreement
from regard.studies.compare.sections import ComparisonSection, comparison_sections

DISAGREEMENTS = "Largest differences between outputs"


def comparison_page(comparison: Comparison, *, title: str = "") -> Markup:
    """Return a comparison as an HTML page.

    Args:
        comparison: The comparison.
        title: Heading of the page; the names of the runs if not given.
    """
    names = comparison.names
    sections = [
        Section(section.title, _render_section(section))
        for section in comparison_sections(comparison)
    ]
    if comparison.disagreements:
        note = paragraph(
            "Test sentences with the largest difference between the best and the worst output, by "
            "sentence-level chrF."
        )
        tables = [_disagreement(sentence, names) for sentence in comparison.disagreements]
        sections.append(Section(DISAGREEMENTS, join(note, *tables)))
    sections.append(Section("Provenance", _provenance(comparison)))
    return report(title or " · ".join(names), sections)


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print a comparison: tables, disagreements and metric signatures."""
    for section in comparison_sections(comparison):
        console.print(section_table(section))
    if comparison.disagreements:
        console.print(Text(DISAGREEMENTS, style="bold"))
        for sentence in comparison.disagreements:
            console.print(_disagreement_table(sentence, comparison.names))
    for name, signature in _signatures(comparison).items():
        console.print(Text(clean(f"{name}: {signature}")), soft_wrap=True)


def section_table(section: ComparisonSection) -> RenderableType:
    """Return one section as a table under its title and note."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    numeric = [isinstance(value, int | float) for value in section.rows[0]]
    for name, is_number in zip(section.head, numeric, strict=True):
        table.add_column(Text(clean(name)), justify="right" if is_number else "left")
    for row in section.rows:
        table.add_row(*(Text(clean(show_value(value))) for value in row))
    return Group(
        Text(clean(section.title), style="bold"),
        Text(clean(section.note), style="dim"),
        table,
        Text(),
    )


def _render_section(section: ComparisonSection) -> Markup:
    content = [paragraph(section.note)]
    chart = section.chart
    if chart is not None and any(chart.series.values()):
        plot = curves.lines(chart.series, x_label=chart.x_label, y_label=chart.y_label)
        content.append(figure(to_svg(plot)))
    return join(*content, table(section.head, section.rows))


def _disagreement(sentence: Disagreement, names: list[str]) -> Markup:
    # chrF of the reference against itself is 100.
    rows = [("reference", sentence.reference, 100.0)]
    rows += zip(names, sentence.outputs, sentence.values, strict=True)
    return join(paragraph(sentence.source), table(["run", "output", "chrF"], rows))


def _disagreement_table(sentence: Disagreement, names: list[str]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row(Text("source", style="dim"), "", Text(clean(sentence.source)))
    table.add_row(Text("reference", style="dim"), "", Text(clean(sentence.reference)))
    for name, value, output in zip(names, sentence.values, sentence.outputs, strict=True):
        table.add_row(Text(clean(name)), f"{value:.1f}", Text(clean(output)))
    return Group(table, Text())


def _signatures(comparison: Comparison) -> dict[str, str]:
    first, last = comparison.runs[0], comparison.runs[-1]
    return {result.name: result.signature for result in first.results.values()} | {
        f"Δ {difference.name}": difference.signature for difference in last.differences.values()
    }


def _provenance(comparison: Comparison) -> Markup:
    values = _signatures(comparison) | {"command": comparison.provenance["command"]}
    for scored in comparison.runs:
        metrics = scored.run.metrics
        details = ", ".join(
            f"{key} {metrics[key]}" for key in ("commit", "torch", "seed") if metrics[key] != ""
        )
        values[scored.run.name] = f"{metrics['command']} ({details})"
    return facts(values)
