"""Self-attention step by step: simplified, with queries, keys and values, and causal."""

import math
import time
from pathlib import Path

import torch
from torch import Tensor

from regard.attention.attend import attend, masked_softmax
from regard.attention.masks import causal_mask
from regard.attention.multihead import simplified_self_attention
from regard.plots.curves import lines
from regard.plots.word_maps import WordMap, word_maps
from regard.studies.reproduce.findings import Claim, Findings, Plot

WORDS = ("Ich", "möchte", "Deutsch", "lernen")
INPUTS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], dtype=torch.float64)
"""Embeddings x₁ … x₄ of the words, d = 2; the numbers are ours."""

W_Q = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
W_K = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
W_V = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)

NOUNS = ("river", "money", "bank")
NOUN_INPUTS = 2 * torch.eye(3, dtype=torch.float64)
"""Embeddings of words that are not similar to each other; the numbers are ours."""

NOUN_W_K = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.5, 0.0]], dtype=torch.float64)
"""Maps the key of 'river', and a little that of 'money', to the direction of 'bank'."""

LENGTHS = (256, 512, 1024, 2048)
"""Lengths n of the timed attention."""

TIMED_DIM = 512


def self_attention(seed: int, _folder: Path | None = None) -> Findings:
    """Compute self-attention by loops, as matrices and by the package, and time it."""
    differences = compare_forms(seed)
    exercise, causal = solve_exercise(is_causal=False), solve_exercise(is_causal=True)
    nouns = {
        "x_i · x_j": simplified_self_attention(NOUN_INPUTS[None])[1][0, -1],
        "W_q x_i · W_k x_j / √d": projected_weights(
            NOUN_INPUTS, torch.eye(3, dtype=torch.float64), NOUN_W_K
        )[-1],
    }
    seconds = {length: time_attention(length, seed) for length in LENGTHS}
    return Findings(
        tables={
            "Exercise: y₃ of “Ich möchte Deutsch lernen.”": _steps(exercise, causal),
            "Largest difference between two computations": {
                name: {"difference": f"{value:.1e}"} for name, value in differences.items()
            },
            "Attention weights of “bank”": {
                name: dict(zip(NOUNS, row.tolist(), strict=True)) for name, row in nouns.items()
            },
            "“bank” in two contexts": contexts_of_bank(),
            f"CPU time by length n, d = {TIMED_DIM}": {
                f"n = {length:,}": {"weights": f"{length**2:,}", "ms": 1000 * value}
                for length, value in seconds.items()
            },
        },
        claims=_claims(differences, exercise, causal, nouns=nouns, seconds=seconds),
        plots={
            "self-attention": _plot_weights(),
            "self-attention-time": _plot_time(seconds),
        },
    )


def simplified_by_loops(inputs: Tensor, *, is_causal: bool = False) -> Tensor:
    """Compute y_i = Σ_j a_ij x_j with a_ij = exp(x_i · x_j) / Σ_k exp(x_i · x_k); causal: j, k ≤ i.

    Args:
        inputs: (L, D).
        is_causal: Whether j and k stop at i.
    """
    outputs = []
    for i, x_i in enumerate(inputs):
        keys = inputs[: i + 1] if is_causal else inputs
        exponentials = [math.exp(x_i @ x_k) for x_k in keys]
        y_i = torch.zeros_like(x_i)
        for exponential, x_j in zip(exponentials, keys, strict=True):
            y_i += exponential / sum(exponentials) * x_j
        outputs.append(y_i)
    return torch.stack(outputs)


def projected_by_loops(
    inputs: Tensor, weights: tuple[Tensor, Tensor, Tensor], *, is_causal: bool = False
) -> Tensor:
    """Compute y_i = Σ_j softmax_j(q_i · k_j / √d) v_j with q = W_q x, k = W_k x, v = W_v x.

    Args:
        inputs: (L, D).
        weights: W_q, W_k and W_v, (D, D) each.
        is_causal: Whether j stops at i.
    """
    w_q, w_k, w_v = weights
    outputs = []
    for i, x_i in enumerate(inputs):
        seen = inputs[: i + 1] if is_causal else inputs
        scores = [(w_q @ x_i) @ (w_k @ x_j) / math.sqrt(len(x_i)) for x_j in seen]
        total = sum(math.exp(score) for score in scores)
        y_i = torch.zeros_like(x_i)
        for score, x_j in zip(scores, seen, strict=True):
            y_i += math.exp(score) / total * (w_v @ x_j)
        outputs.append(y_i)
    return torch.stack(outputs)


