"""What finished autoencoders of images have to tell: codes, odd items, sizes, and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from results.pixels import to_text
from torch import Tensor

from regard.metrics.representation.roc import roc_curve
from regard.metrics.vision.images import mse
from regard.models.bottlenecks import VariationalBottleneck
from regard.models.encoders.bottleneck import BottleneckEncoder
from regard.plots.scatter import MAX_POINTS
from regard.studies.anomalies import Detector, detect_anomalies
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression import jpeg
from regard.studies.compression.codec import Compressor
from regard.studies.reduction import reduce
from regard.tasks.image_to_image.metrics import to_bytes
from regard.tasks.latents import interpolate, sample_latents

NUM_SHOWN = 8
NUM_DRAWN = 40
NUM_STEPS = 8
NUM_POINTS = 100
"""Points of a curve, and numbers that stand for a distribution."""
NUM_COMPRESSED = 2_000
"""Test images that are compressed, the first ones."""


def of_picture(place: Path, data: str, *, is_shown: bool) -> dict[str, Any]:
    """Tell what an autoencoder or another drawer of images makes of test images.

    Args:
        place: Its run folder.
        data: What it is asked about: the test side.
        is_shown: Whether its images may be shown.
    """
    autoencoder = AutoencoderRun(place)
    sources = autoencoder.read_sources(data)
    encoder = autoencoder.task.model.encoder
    found: dict[str, Any] = {"code": None}
    if is_shown:
        found["rows"] = [show(autoencoder.task, source) for source in sources[:NUM_SHOWN]]
    if not isinstance(encoder, BottleneckEncoder):
        return found
    found["code"] = autoencoder.latent_dim
    found["pca"] = _rival_error(autoencoder, sources)
    found["planes"] = _planes(autoencoder, data)
    if isinstance(encoder.bottleneck, VariationalBottleneck) and is_shown:
        found["drawn"] = to_text(
            autoencoder.task.decode(sample_latents(autoencoder.task, NUM_DRAWN)).numpy()
        )
        first, last = autoencoder.task.encode(sources[:2])
        between = autoencoder.task.decode(interpolate(first, last, NUM_STEPS))
        found["between"] = to_text(between.numpy())
    return found


def _planes(autoencoder: AutoencoderRun, data: str) -> dict[str, Any]:
    """Tell of two dimensions; where each code is a place already, also where some dots lie."""
    found = reduce(autoencoder, data)
    numbers: dict[str, Any] = {name: plane.to_dict() for name, plane in found.projections.items()}
    if autoencoder.latent_dim == 2:
        every = max(1, len(found.labels) // MAX_POINTS)
        for name, plane in found.projections.items():
            numbers[name]["places"] = [_rounded(place) for place in plane.points.numpy()[::every]]
            numbers[name]["labels"] = found.labels[::every]
    return numbers


def show(task: Any, source: str, target: str | None = None) -> list[dict[str, Any]]:
    """Return what is read, what is drawn and what is right, each with its words."""
    return [
        {"image": to_text(shown.image), "caption": shown.caption, "note": shown.note}
        for shown in task.image_grid(source, target)
    ]


def _rival_error(autoencoder: AutoencoderRun, sources: list[str]) -> dict[str, Any]:
    """Return the error of principal components, as many as a code has numbers."""
    rival = autoencoder.fit_pca(autoencoder.latent_dim)
    back = to_bytes(rival.decode(rival.encode(autoencoder.vectors(sources))))
    right = autoencoder.pixels(sources)
    return mse(back.reshape(right.shape).numpy(), right.numpy(), num_bootstrap=200).to_dict()


def of_anomalies(place: Path, normal: str, odd: str) -> dict[str, Any]:
    """Tell how well a run tells odd images from normal ones, with enough to draw it again."""
    found = detect_anomalies(AutoencoderRun(place), normal, odd)
    return {
        **found.to_dict(),
        "normal": normal,
        "odd": odd,
        "drawn": {"autoencoder": _thinned(found.autoencoder), "pca": _thinned(found.pca)},
    }


def _thinned(judge: Detector) -> dict[str, Any]:
    shares = np.linspace(0, 1, NUM_POINTS)
    curve = np.array(roc_curve(judge.normal, judge.anomalous))
    kept = np.unique(np.linspace(0, len(curve) - 1, NUM_POINTS).astype(int))
    return {
        "normal": _rounded(np.quantile(judge.normal, shares)),
        "odd": _rounded(np.quantile(judge.anomalous, shares)),
        "alarms": _rounded(curve[kept, 0]),
        "found": _rounded(curve[kept, 1]),
    }


def _rounded(numbers: NDArray[np.float64]) -> list[float]:
    return [float(f"{number:.5g}") for number in numbers]


def of_compression(place: Path, data: str) -> dict[str, Any]:
    """Tell how small a run makes images and how much of them is left."""
    autoencoder = AutoencoderRun(place)
    sources = autoencoder.read_sources(data)[:NUM_COMPRESSED]
    compressor = Compressor(autoencoder)
    found = compressor.compress(sources, place / "test.rgd")
    levels = len(compressor.tables[0])
    pixels = autoencoder.pixels(sources)
    num_pixels = pixels.shape[2] * pixels.shape[3]
    return {
        "images": found.num_images,
        "bytes": found.num_bytes,
        "bits_per_pixel": found.bits_per_pixel,
        "plain_bits_per_pixel": autoencoder.latent_dim * float(np.log2(levels)) / num_pixels,
        "psnr": found.quality.to_dict(),
        "code": autoencoder.latent_dim,
        "form": "x".join(map(str, pixels.shape[1:])),
    }


def of_jpeg(place: Path, data: str) -> dict[str, Any]:
    """Tell what JPEG makes of the same images, at every quality that is worth it."""
    autoencoder = AutoencoderRun(place, "cpu")
    pixels: Tensor = autoencoder.pixels(autoencoder.read_sources(data)[:NUM_COMPRESSED])
    with torch.inference_mode():
        rates = jpeg.jpeg_rates(pixels.numpy())
    return {
        "data": data,
        "form": "x".join(map(str, pixels.shape[1:])),
        "rates": [
            {
                "bits_per_pixel": rate.bits_per_pixel,
                "psnr": rate.psnr,
                "bytes": rate.num_bytes,
                "setting": rate.setting,
            }
            for rate in rates
        ],
    }
