"""Plots of one prediction together, printed to a terminal or saved as a file or a page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from regard.core.files import write_text
from regard.interpret.faithfulness import Faithfulness
from regard.plots import beam_tree, figure, grid, heatmap, html, spectrogram, terminal
from regard.plots.grid import COLUMNS, Tile
from regard.plots.html import Section
from regard.plots.inputs import Markup, label
from regard.plots.spectrogram import AudioAlignment
from regard.plots.tree import Branch
from regard.plots.word_maps import WordMap, word_maps

SMALL = 12
"""Number of rows up to which several maps are plotted with large cells on a page."""

MAX_TITLE = 120
"""Maximum width of the heading of a page; the whole output is among its facts."""


@dataclass(frozen=True)
class OutputTokens:
    """The tokens of an output with their probabilities."""

    tokens: tuple[str, ...]
    """The tokens."""
    log_probs: tuple[float, ...]
    """Log-probability of each token."""
    alternatives: tuple[tuple[tuple[str, float], ...], ...] = ()
    """The most likely tokens at each position with their log-probabilities, if asked for."""

    def lines(self) -> list[str]:
        """Return lines of text: all probabilities in one, or one per token with alternatives."""
        shown = [_show(pair) for pair in zip(self.tokens, self.log_probs, strict=True)]
        if not self.alternatives:
            return [f"Probabilities: {'  '.join(shown)}"]
        width = max(map(cell_len, (*shown, "Token")))
        lines = [
            f"{set_cell_size(one, width)} │ {'  '.join(map(_show, several))}"
            for one, several in zip(shown, self.alternatives, strict=True)
        ]
        return [f"{set_cell_size('Token', width)} │ Most likely tokens", *lines]

    def table(self) -> Markup:
        """Return a table for a page."""
        head = ["token", "probability", *["most likely tokens"] * bool(self.alternatives)]
        rows = [
            [_name(token), math.exp(value), *["  ".join(map(_show, several)) for several in others]]
            for token, value, *others in zip(
                self.tokens, self.log_probs, *[self.alternatives] * bool(self.alternatives),
                strict=True,
            )
        ]  # fmt: skip
        return html.table(head, rows, float_format=".3f")


@dataclass(frozen=True)
class Visualization:
    """Plots of one prediction, for the terminal or for files."""

    title: str
    lines: tuple[str, ...] = ()
    """Text printed above the plots."""
    audio: AudioAlignment | None = None
    """Attention over a recording."""
    words: Mapping[str, WordMap] = field(default_factory=dict)
    """Maps between words, by title."""
    tiles: list[Tile] = field(default_factory=list)
    """Attention over an image or a video, or images alone."""
    columns: int = COLUMNS
    """Number of tiles or of maps per row in a file."""
    branches: tuple[Branch, ...] = ()
    """Beam tree of a search."""
    tokens: OutputTokens | None = None
    """The tokens of the output."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Names and values on a page, such as the model and the source."""
    measures: Mapping[str, Faithfulness] = field(default_factory=dict)
    """Faithfulness by method."""
    notes: Sequence[str] = ()
    """Explanations on a page."""

    def print(self, console: Console) -> None:
        """Print the plots to a terminal, with colours where it has them."""
        has_color = bool(console.color_system)
        if self.audio is not None:
            console.print(spectrogram.in_terminal(self.audio, has_color=has_color))
        for title, one in self.words.items():
            if len(self.words) > 1:
                console.print(title, style="bold", markup=False, highlight=False)
            shown = terminal.heatmap(one.weights, one.rows, one.columns, divider=one.divider)
            console.print(shown)
        if self.branches:
            console.print(beam_tree.tree_text(self.branches), soft_wrap=True)
        if self.tiles:
            render = terminal.half_blocks if has_color else terminal.shades
            console.print(terminal.mosaic(self.tiles, render=render, width=console.width))
        lines = [] if self.tokens is None else self.tokens.lines()
        for method, found in self.measures.items():
            measured = f"comprehensiveness {found.comprehensiveness:.3f}"
            lines.append(f"{method}: {measured}, sufficiency {found.sufficiency:.3f}")
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    def save(self, path: Path) -> list[Path]:
        """Save the plots as .png, .svg, .pdf or .html, and return the files.

        A page holds all plots with the model, the source and the tokens. In the other formats,
        attention over the words beside an image gets a file of its own.
        """
        if figure.check_path(path) == ".html":
            write_text(path, self.page())
            return [path]
        saved = []
        if self.audio is not None:
            spectrogram.save(path, self.audio, title=self.title)
            saved.append(path)
        if self.words:
            saved.append(path.with_stem(f"{path.stem}-words") if self.tiles else path)
            self._save_words(saved[-1])
        if self.branches:
            plotted = beam_tree.beam_tree(self.branches, title=self.title)
            figure.save(path, plotted, title=self.title)
            saved.append(path)
        if self.tiles:
            sheet = grid.sheet(self.tiles, columns=self.columns, title=self.title)
            figure.save(path, sheet, title=self.title)
            saved.append(path)
        return saved

    def page(self) -> Markup:
        """Return a self-contained page with all plots."""
        sections = [Section("", html.facts(self.facts))] if self.facts else []
        sections += [Section("", html.paragraph(note)) for note in self.notes]
        sections += [Section("", html.figure(plot, caption)) for plot, caption in self._figures()]
        if self.measures:
            rows = [
                [name, one.comprehensiveness, one.sufficiency]
                for name, one in self.measures.items()
            ]
            head = ["method", "comprehensiveness (↑)", "sufficiency (↓)"]
            table = html.table(head, rows, float_format=".3f")
            sections.append(Section("Faithfulness", table))
        if self.tokens is not None:
            sections.append(Section("Token probabilities", self.tokens.table()))
        return html.report(label(self.title, MAX_TITLE), sections)

    def _figures(self) -> list[tuple[Markup, str]]:
        """Return the plots with their captions, as SVG."""
        figures = []
        if self.audio is not None:
            figures.append((figure.to_svg(spectrogram.plot(self.audio)), ""))
        if self.tiles:
            figures.append((figure.to_svg(grid.sheet(self.tiles, columns=self.columns)), ""))
        if self.branches:
            figures.append((figure.to_svg(beam_tree.beam_tree(self.branches)), ""))
        if self.columns > 1 and len(self.words) > 1:
            figures.append((figure.to_svg(word_maps(self.words, columns=self.columns)), ""))
        else:
            for title, one in self.words.items():
                svg = heatmap.svg(one.weights, one.rows, one.columns, divider=one.divider)
                figures.append((svg, title if len(self.words) > 1 else ""))
        return figures

    def _save_words(self, path: Path) -> None:
        if len(self.words) > 1:
            figure.save(path, word_maps(self.words, columns=self.columns), title=self.title)
            return
        ((_, one),) = self.words.items()
        heatmap.save(path, one.weights, one.rows, columns=one.columns, divider=one.divider)


def _show(pair: tuple[str, float]) -> str:
    token, value = pair
    return f"{_name(token)} {math.exp(value):.2f}"


def _name(token: str) -> str:
    return label(token.removeprefix("▁") or token)
