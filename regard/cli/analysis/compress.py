"""`regard compress` and `regard restore`: images as a few bytes, and back."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, OneRun, Plot


def compress(
    run: OneRun,
    images: Annotated[str, Argument(help="An image, a folder, a .zip or a data set (test part).")],
    out: Annotated[Path, Option(help="The file to write.")],
    picture: Plot = None,
    device: Device = "auto",
) -> None:
    """Write the codes of images to one file, as small as their frequencies allow.

    Codes must be whole numbers (`model.encoder.bottleneck.kind=rounded`). Names of images are not
    kept, only their order.
    """
    from regard.core.errors import ConfigError
    from regard.plots.figure import check_path, save
    from regard.studies.autoencoder import Subject
    from regard.studies.compression.codec import Compressor
    from regard.studies.compression.jpeg import draw, quality_at, rates

    if out.is_dir():
        raise ConfigError(f"`--out` must be a file, but {out} is a folder.")
    if picture is not None:
        check_path(picture, "--picture")
    subject = Subject(run, device)
    sources = subject.read(images)
    found = Compressor(subject).compress(sources, out)
    print(found)
    if picture is not None:
        others = rates(subject.pixels(sources).numpy())
        at_equal_size = quality_at(others, found.bits_per_pixel)
        told = f"{at_equal_size:.2f} dB" if at_equal_size else "none: no file of it is so small"
        print(f"JPEG at equal size: {told}")
        own = (found.bits_per_pixel, found.quality.value)
        save(picture, draw(others, {run: [own]}), title="Size and quality")
        print(picture)
    print(out)


def restore(
    run: OneRun,
    file: Annotated[Path, Argument(help="What `regard compress` wrote.")],
    out: Annotated[Path, Option(help="A folder for the images: 00000.png and so on.")],
    device: Device = "auto",
) -> None:
    """Draw the images of a file that the same run compressed."""
    from regard.core.errors import ConfigError
    from regard.studies.autoencoder import Subject
    from regard.studies.compression.codec import Compressor, save_images

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"`--out` must be a new or an empty folder, but {out} is not.")
    images = Compressor(Subject(run, device)).restore(file)
    save_images(images, out)
    print(f"{len(images):,} images in {out}")
