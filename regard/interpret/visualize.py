"""Plots of one prediction: attention over words, an image or a recording, or predicted images."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.core.errors import ConfigError
from regard.plots import figure, grid, heatmap, spectrogram, terminal
from regard.plots.figure import to_svg
from regard.plots.grid import COLUMNS, Tile
from regard.plots.inputs import Markup, check_image, resize_image
from regard.plots.overlay import image_attention, video_attention
from regard.plots.spectrogram import AudioAlignment
from regard.tasks.base import Attends, GeneratesImages, Task
from regard.tasks.generation.attention import CTC
from regard.tasks.prediction import AttentionMap


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
    """Tiles of a row in a file."""

    def print(self, console: Console) -> None:
        """Print the plots to a terminal, with colours where it has them."""
        has_color = bool(console.color_system)
        if self.audio is not None:
            console.print(spectrogram.in_terminal(self.audio, has_color=has_color))
        if self.words is not None:
            console.print(terminal.heatmap(self.words.mean().numpy(), *self.words.labels))
        if self.tiles:
            render = terminal.half_blocks if has_color else terminal.shades
            console.print(terminal.mosaic(self.tiles, render=render, width=console.width))

    def save(self, path: Path) -> list[Path]:
        """Save the plots as .png, .svg or .html, and return the files.

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
        if self.tiles:
            drawn = grid.sheet(self.tiles, columns=self.columns, title=self.title)
            figure.save(path, drawn, title=self.title)
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
    if isinstance(task, GeneratesImages):
        pictures = task.image_grid(source, target)
        tiles = [
            Tile(resize_image(check_image(one.image)), one.caption, one.note) for one in pictures
        ]
        return Visualization(source, tiles=tiles)
    if not isinstance(task, Attends):
        raise ConfigError(
            "Nothing of this run can be shown: it has no attention. Its task is "
            f"'{task.recipe.task}'."
        )
    example, text = task.example_to_show(source, target)
    (found,) = task.attend([example])
    if not found.weights.shape[0]:
        raise ConfigError(
            "This run holds a model without attention, so there is no map to show. "
            f"Its answer is '{text}'."
        )
    audio = spectrogram_of(found)
    return Visualization(
        text,
        (text,) if found.kind == "attention" else (text, f"Shown: {found.kind}"),
        audio=audio,
        words=found.text_only() if found.num_text_tokens and audio is None else None,
        tiles=attention_tiles(found),
        columns=num_columns(found),
    )


def attention_svg(found: AttentionMap) -> Markup:
    """Plot attention over a recording, an image or a text as SVG."""
    if (audio := spectrogram_of(found)) is not None:
        return to_svg(spectrogram.plot(audio))
    if tiles := attention_tiles(found):
        return to_svg(grid.sheet(tiles, columns=num_columns(found)))
    return heatmap.svg(found.mean().numpy(), *found.labels)


def spectrogram_of(found: AttentionMap) -> AudioAlignment | None:
    """Return a map over a recording as `plots.spectrogram` takes it; None for other maps.

    The end token is left out, as it has no time. A label is the only row of its map and stays.
    """
    recording = found.recording
    if recording is None:
        return None
    words, _ = found.labels
    num = max(1, len(words) - 1)
    weights = {found.kind: found.mean()} if found.weights.shape[0] else {}
    if recording.aligned is not None:
        weights[CTC] = recording.aligned
    return AudioAlignment(
        frames=recording.frames,
        seconds=len(recording.frames) * recording.hop,
        words=tuple(words[:num]),
        roads={name: own[:num].numpy() for name, own in weights.items()},
        step=recording.frames_per_position * recording.hop,
    )


def attention_tiles(found: AttentionMap) -> list[Tile]:
    """Return an image or a video, then the attention of each target token over it.

    Args:
        found: Attention with its image; the part over a text is left out. Without a grid or without
            attention, only the image is returned; without an image, nothing.
    """
    if found.image is None or found.still is None:
        return []
    if found.grid is None or not found.weights.shape[0]:
        return [Tile(resize_image(check_image(found.still)))]
    words, _ = found.labels
    cells = found.mean()[:, found.num_text_tokens :]  # (T, P)
    grids = cells.reshape(-1, *found.grid).numpy()  # (T, Y, X), of a video (T, F, Y, X)
    return (video_attention if _is_video(found) else image_attention)(found.image, words, grids)


def num_columns(found: AttentionMap) -> int:
    """Return the number of tiles of a row: of a video, all its frames."""
    return len(found.image) if _is_video(found) and found.image is not None else COLUMNS


def _is_video(found: AttentionMap) -> bool:
    return found.image is not None and found.image.ndim == 4
