"""Plots of one prediction: attention over words, an image or a recording, or predicted images."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.core.errors import ConfigError
from regard.data.modality import check_source
from regard.plots import beam_tree, figure, grid, heatmap, spectrogram, terminal
from regard.plots.grid import COLUMNS, Tile
from regard.plots.inputs import check_image, resize_image
from regard.plots.spectrogram import AudioAlignment
from regard.plots.tree import Branch
from regard.tasks.attention_plots import attention_tiles, num_columns, spectrogram_of
from regard.tasks.base import Attends, GeneratesImages, Task
from regard.tasks.decoding.beam_tree import find_beam_tree
from regard.tasks.prediction import AttentionMap
from regard.tasks.reading import find_modality


@dataclass(frozen=True)
class Visualization:
    """Plots of one prediction, for the terminal or for files."""

    title: str
    lines: tuple[str, ...] = ()
    """Text printed above the plots."""
    audio: AudioAlignment | None = None
    """Attention over a recording."""
    words: AttentionMap | None = None
    """Attention over a text."""
    tiles: list[Tile] = field(default_factory=list)
    """Attention over an image or a video, or images alone."""
    columns: int = COLUMNS
    """Number of tiles per row in a file."""
    branches: tuple[Branch, ...] = ()
    """Beam tree of a search."""

    def print(self, console: Console) -> None:
        """Print the plots to a terminal, with colours where it has them."""
        has_color = bool(console.color_system)
        if self.audio is not None:
            console.print(spectrogram.in_terminal(self.audio, has_color=has_color))
        if self.words is not None:
            console.print(terminal.heatmap(self.words.mean().numpy(), *self.words.labels))
        if self.branches:
            console.print(beam_tree.tree_text(self.branches), soft_wrap=True)
        if self.tiles:
            render = terminal.half_blocks if has_color else terminal.shades
            console.print(terminal.mosaic(self.tiles, render=render, width=console.width))

    def save(self, path: Path) -> list[Path]:
        """Save the plots as .png, .svg, .pdf or .html, and return the files.

        Attention over the words beside an image gets a file of its own.
        """
        saved = []
        if self.audio is not None:
            spectrogram.save(path, self.audio, title=self.title)
            saved.append(path)
        if self.words is not None:
            weights, (rows, columns) = self.words.mean().numpy(), self.words.labels
            saved.append(path.with_stem(f"{path.stem}-words") if self.tiles else path)
            heatmap.save(saved[-1], weights, rows, columns=columns)
        if self.branches:
            plotted = beam_tree.beam_tree(self.branches, title=self.title)
            figure.save(path, plotted, title=self.title)
            saved.append(path)
        if self.tiles:
            sheet = grid.sheet(self.tiles, columns=self.columns, title=self.title)
            figure.save(path, sheet, title=self.title)
            saved.append(path)
        return saved


def visualize(task: Task[Any], source: str, target: str | None = None) -> Visualization:
    """Predict for one source and return the plots of the prediction.

    Args:
        task: The run.
        source: A text, or the file of an image, a video or a recording.
        target: A target in place of the predicted one.
    """
    if not source.strip():
        raise ConfigError("The sentence must have at least one word, but is empty.")
    check_source(source, find_modality(task.recipe.data))
    if isinstance(task, GeneratesImages):
        images = task.image_grid(source, target)
        tiles = [
            Tile(resize_image(check_image(one.image)), one.caption, one.note) for one in images
        ]
        return Visualization(source, tiles=tiles)
    if not isinstance(task, Attends):
        raise ConfigError(
            "`show` needs a run with attention or with images as output, but the task of this run "
            f"is '{task.recipe.task}'."
        )
    example, text = task.example_to_show(source, target)
    (attention,) = task.attend([example])
    if not attention.weights.shape[0]:
        raise ConfigError(
            "The model of this run has no attention, so there is no map to show. "
            f"Its prediction is '{text}'."
        )
    audio = spectrogram_of(attention)
    return Visualization(
        text,
        (text,) if attention.kind == "attention" else (text, f"Shown: {attention.kind}"),
        audio=audio,
        words=attention.text_only() if attention.num_text_tokens and audio is None else None,
        tiles=attention_tiles(attention),
        columns=num_columns(attention),
    )


def visualize_tree(task: Task[Any], source: str) -> Visualization:
    """Search for the target of one source and return the plot of the beam tree.

    Args:
        task: The run.
        source: A text, or the file of an image, a video or a recording.
    """
    tree = find_beam_tree(task, source)
    text = tree.predictions[0].text
    title = f"{source} → {text}" if find_modality(task.recipe.data).medium is None else text
    return Visualization(title, (text,), branches=tree.branches)
