"""Small images inside JSON files, so that pages can be drawn from these alone."""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.plots.grid import Tile
from regard.plots.inputs import resize_image


def to_text(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    """Write bytes of any shape as text."""
    packed = base64.b85encode(zlib.compress(np.ascontiguousarray(pixels).tobytes(), 9))
    return {"shape": list(pixels.shape), "bytes": packed.decode("ascii")}


def to_array(value: dict[str, Any]) -> NDArray[np.uint8]:
    """Read what `to_text` wrote."""
    data = zlib.decompress(base64.b85decode(value["bytes"]))
    return np.frombuffer(data, np.uint8).reshape(value["shape"])


def tile(value: dict[str, Any], caption: str = "", note: str = "") -> Tile:
    """Return an image (Y, X, 3), written as text, with words below."""
    return Tile(resize_image(to_array(value)), caption, note)


def tiles(value: dict[str, Any]) -> list[Tile]:
    """Return images (B, C, Y, X), written as text, as tiles without words."""
    images = to_array(value).transpose(0, 2, 3, 1)
    return [Tile(resize_image(np.broadcast_to(one, (*one.shape[:2], 3)))) for one in images]
