"""One self-contained HTML page: cards, facts, tables and figures under headings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.plots.inputs import Markup, escape

_STYLE = """\
:root{color-scheme:light dark;--ground:#f6f8fa;--panel:#fff;--ink:#1f2933;--quiet:#5b6875;\
--line:#e1e6eb}
@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--panel:#161b22;--ink:#e6edf3;\
--quiet:#9aa6b2;--line:#2b333d}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,\
"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.75rem;line-height:1.25;margin:0 0 1.5rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.75rem 0 .9rem}
p{max-width:42rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.5rem,1fr));gap:.75rem;margin:0}
.cards div{background:var(--panel);border:1px solid var(--line);border-radius:10px;\
padding:.8rem 1rem;display:flex;flex-direction:column-reverse;\
justify-content:flex-end}
.cards dt,figcaption,th{color:var(--quiet);font-size:.85rem}
.cards dd{margin:0;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums;\
overflow-wrap:anywhere}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1.25rem;margin:0}
.facts div{display:contents}
.facts dt{color:var(--quiet)}
.facts dd{margin:0;overflow-wrap:anywhere;font:.88rem/1.7 ui-monospace,SFMono-Regular,Menlo,\
Consolas,monospace}
.wide{overflow-x:auto;background:var(--panel);border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%}
th,td{padding:.55rem .9rem;text-align:start;vertical-align:top;border-top:1px solid var(--line)}
thead th{border-top:0;font-weight:500;white-space:nowrap}
td{min-width:9rem;font-size:.95rem;overflow-wrap:anywhere}
.number{min-width:5rem;text-align:end;font-variant-numeric:tabular-nums;white-space:nowrap}
figure{margin:0 0 1.25rem}
figure .wide{padding:.75rem}
figure svg{display:block;margin:auto}
figure .regard-figure{max-width:100%;height:auto}
figcaption{margin:.5rem .25rem 0}
@media(max-width:36rem){.facts{grid-template-columns:1fr;gap:0}.facts dd{margin-bottom:.6rem}}
@media print{body{background:none}.wide{overflow:visible}h2{break-after:avoid}}"""


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
    body = "\n".join(
        "<section>\n"
        + (f"<h2>{escape(section.title)}</h2>\n" if section.title else "")
        + f"{section.html}\n</section>"
        for section in sections
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
    numeric = [_is_number(value) for value in rows[0]] if rows else [False] * len(head)
    heads = "".join(_cell("th", name, is_number=n) for name, n in zip(head, numeric, strict=True))
    lines = [
        "<tr>" + "".join(_cell("td", value, is_number=_is_number(value)) for value in row) + "</tr>"
        for row in rows
    ]
    return Markup(
        f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody>\n</table></div>"
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _cell(tag: str, value: object, *, is_number: bool) -> str:
    attribute = 'class="number"' if is_number else 'dir="auto"'
    return f"<{tag} {attribute}>{escape(show_value(value))}</{tag}>"


def show_value(value: object) -> object:
    """Return a number as text, a float with two decimals; other values as they are."""
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value


if __name__ == "__main__":
    numbers = {"BLEU": "37.92", "chrF": "58.10", "parameters": "12.4 M"}
    samples = [["ein Hund läuft .", "a dog runs .", "a dog is running ."]]
    made = {"command": "regard train pairs.tsv", "seed": 1}
    sections = [
        Section("", cards(numbers)),
        Section("Samples", table(["source", "reference", "output"], samples)),
        Section("How it was made", facts(made)),
    ]
    print(report("A made-up run", sections))
