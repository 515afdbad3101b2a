"""Plots of attention maps: over texts, images, videos and recordings."""

from typing import TYPE_CHECKING

from regard.plots import grid, heatmap, spectrogram
from regard.plots.figure import to_svg
from regard.plots.grid import COLUMNS, Tile
from regard.plots.inputs import Markup, Pixels, check_image, resize_image
from regard.plots.overlay import image_attention, video_attention
from regard.plots.spectrogram import AudioAlignment

if TYPE_CHECKING:
    from regard.tasks.prediction import AttentionMap

CTC = "CTC alignment"
"""The kind of a map of CTC alignments; used if the decoder is not trained."""


def image_svg(image: Pixels) -> Markup:
    """Plot an image as SVG."""
    return to_svg(grid.sheet([Tile(resize_image(check_image(image)))]))


def attention_svg(attention: "AttentionMap") -> Markup:
    """Plot attention over a recording, an image or a text as SVG."""
    if (audio := spectrogram_of(attention)) is not None:
        return to_svg(spectrogram.plot(audio))
    if tiles := attention_tiles(attention):
        return to_svg(grid.sheet(tiles, columns=num_columns(attention)))
    return heatmap.svg(attention.mean().numpy(), *attention.labels)


def spectrogram_of(attention: "AttentionMap") -> AudioAlignment | None:
    """Return a map over a recording as `plots.spectrogram` takes it; None for other maps.

    The end token is dropped, since it has no time. A label is the only row of its map and is kept,
    without a time span.
    """
    recording = attention.recording
    if recording is None:
        return None
    words, _ = attention.labels
    num = max(1, len(words) - 1)
    weights = {attention.kind: attention.mean()} if attention.weights.shape[0] else {}
    if recording.aligned is not None:
        weights[CTC] = recording.aligned
    return AudioAlignment(
        frames=recording.frames,
        seconds=len(recording.frames) * recording.hop,
        words=tuple(words[:num]),
        weights={name: rows[:num].numpy() for name, rows in weights.items()},
        step=recording.frames_per_position * recording.hop,
        has_spans=len(words) > 1,
    )


def attention_tiles(attention: "AttentionMap") -> list[Tile]:
    """Return an image or a video, then the attention of each target token over it.

    Args:
        attention: Attention over an image; the part over a text is ignored. Without a grid or
            without weights, only the image is returned; without an image, an empty list.
    """
    if attention.image is None or attention.still is None:
        return []
    if attention.grid is None or not attention.weights.shape[0]:
        return [Tile(resize_image(check_image(attention.still)))]
    words, _ = attention.labels
    cells = attention.mean()[:, attention.num_text_tokens :]  # (T, P)
    grids = cells.reshape(-1, *attention.grid).numpy()  # (T, Y, X), of a video (T, F, Y, X)
    return (video_attention if _is_video(attention) else image_attention)(
        attention.image, words, grids
    )


def num_columns(attention: "AttentionMap") -> int:
    """Return the number of tiles per row: the number of frames for a video."""
    return len(attention.image) if _is_video(attention) and attention.image is not None else COLUMNS


def _is_video(attention: "AttentionMap") -> bool:
    return attention.image is not None and attention.image.ndim == 4
