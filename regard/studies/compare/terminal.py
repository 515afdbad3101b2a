"""A comparison as tables in the terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from regard.plots.inputs import clean
from regard.studies.compare.comparison import Comparison
from regard.studies.compare.disagreement import Disagreement
from regard.studies.compare.sections import Part, find_parts


def show(comparison: Comparison, console: Console) -> None:
    """Print a comparison: its tables, where the outputs differ most, and the signatures."""
    for part in find_parts(comparison):
        console.print(part_table(part))
    if comparison.disagreements:
        console.print(Text("Where the outputs differ most", style="bold"))
        for found in comparison.disagreements:
            console.print(_disagreement(found, comparison.names))
    for result in comparison.standings[0].results.values():
        console.print(Text(f"{result.name}: {result.signature}"), soft_wrap=True)
    for difference in comparison.standings[-1].differences.values():
        console.print(Text(f"Δ {difference.name}: {difference.signature}"), soft_wrap=True)


def part_table(part: Part) -> RenderableType:
    """Write one part as a table under its title and note."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    numeric = [isinstance(value, int | float) for value in part.rows[0]]
    for name, is_number in zip(part.head, numeric, strict=True):
        table.add_column(Text(clean(name)), justify="right" if is_number else "left")
    for row in part.rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    return Group(Text(part.title, style="bold"), Text(part.note, style="dim"), table, Text())


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else clean(value)


def _disagreement(found: Disagreement, names: list[str]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row(Text("source", style="dim"), "", Text(clean(found.source)))
    table.add_row(Text("reference", style="dim"), "", Text(clean(found.reference)))
    for name, value, output in zip(names, found.values, found.outputs, strict=True):
        table.add_row(Text(clean(name)), f"{value:.1f}", Text(clean(output)))
    return Group(table, Text())
