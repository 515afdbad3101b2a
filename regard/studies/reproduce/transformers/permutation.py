"""Word order: what attention ignores and position encodings add, in encoder and decoder."""

import math
from pathlib import Path

import torch
from torch import Tensor

from regard.attention.positions import sinusoids
from regard.core.specs import TextSpec
from regard.models.build import build_model
from regard.models.seq2seq import EncoderDecoder
from regard.plots.heatmap import matrices
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.transformers.training import SMALL_TRANSFORMER, read_recipe

KINDS = {
    "none": "none",
    "sinusoidal": "sinusoidal",
    "learned": "learned",
    "relative": "shaw",
    "rotary": "rotary",
}
"""Position encodings of the lectures, and their names as settings."""

WORDS = "the cat watches a dog run fast .".split()
SWAPPED = "the dog watches a cat run fast .".split()
ORDER = (3, 0, 4, 1, 7, 2, 6, 5)
"""Permutation of the eight words."""

EQUIVARIANCE = "encoder: |f(Px) − P f(x)|"
MEANING = "encoder: cat and dog swapped, mean state"
SOURCE = "decoder: source permuted"
ONE_BLOCK, TWO_BLOCKS = "decoder, 1 block: prefix permuted", "decoder, 2 blocks: prefix permuted"
NUM_POSITIONS, DIM = 100, 512


def permutation(seed: int, _folder: Path | None = None) -> Findings:
    """Permute the inputs of encoders and decoders with each kind of position encoding."""
    changes = {name: measure_changes(kind, seed) for name, kind in KINDS.items()}
    return Findings(
        tables={
            "Relative change of the outputs": changes,
            "PE(pos, column), d_model = 512": _first_encodings(),
        },
        claims=_claims(changes),
        plots={"permutation": _plot_encodings()},
    )


@torch.no_grad()
def measure_changes(kind: str, seed: int) -> dict[str, float]:
    """Return the relative change of outputs if the order of inputs changes, untrained weights.

    Args:
        kind: Position encoding.
        seed: Seed of the weights.
    """
    order = torch.tensor(ORDER)
    source, swapped = token_ids(WORDS), token_ids(SWAPPED)
    model = build_with(kind, num_layers=2, seed=seed)
    states, permuted = _encode(model, source), _encode(model, source[:, order])
    return {
        EQUIVARIANCE: _change(permuted, states[:, order]),
        MEANING: _change(_encode(model, swapped).mean(1), states.mean(1)),
        SOURCE: _change(_decode(model, source[:, order], source), _decode(model, source, source)),
        ONE_BLOCK: _permute_prefix(build_with(kind, num_layers=1, seed=seed), source),
        TWO_BLOCKS: _permute_prefix(model, source),
    }


def build_with(kind: str, *, num_layers: int, seed: int) -> EncoderDecoder:
    """Build an untrained small Transformer with a kind of position encoding."""
    settings = [
        f"model.{side}.{setting}"
        for side in ("encoder", "decoder")
        for setting in (f"positions={kind}", f"num_layers={num_layers}")
    ]
    recipe = read_recipe(SMALL_TRANSFORMER, settings, seed=seed)
    size = len({*WORDS}) + 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model(recipe.model, source=TextSpec(size), target_vocab_size=size)
    return model.eval().double()


def token_ids(words: list[str]) -> Tensor:
    """Return the words as token ids (1, S)."""
    return torch.tensor([[WORDS.index(word) + 1 for word in words]])


def _encode(model: EncoderDecoder, source: Tensor) -> Tensor:
    return model.encode(source, torch.ones_like(source, dtype=torch.bool)).states


def _decode(model: EncoderDecoder, source: Tensor, targets: Tensor) -> Tensor:
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    return model.decoder(targets, memory).logits