def projected_weights(
    inputs: Tensor, w_q: Tensor, w_k: Tensor, *, is_causal: bool = False
) -> Tensor:
    """Return softmax(QKᵀ / √d) of inputs (L, D), (L, L)."""
    queries, keys = inputs @ w_q.T, inputs @ w_k.T
    mask = causal_mask(len(inputs), len(inputs)) if is_causal else None
    return masked_softmax(queries @ keys.T / math.sqrt(inputs.shape[1]), mask)


def compare_forms(seed: int) -> dict[str, float]:
    """Return the largest difference of loops from matrix form and package, on random inputs."""
    generator = torch.Generator().manual_seed(seed)
    inputs, w_q, w_k, w_v = (
        torch.randn(size, 8, generator=generator, dtype=torch.float64) / 2 for size in (12, 8, 8, 8)
    )
    differences = {}
    for is_causal, suffix in ((False, ""), (True, ", causal")):
        loops = simplified_by_loops(inputs, is_causal=is_causal)
        package = simplified_self_attention(inputs[None], is_causal=is_causal)[0][0]
        differences[f"simplified: loops and package{suffix}"] = _distance(loops, package)
        loops = projected_by_loops(inputs, (w_q, w_k, w_v), is_causal=is_causal)
        matrix = projected_weights(inputs, w_q, w_k, is_causal=is_causal) @ (inputs @ w_v.T)
        differences[f"W_q, W_k, W_v: loops and matrix form{suffix}"] = _distance(loops, matrix)
        one_head = (inputs @ weight.T for weight in (w_q, w_k, w_v))
        package = attend(*(part[None, None] for part in one_head), is_causal=is_causal)[0][0, 0]
        differences[f"W_q, W_k, W_v: loops and package{suffix}"] = _distance(loops, package)
    return differences


def solve_exercise(*, is_causal: bool) -> dict[str, Tensor]:
    """Compute y₃ = Σ_j softmax_j((W_q x₃)ᵀ (W_k x_j) / √d) W_v x_j with all steps."""
    seen = INPUTS[:3] if is_causal else INPUTS
    query = W_Q @ INPUTS[2]
    keys, values = seen @ W_K.T, seen @ W_V.T
    products = keys @ query
    scaled = products / math.sqrt(2)
    weights = masked_softmax(scaled)
    return {
        "keys": keys,
        "values": values,
        "products": products,
        "scaled": scaled,
        "weights": weights,
        "y": weights @ values,
    }


def contexts_of_bank() -> dict[str, dict[str, float]]:
    """Return the output of “bank” beside “river” and beside “money”; its input is the same."""
    rows = {}
    for word, other in (("river", 0), ("money", 1)):
        inputs = NOUN_INPUTS[[other, 2]]
        weights = projected_weights(inputs, torch.eye(3, dtype=torch.float64), NOUN_W_K)
        output = weights[-1] @ inputs  # W_v is the identity
        rows[f"{word}, bank"] = {
            f"y of bank, {name}": value for name, value in zip(NOUNS, output.tolist(), strict=True)
        }
    return rows


