"""Opening of images from files, archives and data sets, as upright 8-bit images."""

import warnings
from importlib import import_module

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from regard.core.errors import DataError
from regard.data.archives import open_bytes
from regard.data.formats import HEAD_BYTES, IMAGE, Format
from regard.data.image.builtin import NUMBERED_IMAGES, split_reference, to_image
from regard.data.image.pillow import open_with_pillow

MAX_PIXELS = 50_000_000
"""Default maximum number of pixels of an image."""

_WHITES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("I;16", "I;16L", "I;16B", "I;16N"), (2**16 - 1,)),
    "I": (2**16 - 1, 2**31 - 1),
    "F": (1.0, 2**8 - 1, 2**16 - 1),
}
"""Possible values of white in Pillow's modes of over 8 bits; the first that no pixel exceeds."""


def open_image(reference: str, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Open an image, upright, as 8-bit grey (mode L) or colour (mode RGB).

    Transparent images are put on white, animations give their first frame, and values of over 8
    bits are scaled down. The format is detected from the content of a file, not from its name.

    Args:
        reference: A path, a path through a `.zip` file to a member of it, or a numbered image of
            a data set such as `fashion-mnist/train/17`.
        max_pixels: Maximum of width times height; a larger image is an error before decoding.
    """
    if numbered := split_reference(reference):
        name, argument = numbered
        return to_image(NUMBERED_IMAGES[name]([argument])[0])
    with open_bytes(reference, what="an image") as file, warnings.catch_warnings():
        # Pillow warns of large images, which `max_pixels` limits, and of unusual metadata.
        warnings.simplefilter("ignore")
        head = file.read(HEAD_BYTES)
        file.seek(0)
        IMAGE.check(reference, head)
        try:
            _register_opener(IMAGE.by_signature(head))
            image = open_with_pillow(file)
            check_size(reference, image.size, max_pixels)
            image.load()
            return to_8_bits(ImageOps.exif_transpose(image))
        except (DataError, MemoryError):
            raise
        except Image.DecompressionBombError:
            limit = 2 * (Image.MAX_IMAGE_PIXELS or 0)
            raise DataError(
                f"{reference} has over {limit / 1e6:,.1f} megapixels, but `max_pixels` allows "
                f"{min(max_pixels, limit) / 1e6:,.1f}. Make the image smaller."
            ) from None
        except UnidentifiedImageError:
            raise IMAGE.mismatch(reference, head) from None
        # Decoders raise many kinds of exceptions for damaged files.
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise DataError(f"{reference} is a damaged image ({reason}).") from None


def _register_opener(row: Format | None) -> None:
    """Let Pillow open the formats of an optional package, which is imported on first use."""
    if row is not None and row.package:
        import_module(row.package).register_heif_opener()


def check_size(reference: str, size: tuple[int, int], max_pixels: int) -> None:
    """Raise `DataError` if an image has more pixels than it may have."""
    width, height = size
    if width * height > max_pixels:
        raise DataError(
            f"{reference} has {width:,} × {height:,} pixels, {width * height / 1e6:,.1f} "
            f"megapixels, but `max_pixels` allows {max_pixels / 1e6:,.1f}. "
            "Make the image smaller, or raise `max_pixels`."
        )


def to_8_bits(image: Image.Image) -> Image.Image:
    """Convert an image of any mode to 8-bit grey or colour, on white."""
    if image.mode in _WHITES:
        return _scale(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


def _scale(image: Image.Image) -> Image.Image:
    """Scale grey pixels of over 8 bits to 8 bits; Pillow would clip them to white."""
    pixels = np.nan_to_num(np.asarray(image, np.float64), posinf=0.0, neginf=0.0)
    highest = float(pixels.max())
    white = next((white for white in _WHITES[image.mode] if highest <= white), highest)
    return Image.fromarray(np.clip(pixels * (255 / white), 0, 255).round().astype(np.uint8))
