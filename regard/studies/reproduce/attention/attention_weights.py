"""Attention weights: equal queries and keys, a sentence, pooling without queries, an image."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regard.attention.attend import masked_softmax, weighted_sum
from regard.attention.pooling import AttentionPooling, average_pool, max_pool
from regard.attention.scores import GaussianScore
from regard.data.datasets.synthetic.scenes.objects import COLOURS, Scene, sample_scene
from regard.data.datasets.synthetic.scenes.rendering import cell_shares, render_scene
from regard.plots.grid import Tile, sheet
from regard.plots.heatmap import matrices
from regard.plots.inputs import check_image, resize_image
from regard.plots.overlay import overlay
from regard.plots.word_maps import WordMap, word_maps
from regard.studies.reproduce.findings import Claim, Findings, Plot, Table

NUM_KEYS = 10
SHARPNESSES = (0.5, 2.0, 8.0)
"""Values of w in the score -(w (q - k))² / 2."""

SOURCE, TARGET = ("I", "love", "you"), ("je", "t'", "aime")
WEIGHTS = torch.tensor([[0.94, 0.02, 0.04], [0.11, 0.01, 0.88], [0.03, 0.95, 0.02]])
"""Weights of the lectures, one row per target word."""
VALUES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
"""Values of the three source words, chosen by us."""

NUM_PAIRS, NUM_SYMBOLS = 6, 10
"""Key-value pairs of a memory, and number of different keys and of different values."""
NUM_MEMORIES = 2_000

GRID = 16
"""Rows and columns of cells of an image."""
COLOUR_SHARPNESS = 12.0
NUM_SCENES = 100


def attention_weights(seed: int, _folder: Path | None = None) -> Findings:
    """Compute attention weights in four settings.

    Args:
        seed: Seed of the memories and scenes.
    """
    identity = {sharpness: identity_weights(sharpness) for sharpness in SHARPNESSES}
    contexts = weighted_sum(WEIGHTS, VALUES)
    pooling = recall_by_pooling(seed)
    scenes = [sample_scene(seed, number) for number in range(NUM_SCENES)]
    image = point_by_colour(scenes)
    return Findings(
        tables={
            "Weight of the key that equals the query, by w": _identity_table(identity),
            "Contexts of the sentence: c = Σ weight · value": _context_table(contexts),
            "Recall of the value that belongs to a key": {
                name: {"accuracy %": accuracy} for name, accuracy in pooling.items()
            },
            f"Colours as queries over {NUM_SCENES} scenes": {"cell with the largest weight": image},
        },
        claims=_claims(identity, pooling, image),
        plots={
            "attention-weights": _plot_words(),
            "attention-weights-identity": _plot_identity(identity),
            "attention-weights-image": _plot_image(scenes),
        },
    )


def identity_weights(sharpness: float) -> Tensor:
    """Return the weights of queries 0, 1, 2, … over equal keys, with a Gaussian kernel."""
    points = torch.arange(float(NUM_KEYS))[:, None]
    _, weights = _kernel(1, sharpness)(points, points, points)
    return weights


def _kernel(dim: int, sharpness: float) -> AttentionPooling:
    score = GaussianScore(dim, dim).requires_grad_(False)
    score.sharpness.fill_(sharpness)
    return AttentionPooling(score)


def recall_by_pooling(seed: int) -> dict[str, float]:
    """Return the accuracy in % of recalling the value of a key, by pooling.

    A memory has `NUM_PAIRS` different keys and as many different values. The query is one of the
    keys, the target is its value. A dense layer gets all values in a row, but no query; it is
    fitted to the first half of the memories, and all are measured on the second.
    """
    generator = torch.Generator().manual_seed(seed)
    names, symbols = (
        torch.rand(NUM_MEMORIES, NUM_SYMBOLS, generator=generator).argsort(-1)[:, :NUM_PAIRS]
        for _ in range(2)
    )
    keys, values = torch.eye(NUM_SYMBOLS)[names], torch.eye(NUM_SYMBOLS)[symbols]  # (B, K, D)
    asked = torch.randint(NUM_PAIRS, (NUM_MEMORIES, 1), generator=generator)
    targets = symbols.gather(1, asked)[:, 0]
    queries = keys.gather(1, asked[..., None].expand(-1, -1, NUM_SYMBOLS))  # (B, 1, D)
    mask = torch.ones(NUM_MEMORIES, NUM_PAIRS, dtype=torch.bool)
    attended, _ = _kernel(NUM_SYMBOLS, 4.0)(queries, keys, values)
    half = NUM_MEMORIES // 2
    one_hot = torch.eye(NUM_SYMBOLS)[targets]
    outputs = {
        "average pooling, no query": average_pool(values, mask),
        "max pooling, no query": max_pool(values, mask),
        "dense layer, no query": _fit_dense(values.flatten(1), one_hot[:half]),
        "attention pooling": attended[:, 0],
    }
    return {
        name: 100 * float((output.argmax(-1) == targets)[half:].double().mean())
        for name, output in outputs.items()
    }


def _fit_dense(inputs: Tensor, targets: Tensor) -> Tensor:
    """Return the outputs of a dense layer with the least squared error on the first inputs."""
    with_bias = torch.cat([inputs, torch.ones(len(inputs), 1)], dim=1)
    weight: Tensor = torch.linalg.pinv(with_bias[: len(targets)]) @ targets
    return with_bias @ weight


def cell_colours(scene: Scene) -> Tensor:
    """Return the mean colour of each cell of a rendered scene, 0 to 1, row by row."""
    pixels = torch.from_numpy(render_scene(scene).astype(np.float32)) / 255
    side = len(pixels) // GRID
    return pixels.view(GRID, side, GRID, side, 3).mean((1, 3)).flatten(0, 1)  # (K, 3)


def colour_weights(scene: Scene, colour: str) -> Tensor:
    """Return the weights of the cells of a scene for a colour as the query."""
    query = torch.tensor(COLOURS[colour])[None] / 255
    cells = cell_colours(scene)
    _, weights = _kernel(3, COLOUR_SHARPNESS)(query, cells, cells)
    return weights[0]  # (K,)


def saliency_weights(scene: Scene) -> Tensor:
    """Return weights without a query: cells count that differ from the mean colour."""
    cells = cell_colours(scene)
    distances = (cells - cells.mean(0)).square().sum(-1)
    return masked_softmax(COLOUR_SHARPNESS * distances[None])[0]  # (K,)


def point_by_colour(scenes: list[Scene]) -> dict[str, float]:
    """Return how often the cell with the largest weight overlaps an object of the colour, in %."""
    found: dict[str, list[float]] = {"with the query %": [], "without %": [], "uniform %": []}
    for scene in scenes:
        shares = cell_shares(scene, grid=GRID).reshape(len(scene.objects), -1)
        for colour in dict.fromkeys(obj.colour for obj in scene.objects):
            named = [obj.colour == colour for obj in scene.objects]
            is_covered = shares[named].sum(0) > 0
            found["with the query %"].append(is_covered[colour_weights(scene, colour).argmax()])
            found["without %"].append(is_covered[saliency_weights(scene).argmax()])
            found["uniform %"].append(is_covered.mean())
    return {name: 100 * float(np.mean(values)) for name, values in found.items()}


def _identity_table(identity: dict[float, Tensor]) -> Table:
    return {
        f"w = {sharpness:g}": {
            "smallest on the diagonal": float(weights.diagonal().min()),
            "largest beside it": float((weights - weights.diagonal().diag()).max()),
        }
        for sharpness, weights in identity.items()
    }


def _context_table(contexts: Tensor) -> Table:
    values = {word: f"({x:g}, {y:g})" for word, (x, y) in zip(SOURCE, VALUES.tolist(), strict=True)}
    rows = {}
    for word, weights, (x, y) in zip(TARGET, WEIGHTS.tolist(), contexts.tolist(), strict=True):
        terms = [
            f"{weight:g}·{value}" for weight, value in zip(weights, values.values(), strict=True)
        ]
        rows[word] = {"sum": " + ".join(terms), "context": f"({x:.2f}, {y:.2f})"}
    return rows


def _claims(
    identity: dict[float, Tensor], pooling: dict[str, float], image: dict[str, float]
) -> tuple[Claim, ...]:
    sharpest = identity[SHARPNESSES[-1]]
    deviation = float((sharpest - torch.eye(NUM_KEYS)).abs().max())
    best = [SOURCE[column] for column in WEIGHTS.argmax(1).tolist()]
    blind = {name: value for name, value in pooling.items() if "no query" in name}
    chance = 100 / NUM_PAIRS
    return (
        Claim(
            "The weight is 1 if query = key, else 0: the map is the identity.",
            f"with w = {SHARPNESSES[-1]:g}, no weight deviates by more than {deviation:.1g}",
            deviation < 1e-6,
        ),
        Claim(
            "je attends to I, t' to you, aime to love; the weights of a word sum to 1.",
            f"largest weights: {', '.join(best)}; sums "
            + ", ".join(f"{total:.2f}" for total in WEIGHTS.sum(1).tolist()),
            best == ["I", "you", "love"] and bool(torch.allclose(WEIGHTS.sum(1), torch.ones(3))),
        ),
        Claim(
            "Without a query, pooling cannot select the value that is asked for.",
            ", ".join(f"{name.split(',')[0]} {value:.0f} %" for name, value in blind.items())
            + f"; one of {NUM_PAIRS} values at random {chance:.0f} %",
            max(blind.values()) < 1.5 * chance,
        ),
        Claim(
            "Attention pooling selects it by the query.",
            f"{pooling['attention pooling']:.0f} %",
            pooling["attention pooling"] > 99,
        ),
        Claim(
            "Over an image, the query decides which object has the largest weight.",
            f"on an object of the colour in {image['with the query %']:.0f} % with the colour as "
            f"the query, {image['without %']:.0f} % by saliency, {image['uniform %']:.0f} % of "
            "the cells",
            image["with the query %"] > 90 > image["without %"],
        ),
    )


def _plot_words() -> Plot:
    figure = word_maps({"": WordMap(WEIGHTS, TARGET, SOURCE)}, has_values=True)
    return Plot(figure, "Weights of the lectures: one row per target word, over the source words.")


def _plot_identity(identity: dict[float, Tensor]) -> Plot:
    panels = {f"w = {sharpness:g}": weights for sharpness, weights in identity.items()}
    figure = matrices(panels, x_label="keys 0 … 9", y_label="queries 0 … 9")
    caption = (
        "Weights softmax(-(w (q - k))² / 2) of equal queries and keys. With a sharp kernel the "
        "weight is 1 where query and key are equal, else 0."
    )
    return Plot(figure, caption)


def _plot_image(scenes: list[Scene]) -> Plot:
    """Plot the first scene with three colours: saliency, and the weights of each colour."""
    scene = next(one for one in scenes if len({obj.colour for obj in one.objects}) == 3)
    image = render_scene(scene)
    maps = {"no query: saliency": saliency_weights(scene)}
    for colour in dict.fromkeys(obj.colour for obj in scene.objects):
        maps[f"query: {colour}"] = colour_weights(scene, colour)
    tiles = [Tile(resize_image(check_image(image)), "image")]
    for name, weights in maps.items():
        tiles.append(Tile(overlay(image, weights.view(GRID, GRID).numpy()), name))
    caption = (
        f"Weights over {GRID} × {GRID} cells of a rendered image, bright where large. Keys are "
        "the mean colours of the cells. Without a query, cells count that differ from the mean."
    )
    return Plot(sheet(tiles, columns=len(tiles)), caption)
