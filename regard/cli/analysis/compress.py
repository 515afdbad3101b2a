"""`regard compress` and `regard restore`: learned image compression and decompression."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.options import OUT, Device, OneRun


def compress(
    run: OneRun,
    images: Annotated[
        str,
        Argument(metavar="IMAGES", help="An image, a folder, a .zip or a data set (test part)."),
    ],
    out: Annotated[Path, Option(*OUT, help="The file to write.")],
    plot: Annotated[
        Path | None, Option("--plot", help="A file to plot to: .png, .svg, .pdf or .html.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Compress images to one file with an autoencoder.

    The codes of the images are entropy-coded; they must be integers
    (`model.encoder.bottleneck.kind=rounded`). The order of images is kept, their names are not.
    """
    from regard.core.errors import ConfigError
    from regard.plots.figure import check_path, save
    from regard.studies.autoencoder import AutoencoderRun
    from regard.studies.compression.codec import Compressor
    from regard.studies.compression.jpeg import jpeg_rates, plot_rates, psnr_at

    if out.is_dir():
        raise ConfigError(f"`--out` must be a file, but {out} is a folder.")
    if plot is not None:
        check_path(plot, "--plot")
    autoencoder = AutoencoderRun(run, device)
    sources = autoencoder.read_sources(images)
    result = Compressor(autoencoder).compress(sources, out)
    print(result)
    if plot is not None:
        rates = jpeg_rates(autoencoder.pixels(sources).numpy())
        jpeg_psnr = psnr_at(rates, result.bits_per_pixel)
        quality = f"{jpeg_psnr:.2f} dB" if jpeg_psnr else "none: no JPEG file is that small"
        print(f"JPEG at equal size: {quality}")
        point = (result.bits_per_pixel, result.quality.value)
        save(plot, plot_rates(rates, {run: [point]}), title="Size and quality")
        print(plot)
    print(out)


def restore(
    run: OneRun,
    file: Annotated[Path, Argument(metavar="FILE", help="A file written by `regard compress`.")],
    out: Annotated[Path, Option(*OUT, help="A folder for the images: 00000.png and so on.")],
    device: Device = "auto",
) -> None:
    """Restore the images of a file that the same run compressed."""
    from regard.core.errors import ConfigError
    from regard.studies.autoencoder import AutoencoderRun
    from regard.studies.compression.codec import Compressor, save_images

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"`--out` must be a new or an empty folder, but {out} is not.")
    images = Compressor(AutoencoderRun(run, device)).restore(file)
    save_images(images, out)
    print(f"{len(images):,} images in {out}")