def _permute_prefix(model: EncoderDecoder, targets: Tensor) -> float:
    """Return the change of the last output if all target tokens before the last are permuted."""
    permuted = targets.clone()
    permuted[:, :-1] = targets[:, :-1].flip(1)
    last = _decode(model, targets, targets)[:, -1]
    return _change(_decode(model, targets, permuted)[:, -1], last)


def _change(changed: Tensor, reference: Tensor) -> float:
    return float((changed - reference).norm() / reference.norm())


def encoding_by_formula(position: int, column: int) -> float:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/d)) or PE(pos, 2i+1) = cos(the same), d = 512."""
    angle = position / 10_000 ** ((column - column % 2) / DIM)
    return math.sin(angle) if column % 2 == 0 else math.cos(angle)


def _first_encodings() -> dict[str, dict[str, float]]:
    encodings = sinusoids(torch.arange(4), DIM)
    columns = (0, 1, 2, 3, 510, 511)
    return {
        f"pos = {position}": {str(column): float(encodings[position, column]) for column in columns}
        for position in range(4)
    }


def _claims(changes: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    none = changes["none"]
    others = {name: row for name, row in changes.items() if name != "none"}

    def least(key: str) -> float:
        return min(row[key] for row in others.values())

    encodings = sinusoids(torch.arange(NUM_POSITIONS).double(), DIM)
    error = max(
        abs(encoding_by_formula(position, column) - float(encodings[position, column]))
        for position in range(0, NUM_POSITIONS, 7)
        for column in range(DIM)
    )
    products = encodings @ encodings.T
    spread = max(float(products.diagonal(offset).std()) for offset in range(NUM_POSITIONS - 1))
    return (
        Claim(
            "Self-attention is order-blind: without positions, permuting the source permutes the "
            "states of the encoder and changes nothing else.",
            f"Relative change {none[EQUIVARIANCE]:.0e} without positions, at least "
            f"{least(EQUIVARIANCE):.2f} with any kind of position encoding.",
            none[EQUIVARIANCE] < 1e-9 and least(EQUIVARIANCE) > 1e-3,
        ),
        Claim(
            "Swapping cat and dog alters the meaning, which needs positions.",
            f"The mean state changes by {none[MEANING]:.0e} without positions, by at least "
            f"{least(MEANING):.3f} with them.",
            none[MEANING] < 1e-9 and least(MEANING) > 1e-3,
        ),
        Claim(
            "Without positions in the encoder, the decoder treats the source as a set.",
            f"With a permuted source its outputs change by {none[SOURCE]:.0e}; with positions by "
            f"at least {least(SOURCE):.3f}.",
            none[SOURCE] < 1e-9 and least(SOURCE) > 1e-3,
        ),
        Claim(
            "A causal decoder without positions is order-blind with one block, but not with two: "
            "the first block gives each position a state that depends on its prefix.",
            "If the tokens before the last are reversed, the last output changes by "
            f"{none[ONE_BLOCK]:.0e} with one block and by {none[TWO_BLOCKS]:.2f} with two.",
            none[ONE_BLOCK] < 1e-9 and none[TWO_BLOCKS] > 1e-3,
        ),
        Claim(
            "PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same).",
            f"The formula and `sinusoids` differ by at most {error:.0e}; PE(p) · PE(p + k) depends "
            f"on k alone (std over p at most {spread:.0e}).",
            error < 1e-5 and spread < 1e-3,
        ),
    )


def _plot_encodings() -> Plot:
    encodings = sinusoids(torch.arange(NUM_POSITIONS).double(), DIM)
    figure = matrices(
        {"PE(pos, 2i): sine": encodings[:, 0::2], "PE(pos, 2i + 1): cosine": encodings[:, 1::2]},
        x_label="i",
        y_label="position",
        aspect=1.3,
    )
    return Plot(
        figure,
        f"Sinusoidal position encodings of {NUM_POSITIONS} positions, d_model = {DIM}. The "
        "wavelength grows from 2π for i = 0 to nearly 2π · 10,000 for the last i.",
    )