def time_attention(length: int, seed: int, *, repeats: int = 5) -> float:
    """Return the least CPU time in seconds of explicit attention over n positions, d = 512."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(1, length, TIMED_DIM, generator=generator) / TIMED_DIM**0.5
    times = []
    for _ in range(repeats):
        started = time.process_time()
        simplified_self_attention(inputs)
        times.append(time.process_time() - started)
    return min(times)


def fit_exponent(seconds: dict[int, float]) -> float:
    """Return the slope of a least-squares line through log time by log length."""
    x = torch.tensor([math.log(length) for length in seconds])
    y = torch.tensor([math.log(value) for value in seconds.values()])
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / (x @ x))


def _distance(first: Tensor, second: Tensor) -> float:
    return float((first - second).abs().max())


def _steps(
    exercise: dict[str, Tensor], causal: dict[str, Tensor]
) -> dict[str, dict[str, float | str]]:
    rows: dict[str, dict[str, float | str]] = {}
    for j, word in enumerate(WORDS):
        is_seen = j < len(causal["weights"])
        rows[f"j = {j + 1}: {word}"] = {
            "x_j": _vector(INPUTS[j]),
            "k_j = W_k x_j": _vector(exercise["keys"][j]),
            "v_j = W_v x_j": _vector(exercise["values"][j]),
            "q₃ · k_j": exercise["products"][j].item(),
            "/ √2": exercise["scaled"][j].item(),
            "weight": exercise["weights"][j].item(),
            "causal weight": causal["weights"][j].item() if is_seen else "–",
        }
    return rows


def _vector(vector: Tensor) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in vector.tolist()) + ")"


def _claims(
    differences: dict[str, float],
    exercise: dict[str, Tensor],
    causal: dict[str, Tensor],
    *,
    nouns: dict[str, Tensor],
    seconds: dict[int, float],
) -> tuple[Claim, ...]:
    largest = max(differences.values())
    weights = (W_Q, W_K, W_V)
    y, causal_y = (
        projected_by_loops(INPUTS, weights, is_causal=is_causal)[2] for is_causal in (False, True)
    )
    changed = INPUTS.clone()
    changed[3] = 5.0
    after, causal_after = (
        projected_by_loops(changed, weights, is_causal=is_causal)[2] for is_causal in (False, True)
    )
    is_solved = max(_distance(y, exercise["y"]), _distance(causal_y, causal["y"])) < 1e-12
    plain, projected = nouns.values()
    exponent = fit_exponent(seconds)
    return (
        Claim(
            "The sums over j and the matrix form softmax(QKᵀ / √d) V are the same computation.",
            f"Loops, matrix form and the package differ by at most {largest:.0e}.",
            largest < 1e-12,
        ),
        Claim(
            "y₃ = Σ_{j=1..4} softmax_j((W_q x₃)ᵀ (W_k x_j) / √d) W_v x_j; causal: j ≤ 3.",
            f"With our numbers, y₃ = {_vector(exercise['y'])} and causal {_vector(causal['y'])}; "
            "each equals row 3 of the loops.",
            is_solved,
        ),
        Claim(
            "Causal y₃ does not depend on x₄.",
            f"With another x₄, causal y₃ changes by {_distance(causal_y, causal_after):.0f}, "
            f"unmasked y₃ by {_distance(y, after):.2f}.",
            torch.equal(causal_y, causal_after) and not torch.allclose(y, after),
        ),
        Claim(
            "Similarity is not enough: “bank” must attend to “river”, whose embedding differs.",
            f"Weight of “river” {plain[0]:.2f} with x_i · x_j, where “bank” itself has "
            f"{plain[2]:.2f}; {projected[0]:.2f} with W_q and W_k.",
            bool(plain.argmax() == 2 and projected.argmax() == 0),
        ),
        Claim(
            "Time grows with the square of the length.",
            f"From n = {LENGTHS[0]} to {LENGTHS[-1]:,} the CPU time grows as n^{exponent:.2f}; a "
            "line through the logarithms, from 1.5 to 2.5 counts as square.",
            1.5 < exponent < 2.5,
        ),
    )


def _plot_weights() -> Plot:
    panels = {
        "softmax(x_i · x_j)": simplified_self_attention(INPUTS[None])[1][0],
        "softmax(q_i · k_j / √d)": projected_weights(INPUTS, W_Q, W_K),
        "the same, causal": projected_weights(INPUTS, W_Q, W_K, is_causal=True),
    }
    figure = word_maps(
        {title: WordMap(weights, WORDS, WORDS) for title, weights in panels.items()},
        has_values=True,
    )
    return Plot(
        figure,
        "Attention weights of the exercise with our numbers: row i, column j. Row 3 (Deutsch) "
        "gives y₃. The simplified form is symmetric before the softmax; W_q and W_k make it "
        "directed.",
    )


def _plot_time(seconds: dict[int, float]) -> Plot:
    longest = LENGTHS[-1]
    square = [
        (float(n), 1000 * seconds[longest] * (n / longest) ** 2)
        for n in range(LENGTHS[0], longest + 1, 32)
    ]
    figure = lines(
        {"proportional to n²": square},
        x_label="length n (positions)",
        y_label="CPU time (ms)",
        dots={"measured": [(float(n), 1000 * value) for n, value in seconds.items()]},
    )
    return Plot(
        figure,
        f"CPU time of self-attention without parameters, d = {TIMED_DIM}, by length; the curve "
        "goes through the last point.",
    )
