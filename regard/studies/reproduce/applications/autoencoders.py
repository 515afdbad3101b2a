"""Uses of autoencoders of small images: reduction, denoising, anomalies and others (7.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.metrics.vision.images import psnr
from regard.models.pca import Pca
from regard.plots.grid import Tile, sheet
from regard.plots.inputs import check_image, resize_image
from regard.runs.request import Request
from regard.studies.anomalies import DetectionResult, detect_anomalies
from regard.studies.autoencoder import AutoencoderRun
from regard.studies.compression.codec import CompressionResult, Compressor
from regard.studies.compression.jpeg import Rate, jpeg_rates, plot_rates
from regard.studies.reproduce.applications.drawn_shapes import DATA, NORMAL, write_images
from regard.studies.reproduce.applications.few_labels import LinearClassifier, draw_per_label
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.running import train_run
from regard.tasks.image_to_image.metrics import GeneratedImages, to_bytes
from regard.tasks.latents import sample_latents
from regard.tasks.prediction import to_image

DIM, CODE_DIM = 4, 16
"""Dimension of the latents and number of principal components; number of integer latents."""

RAW_BITS = 8
"""Bits per pixel of an uncompressed grey image."""

NUM_LABELLED, NUM_DRAWS = 10, 20
"""Labelled images of each shape, and how often they are drawn."""

NUM_SAMPLES = 200
NUM_SHOWN = 6
"""Images per row of the plot."""

IMAGES = (
    "data.source.size=16",
    "data.target.size=16",
    "data.source.channels=1",
    "data.target.channels=1",
    "train.max_epochs=0",
)
"""Overrides of all models."""

SIZES = (
    *IMAGES,
    f"model.encoder.bottleneck.dim={DIM}",
    "model.encoder.encoder.widths=[12,24,32,48]",
    "model.generator.widths=[32,24,16]",
    "train.max_steps=600",
    "train.validate_every=600",
    "train.optimizer.learning_rate=0.004",
)
"""Overrides of the models with a bottleneck."""


@dataclass(frozen=True)
class Model:
    """Recipe of an autoencoder and its overrides."""

    recipe: str
    settings: tuple[str, ...] = SIZES


PLAIN, DENOISING, ROUNDED, VARIATIONAL = "plain", "denoising", "rounded", "variational"
MODELS = {
    PLAIN: Model("hinton2006-laptop"),
    DENOISING: Model(
        "vincent2008-laptop",
        (*IMAGES, "train.max_steps=400", "train.validate_every=400"),
    ),
    ROUNDED: Model(
        "hinton2006-laptop",
        (
            "model.encoder.bottleneck.kind=rounded",
            *SIZES,
            f"model.encoder.bottleneck.dim={CODE_DIM}",
        ),
    ),
    VARIATIONAL: Model("kingma2014-laptop"),
}


@dataclass(frozen=True)
class Compression:
    """Size and quality of integer codes, and of JPEG."""

    codes: CompressionResult
    jpeg: list[Rate]

    @property
    def smallest_jpeg(self) -> Rate:
        """The smallest JPEG file of at least the same quality; otherwise the best one."""
        good = [rate for rate in self.jpeg if rate.psnr >= self.codes.quality.value]
        return good[0] if good else self.jpeg[-1]


@dataclass(frozen=True)
class Samples:
    """Images decoded from sampled latents, and how they differ from data."""

    images: Tensor
    """(B, C, Y, X), in 8 bits."""
    distance: float
    """Mean squared error to the nearest training image."""
    test_distance: float
    """The same of test images."""
    spread: float
    """Mean squared difference of two images."""
    test_spread: float
    """The same of test images."""


@dataclass(frozen=True)
class Results:
    """Results of all uses."""

    errors: dict[str, float]
    """Mean squared error of reconstructions by method."""
    denoised: GeneratedImages
    anomalies: DetectionResult
    compression: Compression
    samples: Samples
    accuracies: dict[str, float]
    """Accuracy of a linear classifier with few labels, by its features."""


def autoencoders(seed: int, folder: Path) -> Findings:
    """Train four autoencoders and use them.

    Args:
        seed: Seed of the images, models and samples.
        folder: Folder of the images and runs.
    """
    write_images(folder / DATA, seed)
    denoiser, *runs = (
        _train(name, folder, seed) for name in (DENOISING, PLAIN, ROUNDED, VARIATIONAL)
    )
    plain, rounded, variational = (AutoencoderRun(run, "cpu") for run in runs)
    test = plain.splits.test
    sources = [example.source for example in test]
    pca = plain.fit_pca(DIM)
    results = Results(
        errors={
            "autoencoder": float(plain.reconstruction_errors(sources).mean()),
            "PCA": float(plain.pca_errors(sources, pca).mean()),
        },
        denoised=AutoencoderRun(denoiser, "cpu").task.generate(test, has_noise=True),
        anomalies=detect_anomalies(
            plain, str(folder / DATA / "test"), str(folder / DATA / "anomalies")
        ),
        compression=_compress(rounded, sources, folder),
        samples=_sample(variational, sources, seed),
        accuracies=_classify(plain, variational, pca=pca, seed=seed),
    )
    return Findings(
        tables={"Uses of autoencoders": _rows(results)},
        claims=_claims(results),
        plots={
            "autoencoders": _sheet(plain, sources, results),
            "autoencoders-anomalies": Plot(
                results.anomalies.plot(),
                "Reconstruction errors of circles, squares and diamonds (normal) and of crosses "
                f"and rings (anomalies), and how well they are separated. Latents and PCA: {DIM} "
                "dimensions.",
            ),
            "autoencoders-compression": _rate_plot(results.compression),
        },
    )


def _train(name: str, folder: Path, seed: int) -> Path:
    model, out = MODELS[name], folder / name
    parts = [(str(folder / DATA / part),) for part in ("train", "valid", "test")]
    request = Request(
        data=parts[0],
        valid=parts[1],
        test=parts[2],
        recipe=model.recipe,
        settings=model.settings,
        out=out,
    )
    train_run(request, seed)
    return folder / f"{name}-{seed}"


def _compress(rounded: AutoencoderRun, sources: list[str], folder: Path) -> Compression:
    codes = Compressor(rounded).compress(sources, folder / "images.rgd")
    return Compression(codes, jpeg_rates(rounded.pixels(sources).numpy()))


def _sample(variational: AutoencoderRun, sources: Sequence[str], seed: int) -> Samples:
    """Decode samples of the standard normal prior and compare them with images."""
    latents = sample_latents(variational.task, NUM_SAMPLES, seed=seed)
    images: Tensor = variational.task.decode(latents)
    train = variational.vectors(variational.fit_sources)
    vectors = images.flatten(1).float() / 255
    test = variational.vectors(sources)
    return Samples(
        images,
        distance=nearest_distance(vectors, train),
        test_distance=nearest_distance(test, train),
        spread=mean_difference(vectors),
        test_spread=mean_difference(test),
    )


def nearest_distance(vectors: Tensor, others: Tensor) -> float:
    """Return the mean squared difference of vectors (B, D) to their nearest of others (N, D)."""
    nearest = torch.cdist(vectors, others).min(1).values  # (B,)
    return float(nearest.square().mean()) / vectors.shape[1]


def mean_difference(vectors: Tensor) -> float:
    """Return the mean squared difference of two different vectors of (B, D)."""
    return float(torch.pdist(vectors).square().mean()) / vectors.shape[1]


def _classify(
    plain: AutoencoderRun, variational: AutoencoderRun, *, pca: Pca, seed: int
) -> dict[str, float]:
    """Train linear classifiers with few labels on different features; return accuracies."""
    train, test = ([one.source for one in part] for part in (plain.splits.train, plain.splits.test))
    features = {
        "pixels": plain.vectors,
        "PCA": lambda sources: pca.encode(plain.vectors(sources)),
        PLAIN: plain.task.encode,
        VARIATIONAL: variational.task.encode,
    }
    accuracies = {}
    for name, encode in features.items():
        inputs, test_inputs = (encode(part) for part in (train, test))
        labels, test_labels = (_labels(part) for part in (train, test))
        generator = torch.Generator().manual_seed(seed)
        correct = []
        for _ in range(NUM_DRAWS):
            rows = draw_per_label(labels, NUM_LABELLED, generator)
            classifier = LinearClassifier.fit(inputs[rows], labels[rows])
            correct.append((classifier.predict(test_inputs) == test_labels).float().mean())
        accuracies[name] = 100 * float(torch.stack(correct).mean())
    return accuracies


def _labels(sources: Sequence[str]) -> Tensor:
    return torch.tensor([NORMAL.index(Path(source).parent.name) for source in sources])


def _rows(results: Results) -> dict[str, dict[str, float | str]]:
    """Return a table: use, measure, value of the autoencoder, and of a baseline."""
    errors, samples, accuracies = results.errors, results.samples, results.accuracies
    codes, jpeg = results.compression.codes, results.compression.smallest_jpeg
    noisy, denoised = _noise_psnr(results.denoised)
    detectors = results.anomalies
    cells: dict[str, tuple[str, float, float, str]] = {
        "dimensionality reduction": (
            "squared error",
            errors["autoencoder"],
            errors["PCA"],
            f"PCA, {DIM} components",
        ),
        "denoising": ("PSNR, dB", denoised, noisy, "noisy image"),
        "anomaly detection": (
            "area under the ROC curve",
            detectors.autoencoder.roc_auc.value,
            detectors.pca.roc_auc.value,
            f"PCA, {DIM} components",
        ),
        "compression": (
            f"bits per pixel at {codes.quality.value:.1f} dB",
            codes.bits_per_pixel,
            jpeg.bits_per_pixel,
            f"JPEG at {jpeg.psnr:.1f} dB",
        ),
        "generation": (
            "squared difference to the nearest training image",
            samples.distance,
            samples.test_distance,
            "test images",
        ),
        f"{NUM_LABELLED} labels per shape": (
            "accuracy, %, plain latents",
            accuracies[PLAIN],
            accuracies["pixels"],
            "pixels",
        ),
        f"{NUM_LABELLED} labels per shape, regularised": (
            "accuracy, %, variational latents",
            accuracies[VARIATIONAL],
            accuracies["PCA"],
            f"PCA, {DIM} components",
        ),
    }
    columns = ("measure", "autoencoder", "baseline", "baseline is")
    return {use: dict(zip(columns, row, strict=True)) for use, row in cells.items()}


def _noise_psnr(images: GeneratedImages) -> tuple[float, float]:
    """Return the PSNR of noisy and of denoised images."""
    noisy, denoised = (
        psnr(one.numpy(), images.targets.numpy()).value for one in (images.sources, images.pixels)
    )
    return noisy, denoised


def _claims(results: Results) -> tuple[Claim, ...]:
    errors, samples, accuracies = results.errors, results.samples, results.accuracies
    codes, jpeg = results.compression.codes, results.compression.smallest_jpeg
    noisy, denoised = _noise_psnr(results.denoised)
    by_model, by_pca = (
        one.roc_auc.value for one in (results.anomalies.autoencoder, results.anomalies.pca)
    )
    return (
        Claim(
            f"{DIM} latents keep more of an image than {DIM} principal components.",
            f"squared error {errors['autoencoder']:.4f}, PCA {errors['PCA']:.4f}",
            errors["autoencoder"] < errors["PCA"],
        ),
        Claim(
            "An autoencoder that is trained on noisy images removes noise.",
            f"PSNR {noisy:.1f} dB before and {denoised:.1f} dB after",
            denoised > noisy + 3,
        ),
        Claim(
            "Shapes that were not in the training data have larger reconstruction errors.",
            f"area under the ROC curve {by_model:.3f} (chance 0.5, PCA {by_pca:.3f})",
            by_model > 0.8,
        ),
        Claim(
            "Integer latents compress images to fewer bits than JPEG of the same quality.",
            f"{codes.bits_per_pixel:.3f} instead of {RAW_BITS} bits per pixel at "
            f"{codes.quality.value:.1f} dB; JPEG {jpeg.bits_per_pixel:.3f} at {jpeg.psnr:.1f} dB",
            codes.bits_per_pixel < jpeg.bits_per_pixel,
        ),
        Claim(
            "A variational autoencoder generates images like those of the training data, and "
            "different ones.",
            f"squared difference to the nearest training image {samples.distance:.4f}, of test "
            f"images {samples.test_distance:.4f}; between two samples {samples.spread:.3f}, "
            f"between two test images {samples.test_spread:.3f}",
            samples.distance < 2 * samples.test_distance
            and samples.spread > 0.5 * samples.test_spread,
        ),
        Claim(
            "Regularised latents are better features than pixels where labels are few.",
            f"{accuracies[VARIATIONAL]:.1f} % with variational latents, {accuracies[PLAIN]:.1f} % "
            f"with plain ones, {accuracies['pixels']:.1f} % with pixels, {accuracies['PCA']:.1f} % "
            "with PCA",
            accuracies[VARIATIONAL] > accuracies["pixels"] + 2,
        ),
    )


def _sheet(plain: AutoencoderRun, sources: list[str], results: Results) -> Plot:
    """Plot a row of images for each step, of test images at equal distances."""
    step = len(sources) // NUM_SHOWN
    shown = sources[::step][:NUM_SHOWN]
    denoised = results.denoised
    pca = plain.fit_pca(DIM)
    by_pca = to_bytes(pca.decode(pca.encode(plain.vectors(shown))))
    rows = {
        "original": plain.pixels(shown),
        f"{DIM} latents": plain.reconstruct(shown),
        "PCA": by_pca.view(-1, *denoised.targets.shape[1:]),
        "noisy": denoised.sources[::step],
        "denoised": denoised.pixels[::step],
        "sampled": results.samples.images,
    }
    tiles = [_tile(image, name) for name, images in rows.items() for image in images[:NUM_SHOWN]]
    return Plot(
        sheet(tiles, columns=NUM_SHOWN),
        f"Every {step}th test image: original, reconstructed from {DIM} latents, reconstructed "
        f"from {DIM} principal components, with noise, and denoised. Last row: decoded from "
        "sampled latents of the variational autoencoder.",
    )


def _tile(image: Tensor, caption: str) -> Tile:
    return Tile(resize_image(check_image(to_image(image))), caption)


def _rate_plot(compression: Compression) -> Plot:
    codes = compression.codes
    point = [(codes.bits_per_pixel, codes.quality.value)]
    return Plot(
        plot_rates(compression.jpeg, {"autoencoder": point}),
        f"Size and quality of {codes.num_images} test images as codes of {CODE_DIM} integers, and "
        "as JPEG at several qualities, all images on one sheet.",
    )
