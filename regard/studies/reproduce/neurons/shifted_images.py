"""Accuracy of a multi-layer perceptron and of a convolutional network on shifted images."""

from pathlib import Path

import torch
from matplotlib.ticker import MaxNLocator
from torch import Tensor, nn
from torch.nn.functional import conv2d, cosine_similarity

from regard.core.specs import ImageSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.encoders.image import ImageEncoderConfig
from regard.models.encoders.mlp import MlpEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.plots.curves import lines
from regard.plots.heatmap import matrices
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.neurons.fitting import (
    Sample,
    accuracy,
    count_parameters,
    fit,
    seeded,
)

SIDE = 20
SHAPES = ("square", "disk", "triangle", "cross", "ring")
MIN_RADIUS, MAX_RADIUS = 3.0, 4.5
NOISE = 0.15
MAX_SHIFT = 5
"""Largest shift in pixels; the shape stays inside the image."""

ENCODERS: dict[str, ImageEncoderConfig] = {
    "MLP": MlpEncoderConfig(dims=(64, 64)),
    "CNN": ResnetEncoderConfig(widths=(12,), blocks=(2,)),
    "CNN with stride 2": ResnetEncoderConfig(widths=(8, 16), blocks=(1, 1)),
}
MLP, CNN, STRIDED = ENCODERS
MLP_SHIFTED = "MLP, trained on shifted images"
NUM_STEPS, BATCH_SIZE, RATE = 300, 64, 0.003
NUM_TEST = 1_000


class ImageClassifier(nn.Module):
    """Classifier of images without padding."""

    def __init__(self, encoder: ImageEncoderConfig) -> None:
        super().__init__()
        config = ClassifierConfig(encoder=encoder, pooling="summary", dropout=0.0)
        self.classifier = Classifier(config, ImageSpec(1, SIDE, SIDE), len(SHAPES))

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits (B, V) of images (B, 1, Y, X)."""
        return self.classifier(images, images.new_ones(len(images), 1, dtype=torch.bool))


def shifted_images(seed: int, _folder: Path) -> Findings:
    """Train on centred images, and test on shifted ones.

    Args:
        seed: Seed of the images and of the initial weights.
    """
    models = {name: train(encoder, seed, max_shift=0) for name, encoder in ENCODERS.items()}
    models[MLP_SHIFTED] = train(ENCODERS[MLP], seed, max_shift=MAX_SHIFT)
    images, labels = sample_shapes(NUM_TEST, torch.Generator().manual_seed(seed + 1_000))
    by_shift = {
        name: {
            shift: sum(accuracy(model, moved, labels) for moved in shift_all_ways(images, shift))
            / 4
            for shift in range(MAX_SHIFT + 1)
        }
        for name, model in models.items()
    }
    image = sample_shapes(1, torch.Generator().manual_seed(0))[0]
    maps = feature_maps(image, seed)
    return Findings(
        tables={
            "Test accuracy in % by shift": {
                name: {
                    "parameters": count_parameters(models[name]),
                    **{f"{shift} px": value for shift, value in row.items()},
                }
                for name, row in by_shift.items()
            }
        },
        claims=_claims(by_shift, maps, _hidden_cosine(models[MLP], images)),
        plots={"shifted-images": _plot(by_shift), "shifted-images-features": _maps(maps)},
    )


def sample_shapes(
    num_images: int, generator: torch.Generator, *, max_shift: int = 0
) -> tuple[Tensor, Tensor]:
    """Render shapes of random size in the centre of noisy images.

    Args:
        num_images: Number of images.
        generator: Source of random numbers.
        max_shift: Largest random shift from the centre, in pixels.

    Returns:
        Images (B, 1, Y, X) and the indices of their shapes (B,).
    """
    labels = torch.randint(len(SHAPES), (num_images,), generator=generator)
    size = torch.rand(num_images, 1, 1, generator=generator)
    radius = MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * size
    shift = torch.randint(-max_shift, max_shift + 1, (2, num_images, 1, 1), generator=generator)
    axis = torch.arange(SIDE) - (SIDE - 1) / 2
    y, x = axis[:, None] - shift[0], axis[None] - shift[1]  # (B, Y, X) each
    distance = (x**2 + y**2).sqrt()
    is_inside = torch.stack(
        [
            torch.maximum(x.abs(), y.abs()) < 0.85 * radius,
            distance < radius,
            (y.abs() < radius) & (x.abs() < (y + radius) / 2),
            (torch.minimum(x.abs(), y.abs()) < 1.2) & (torch.maximum(x.abs(), y.abs()) < radius),
            (distance < radius) & (distance > radius - 2),
        ]
    )  # (V, B, Y, X)
    images = is_inside[labels, torch.arange(num_images)].float()
    return (images + NOISE * torch.randn(images.shape, generator=generator))[:, None], labels


def shift_all_ways(images: Tensor, shift: int) -> list[Tensor]:
    """Shift images up, down, left and right; what leaves on one side enters on the other."""
    return [images.roll(sign * shift, dims=dimension) for dimension in (2, 3) for sign in (-1, 1)]


def train(encoder: ImageEncoderConfig, seed: int, *, max_shift: int) -> ImageClassifier:
    """Train a classifier on shapes.

    Args:
        encoder: Hyperparameters of the encoder.
        seed: Seed of the images and of the initial weights.
        max_shift: Largest shift of the training images, in pixels.
    """
    with seeded(seed):
        model = ImageClassifier(encoder)
    sample: Sample = lambda generator: sample_shapes(  # noqa: E731
        BATCH_SIZE, generator, max_shift=max_shift
    )
    fit(model, sample, num_steps=NUM_STEPS, rate=RATE, seed=seed)
    return model


def feature_maps(image: Tensor, seed: int) -> dict[str, Tensor]:
    """Convolve an image (1, 1, Y, X) and the shifted image with the same 3 x 3 weights."""
    weights = torch.randn(1, 1, 3, 3, generator=torch.Generator().manual_seed(seed))
    shifted = image.roll(MAX_SHIFT, dims=3)
    return {
        "image": image[0, 0],
        "convolution": conv2d(image, weights, padding=1)[0, 0],
        "shifted image": shifted[0, 0],
        "convolution of it": conv2d(shifted, weights, padding=1)[0, 0],
    }


def _hidden_cosine(model: ImageClassifier, images: Tensor) -> float:
    """Return the mean cosine of the encoder's states of images and shifted images."""
    mask = torch.ones(len(images), 1).bool()
    with torch.no_grad():
        before, after = (
            model.classifier.encoder(values, mask).summary
            for values in (images, images.roll(MAX_SHIFT, dims=3))
        )
    return float(cosine_similarity(before, after).mean())


