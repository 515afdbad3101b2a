"""Where a model looked in an image or a video, as tiles that can be drawn."""

from collections.abc import Sequence

from regard.plots.grid import COLUMNS, Tile
from regard.plots.inputs import check_image, fit
from regard.plots.overlay import film, strip
from regard.tasks.prediction import AttentionMap, Picture


def look_through(found: AttentionMap) -> list[Tile]:
    """Show an image or a video, then where each piece of the target looked in it.

    Args:
        found: A map with its image; what it has over a text is left out. Where there is no grid, or
            a model has no attention, the image stands alone; where there is no image, nothing does.
    """
    if found.image is None or found.still is None:
        return []
    if found.grid is None or not found.weights.shape[0]:
        return [Tile(fit(check_image(found.still)))]
    words, _ = found.labels
    cells = found.mean()[:, found.num_words :]  # (T, P)
    grids = cells.reshape(-1, *found.grid).numpy()  # (T, Y, X), of a video (T, F, Y, X)
    return (film if _is_video(found) else strip)(found.image, words, grids)


def hang(pictures: Sequence[Picture]) -> list[Tile]:
    """Show images side by side, with what is said of each."""
    return [Tile(fit(check_image(one.image)), one.caption, one.note) for one in pictures]


def num_columns(found: AttentionMap) -> int:
    """Return how many tiles stand in a row: of a video, all its frames."""
    return len(found.image) if _is_video(found) and found.image is not None else COLUMNS


def _is_video(found: AttentionMap) -> bool:
    return found.image is not None and found.image.ndim == 4
