"""One self-contained HTML page: cards, facts, tables and figures under headings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.plots.inputs import Markup, escape

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    """The heading; empty for none."""
    html: Markup
    """Pieces made by the functions of this file, joined."""


def report(title: str, sections: Sequence[Section]) -> Markup:
    """Write a page that needs nothing but itself: no script, no font, no address elsewhere.

    Args:
        title: The heading of the page.
        sections: What stands on it, in order.
    """
    titles = [f"<h2>{escape(one.title)}</h2>\n" if one.title else "" for one in sections]
    body = "\n".join(
        f"<section>\n{heading}{section.html}\n</section>"
        for heading, section in zip(titles, sections, strict=True)
    )
    return Markup(
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n"
        f'<body>\n<main>\n<h1 dir="auto">{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n'
    )


def join(*parts: Markup) -> Markup:
    """Put pieces of a page one below the other."""
    return Markup("\n".join(parts))


def paragraph(text: str) -> Markup:
    """Write plain text as a paragraph."""
    return Markup(f'<p dir="auto">{escape(text)}</p>')


def cards(values: Mapping[str, object]) -> Markup:
    """Show a few numbers large, each with its name: what a reader looks for first."""
    return _pairs("cards", values)


def facts(values: Mapping[str, object]) -> Markup:
    """List names and values line by line: how something was made."""
    return _pairs("facts", values)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """Write a table; numbers stand on the right, text runs the way its script does.

    Args:
        head: Names of the columns.
        rows: Numbers or text. A float gets two decimals; where others are wanted, give text.
    """
    # A column's name stands on the side of its first value.
    sides = zip(head, rows[0] if rows else head, strict=True)
    heads = "".join(_cell("th", name, value) for name, value in sides)
    body = "\n".join(f"<tr>{''.join(_cell('td', one, one) for one in row)}</tr>" for row in rows)
    return Markup(
        f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def figure(svg: Markup, caption: str = "") -> Markup:
    """Place a drawing; one that is wider than the page can be scrolled.

    Args:
        svg: A drawing made by this package.
        caption: A line below it.
    """
    words = f'\n<figcaption dir="auto">{escape(caption)}</figcaption>' if caption else ""
    return Markup(f'<figure><div class="wide">\n{svg}</div>{words}</figure>')


def page(svg: Markup, title: str) -> Markup:
    """Write a page that holds a single plot."""
    return report(title, [Section("", figure(svg))])


def _pairs(kind: str, values: Mapping[str, object]) -> Markup:
    items = "\n".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in values.items()
    )
    return Markup(f'<dl class="{kind}">\n{items}\n</dl>')


def _cell(tag: str, value: object, like: object) -> str:
    """Write a cell that stands on the side of a value like this."""
    attribute = 'class="number"' if isinstance(like, int | float) else 'dir="auto"'
    return f"<{tag} {attribute}>{escape(show_value(value))}</{tag}>"


def show_value(value: object) -> object:
    """Return a number as text, a float with two decimals; other values as they are."""
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value


if __name__ == "__main__":
    samples = [["ein Hund läuft .", "a dog runs .", "a dog is running ."]]
    sections = [
        Section("", cards({"BLEU": "37.92", "parameters": "12.4 M"})),
        Section("Samples", table(["source", "reference", "output"], samples)),
    ]
    print(report("A made-up run", sections))