def _claims(
    by_shift: dict[str, dict[int, float]], maps: dict[str, Tensor], cosine: float
) -> tuple[Claim, ...]:
    mlp, cnn, strided, shifted = (by_shift[name] for name in (MLP, CNN, STRIDED, MLP_SHIFTED))
    chance = 100 / len(SHAPES)
    # At the edges, padding and the pixels that enter on the other side differ.
    inner = slice(MAX_SHIFT + 1, SIDE - 1)
    moved = maps["convolution"].roll(MAX_SHIFT, dims=1)
    difference = float((moved - maps["convolution of it"])[1:-1, inner].abs().max())
    return (
        Claim(
            "Both networks classify centred images.",
            f"MLP {mlp[0]:.1f} %, CNN {cnn[0]:.1f} %.",
            min(mlp[0], cnn[0]) > 95,
        ),
        Claim(
            "A shift of the input makes the MLP fail.",
            f"At {MAX_SHIFT} pixels, {mlp[MAX_SHIFT]:.1f} % are correct; chance is {chance:.0f} %.",
            mlp[MAX_SHIFT] < 50,
        ),
        Claim(
            "The CNN classifies shifted images as well as centred ones.",
            f"At {MAX_SHIFT} pixels, {cnn[MAX_SHIFT]:.1f} % are correct.",
            cnn[MAX_SHIFT] > cnn[0] - 3,
        ),
        Claim(
            "A convolution with stride 2 skips positions: only even shifts change nothing.",
            f"At 4 and {MAX_SHIFT} pixels, {strided[4]:.1f} and {strided[MAX_SHIFT]:.1f} % are "
            "correct.",
            strided[4] > strided[0] - 3 > strided[MAX_SHIFT],
        ),
        Claim(
            "An MLP must learn every position from examples.",
            f"Trained on images with random shifts, it has {shifted[MAX_SHIFT]:.1f} % at "
            f"{MAX_SHIFT} pixels, but {shifted[0]:.1f} % instead of {mlp[0]:.1f} % at the centre "
            "after the same number of steps.",
            shifted[MAX_SHIFT] > mlp[MAX_SHIFT] and shifted[0] < mlp[0],
        ),
        Claim(
            "Convolution is equivariant: a shift of the input shifts the output, and no more.",
            f"The largest difference inside the image is {difference:.1g}; the activations of the "
            f"MLP before and after the shift have a mean cosine of {cosine:.2f}.",
            difference < 1e-5 and cosine < 0.9,
        ),
    )


def _plot(by_shift: dict[str, dict[int, float]]) -> Plot:
    figure = lines(
        {name: [(float(x), y) for x, y in row.items()] for name, row in by_shift.items()},
        x_label="shift of the test images in pixels",
        y_label="accuracy in %",
    )
    figure.axes[0].set_ylim(0, 103)
    caption = (
        f"Accuracy on {NUM_TEST:,} test images, shifted up, down, left and right (mean). MLP and "
        "CNN were trained on centred images; chance is 20 %."
    )
    return Plot(figure, caption)


def _maps(maps: dict[str, Tensor]) -> Plot:
    figure = matrices(
        {name: table.numpy() for name, table in maps.items()},
        x_label="column",
        y_label="row",
        columns=2,
    )
    for axes in figure.axes[: len(maps)]:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    caption = (
        f"An image and its convolution with 3 x 3 weights, before and after a shift by {MAX_SHIFT} "
        "columns: the convolution of the shifted image is the shifted convolution."
    )
    return Plot(figure, caption)
