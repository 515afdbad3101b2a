"""Numbers of parameters of a dense layer and of a convolution, on a matrix and on images."""

from pathlib import Path

import torch
from matplotlib.ticker import EngFormatter, MaxNLocator, NullFormatter
from torch import Tensor, nn

from regard.core.specs import ImageSpec
from regard.models.encoders.mlp import MlpEncoder, MlpEncoderConfig
from regard.models.encoders.resnet import ResnetEncoder, ResnetEncoderConfig
from regard.plots.curves import scaling
from regard.plots.heatmap import matrices
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.neurons.fitting import count_parameters, seeded

MATRIX = torch.tensor(
    [
        [0.0, 1.0, 0.0, 0.0, 1.0],
        [2.0, 3.0, 3.0, 3.0, 4.0],
        [4.0, 0.0, 1.0, 0.0, 1.0],
        [3.0, 4.0, 2.0, 3.0, 3.0],
    ]
)
"""The matrix of the lecture, (4, 5)."""

KERNEL = 3
SIDES = (8, 16, 32, 64, 128, 256)
WIDTH = 64
"""Neurons of the dense layer, and channels of the convolution, on images."""

DENSE, CONVOLUTION = f"dense, {WIDTH} neurons", f"convolution, {WIDTH} channels"
MLP, RESNET = "MLP encoder", "ResNet encoder"


