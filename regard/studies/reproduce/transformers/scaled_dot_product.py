"""Scaled dot-product attention: the worked example, and saturation of the softmax without √d."""

import math
from pathlib import Path

import torch
from torch import Tensor

from regard.attention.attend import masked_softmax, scaled_dot
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot

CAT = torch.tensor([[0.6, 0.3, 0.8]])
DOG = torch.tensor([[0.5, 0.1, 0.9]])
OTHER_SCORES = (0.2, -0.8)
"""Scaled products of “cat” with two further words, as the lectures give them."""

DIMS = tuple(2**power for power in range(11))
NUM_QUERIES, NUM_KEYS = 2_000, 16

RAW, SCALED = "q · k", "q · k / √d"
VARIANCE, ENTROPY, LARGEST, GRADIENT = "variance", "entropy (bits)", "largest weight", "gradient"


def scaled_dot_product(seed: int, _folder: Path | None = None) -> Findings:
    """Compute the worked example, and measure the softmax by width with and without scaling."""
    example = work_example()
    measured = {dim: measure_softmax(dim, seed) for dim in DIMS}
    return Findings(
        tables={
            "“cat” attends to “dog”": example,
            **{
                f"Softmax of {form} over {NUM_KEYS} keys": {
                    f"d = {dim}": rows[form] for dim, rows in measured.items()
                }
                for form in (RAW, SCALED)
            },
        },
        claims=_claims(example, measured),
        plots={"scaled-dot-product": _plot(measured)},
    )


def work_example() -> dict[str, dict[str, float | str]]:
    """Compute “cat” · “dog”, its scaled value, the weights and the share of “dog”."""
    product = float(CAT @ DOG.T)
    score = float(scaled_dot(CAT, DOG))
    weights = masked_softmax(torch.tensor([[score, *OTHER_SCORES]]))[0]
    share = weights[0] * DOG[0]
    steps = {
        "0.6·0.5 + 0.3·0.1 + 0.8·0.9": ("1.05", [product]),
        "1.05 / √3": ("0.606", [score]),
        "softmax(0.606, 0.2, −0.8)": ("0.523, 0.348, 0.128", weights.tolist()),
        "0.523 · dog": ("0.262, 0.052, 0.471", share.tolist()),
    }
    rows: dict[str, dict[str, float | str]] = {}
    for step, (stated, values) in steps.items():
        expected = [float(number) for number in stated.split(", ")]
        difference = max(abs(a - b) for a, b in zip(expected, values, strict=True))
        rows[step] = {
            "lecture": stated,
            "computed": ", ".join(f"{value:.4f}" for value in values),
            "difference": difference,
        }
    return rows


def measure_softmax(dim: int, seed: int) -> dict[str, dict[str, float]]:
    """Measure products of random queries and keys, and their softmax, with and without scaling.

    Args:
        dim: Width d of queries and keys, whose components are independent with variance 1.
        seed: Seed of the queries and keys.
    """
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(NUM_QUERIES, 1, dim, generator=generator)
    keys = torch.randn(NUM_QUERIES, NUM_KEYS, dim, generator=generator)
    scaled = scaled_dot(queries, keys)[:, 0]  # (Q, K)
    return {RAW: _describe(scaled * math.sqrt(dim)), SCALED: _describe(scaled)}


def softmax_gradients(weights: Tensor) -> Tensor:
    """Return the norm of the Jacobian of a softmax, ∂w_i/∂s_j = w_i (δ_ij − w_j), for each row.

    Args:
        weights: (Q, K).
    """
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]  # (Q, K, K)
    return jacobian.square().sum((1, 2)).sqrt()


def _describe(scores: Tensor) -> dict[str, float]:
    weights = masked_softmax(scores)
    entropies = -(weights * weights.clamp(min=1e-30).log2()).sum(-1)
    return {
        VARIANCE: float(scores.var()),
        ENTROPY: float(entropies.mean()),
        LARGEST: float(weights.max(-1).values.mean()),
        GRADIENT: float(softmax_gradients(weights).mean()),
    }


def _claims(
    example: dict[str, dict[str, float | str]], measured: dict[int, dict[str, dict[str, float]]]
) -> tuple[Claim, ...]:
    difference = max(float(str(row["difference"])) for row in example.values())
    ratios = [rows[RAW][VARIANCE] / dim for dim, rows in measured.items()]
    variances = [rows[SCALED][VARIANCE] for rows in measured.values()]
    first, last = measured[DIMS[0]], measured[DIMS[-1]]
    entropies = [rows[SCALED][ENTROPY] for rows in measured.values()]
    share = last[RAW][GRADIENT] / last[SCALED][GRADIENT]
    return (
        Claim(
            "cat · dog = 1.05, scaled 0.606; softmax [0.523, 0.348, 0.128]; 0.523 · dog = "
            "(0.262, 0.052, 0.471).",
            f"Computed with the package; the largest difference is {difference:.4f} (the lecture "
            "truncates 0.3486 to 0.348).",
            difference < 1e-3,
        ),
        Claim(
            "Without scaling, products grow with d: their variance is d.",
            f"Variance divided by d: {min(ratios):.2f} to {max(ratios):.2f} for d = 1 to 1,024.",
            0.85 < min(ratios) and max(ratios) < 1.15,
        ),
        Claim(
            "Divided by √d, their variance is 1 for every d.",
            f"Variance {min(variances):.2f} to {max(variances):.2f}.",
            0.85 < min(variances) and max(variances) < 1.15,
        ),
        Claim(
            "Without scaling, the softmax saturates: nearly all weight is on one key.",
            f"At d = 1,024 the largest weight is {last[RAW][LARGEST]:.2f} and the entropy "
            f"{last[RAW][ENTROPY]:.2f} of {math.log2(NUM_KEYS):.0f} bits; at d = 1 "
            f"{first[RAW][LARGEST]:.2f} and {first[RAW][ENTROPY]:.2f}.",
            last[RAW][LARGEST] > 0.9,
        ),
        Claim(
            "With scaling, the entropy does not fall with d.",
            f"Entropy {entropies[0]:.2f} bits at d = 1, {entropies[-1]:.2f} at d = 1,024.",
            entropies[-1] > entropies[0] - 0.2,
        ),
        Claim(
            "A saturated softmax has a small gradient.",
            f"At d = 1,024 the norm of ∂w/∂s is {last[RAW][GRADIENT]:.3f} without and "
            f"{last[SCALED][GRADIENT]:.3f} with scaling ({100 * share:.0f} %).",
            share < 0.25,
        ),
    )


def _plot(measured: dict[int, dict[str, dict[str, float]]]) -> Plot:
    maximum = math.log2(NUM_KEYS)
    shown = {f"entropy / {maximum:.0f} bits": (ENTROPY, maximum)}
    shown |= {name: (name, 1.0) for name in (LARGEST, GRADIENT)}
    figure = panels(
        {
            title: {
                form: [(math.log2(dim), rows[form][key] / unit) for dim, rows in measured.items()]
                for form in (RAW, SCALED)
            }
            for title, (key, unit) in shown.items()
        },
        x_label="log₂ d",
        y_label="mean over queries",
    )
    return Plot(
        figure,
        f"Softmax over {NUM_KEYS} random keys by width d, mean of {NUM_QUERIES:,} queries. Left: "
        "entropy of the weights, relative to equal weights. Middle: largest weight. Right: norm of "
        "the derivative of the weights by the scores.",
    )
