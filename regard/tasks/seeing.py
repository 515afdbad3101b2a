"""Where a model looked in an image, as tiles that can be drawn."""

from regard.tasks.prediction import AttentionMap
from regard.visual.overlay import strip
from regard.visual.pixels import check_image, fit
from regard.visual.tiles import Tile


def look_through(found: AttentionMap) -> list[Tile]:
    """Show an image, then where each piece of the target looked in it.

    Args:
        found: A map with its image; what it has over a text is left out. Where there is no grid, or
            a model has no attention, the image stands alone; where there is no image, nothing does.
    """
    if found.image is None:
        return []
    if found.grid is None or not found.weights.shape[0]:
        return [Tile(fit(check_image(found.image)))]
    words, _ = found.labels
    cells = found.mean()[:, found.num_words :]  # (T, P)
    grids = cells.reshape(-1, *found.grid)  # (T, Y, X)
    return strip(found.image, words, grids.numpy())