def dense_and_convolution(seed: int, _folder: Path) -> Findings:
    """Count the parameters of both layers, and write a convolution as a dense layer.

    Args:
        seed: Seed of the weights of the convolution.
    """
    inputs = flatten_by_columns(MATRIX)
    with seeded(seed):
        convolution = nn.Conv2d(1, 1, KERNEL, padding=KERNEL // 2)
    dense = as_dense_layer(convolution, MATRIX.shape)
    difference = _difference(convolution, dense)
    counts = {
        "dense, 20 outputs": count_parameters(nn.Linear(len(inputs), len(inputs))),
        "convolution 3 x 3, 20 outputs": count_parameters(convolution),
    }
    by_side = {side: count_by_model(side) for side in SIDES}
    return Findings(
        tables={
            "Matrix of 4 x 5": {name: {"parameters": count} for name, count in counts.items()},
            "Colour images": {f"{side} x {side} pixels": row for side, row in by_side.items()},
        },
        claims=_claims(inputs, counts, dense, difference=difference, by_side=by_side),
        plots={
            "dense-vs-convolution": _by_size(by_side),
            "dense-vs-convolution-weights": _weights(dense),
        },
    )


def flatten_by_columns(matrix: Tensor) -> Tensor:
    """Return the entries of a matrix (Y, X) as a vector, column after column."""
    return matrix.T.flatten()


def as_dense_layer(convolution: nn.Conv2d, shape: torch.Size) -> nn.Linear:
    """Return the dense layer that computes a convolution of matrices flattened by columns.

    The weights of input j are the outputs for the unit vector j, without the bias.

    Args:
        convolution: Convolution of one channel to one channel that keeps the size.
        shape: Rows and columns of the matrices.
    """
    num_rows, num_columns = shape
    layer = nn.Linear(num_rows * num_columns, num_rows * num_columns).requires_grad_(False)
    units = torch.eye(num_rows * num_columns).view(-1, 1, num_columns, num_rows).mT
    with torch.no_grad():
        assert convolution.bias is not None
        outputs = convolution(units) - convolution.bias[:, None, None]
        layer.weight.copy_(outputs.mT.flatten(1).T)
        layer.bias.fill_(convolution.bias.item())
    return layer


def count_by_model(side: int) -> dict[str, int]:
    """Return the numbers of parameters of layers and encoders for square colour images."""
    spec = ImageSpec(3, side, side)
    # Only shapes are needed: on the meta device, no weights are allocated.
    with torch.device("meta"):
        return {
            DENSE: count_parameters(nn.Linear(3 * side * side, WIDTH)),
            CONVOLUTION: count_parameters(nn.Conv2d(3, WIDTH, KERNEL)),
            MLP: count_parameters(MlpEncoder(MlpEncoderConfig(), spec)),
            RESNET: count_parameters(ResnetEncoder(ResnetEncoderConfig(), spec)),
        }


def _difference(convolution: nn.Conv2d, dense: nn.Linear) -> float:
    with torch.no_grad():
        expected = flatten_by_columns(convolution(MATRIX[None, None])[0, 0])
        return float((dense(flatten_by_columns(MATRIX)) - expected).abs().max())


def _claims(
    inputs: Tensor,
    counts: dict[str, int],
    dense: nn.Linear,
    *,
    difference: float,
    by_side: dict[int, dict[str, int]],
) -> tuple[Claim, ...]:
    shown = " ".join(f"{value:.0f}" for value in inputs[:8])
    dense_count, convolution_count = counts.values()
    num_distinct, num_zeros = (
        len({*dense.weight.flatten().tolist()}),
        int((dense.weight == 0).sum()),
    )
    first, last = by_side[SIDES[0]], by_side[SIDES[-1]]
    growth = (SIDES[-1] // SIDES[0]) ** 2
    return (
        Claim(
            "Flattened by columns, the matrix is 0 2 4 3 1 3 0 4 …: 20 inputs.",
            f"{len(inputs)} inputs: {shown} …",
            len(inputs) == 20 and shown == "0 2 4 3 1 3 0 4",
        ),
        Claim(
            "A dense layer from the matrix to as many outputs has far more parameters.",
            f"{dense_count} parameters (20 · 20 + 20), a 3 x 3 convolution "
            f"{convolution_count} (3 · 3 + 1).",
            dense_count == 420 and convolution_count == 10,
        ),
        Claim(
            "A convolution is a dense layer with shared weights, and zeros elsewhere.",
            f"As a dense layer it has {num_zeros} zeros among {dense.weight.numel()} weights and "
            f"{num_distinct - 1} other values; the outputs differ by at most {difference:.1g}.",
            num_distinct == KERNEL**2 + 1 and difference < 1e-5,
        ),
        Claim(
            "The parameters of a dense layer grow with the number of pixels.",
            f"{SIDES[-1]} x {SIDES[-1]} pixels are {growth} times as many as {SIDES[0]} x "
            f"{SIDES[0]}; the parameters are {last[DENSE] / first[DENSE]:.0f} times as many, "
            f"{last[DENSE]:,}.",
            last[DENSE] / first[DENSE] > 0.9 * growth,
        ),
        Claim(
            "The parameters of a convolution do not depend on the number of pixels.",
            f"{first[CONVOLUTION]:,} and {last[CONVOLUTION]:,}; a whole ResNet encoder has "
            f"{first[RESNET]:,} and {last[RESNET]:,}.",
            first[CONVOLUTION] == last[CONVOLUTION] and first[RESNET] == last[RESNET],
        ),
    )


def _by_size(by_side: dict[int, dict[str, int]]) -> Plot:
    figure = scaling(
        {
            name: [(float(side * side), float(row[name])) for side, row in by_side.items()]
            for name in (DENSE, CONVOLUTION, MLP, RESNET)
        },
        x_label="pixels of a colour image",
        y_label="parameters",
    )
    figure.axes[0].set_yscale("log")
    figure.axes[0].yaxis.set_major_formatter(EngFormatter(sep="\N{HAIR SPACE}"))
    figure.axes[0].yaxis.set_minor_formatter(NullFormatter())
    caption = (
        "Number of parameters by image size, on logarithmic axes. Dense: every neuron has a weight "
        "for every pixel. Convolution: the same 3 x 3 weights at every position."
    )
    return Plot(figure, caption)


def _weights(dense: nn.Linear) -> Plot:
    figure = matrices(
        {
            "matrix of the lecture": MATRIX.numpy(),
            "3 x 3 convolution as a dense layer": dense.weight.numpy(),
        },
        x_label="column, input",
        y_label="row, output",
    )
    for axes in figure.axes[:2]:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    caption = (
        "Left: the matrix. Right: the weights of the dense layer that computes a convolution of "
        "it. Each row has the same nine weights, at other positions; white weights are zero."
    )
    return Plot(figure, caption)
