"""Attention masks: three forms, the fully masked row, and no leak from future tokens."""

import math
from pathlib import Path

import torch
from torch import Tensor

from regard.attention.attend import masked_softmax
from regard.attention.masks import causal_mask
from regard.core.specs import TextSpec
from regard.models.build import build_model
from regard.models.encoders.transformer import TransformerEncoder
from regard.models.interfaces import Memory
from regard.models.seq2seq import EncoderDecoder
from regard.plots.word_maps import WordMap, word_maps
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.transformers.training import SMALL_TRANSFORMER, read_recipe

SIZE = 5
WORDS = ("[START]", "The", "chef", "who")
LENGTH, CHANGED = 8, 5
"""Number of source and of target tokens, and the target token that is replaced, from 1."""

EARLIER, LATER = "outputs before the replaced target token", "outputs from that token on"
PREFIXES = "one pass per prefix instead of a mask"
LEAK = "weights of row 1 if a score of row 1 above the diagonal changes, "
ENCODED = "first encoder state, last source token replaced"
TRANSLATED = "first decoder output, last source token replaced"
CAUSAL_ENCODER = "first encoder state with a causal mask, last source token replaced"


def masks(seed: int, _folder: Path | None = None) -> Findings:
    """Compare the three masks, and change future tokens of a decoder."""
    scores = torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(seed))
    before, after = mask_before_softmax(scores), mask_after_softmax(scores)
    strict = strict_weights(scores[: len(WORDS), : len(WORDS)])
    changes = {**replace_tokens(seed), **change_scores(scores)}
    return Findings(
        tables={
            "Sums of the rows of attention weights": {
                f"row {row + 1}": {
                    "(a) before the softmax, j ≤ i": float(before[row].sum()),
                    "(c) after the softmax": float(after[row].sum()),
                }
                for row in range(SIZE)
            },
            "Strict mask (b), j < i: weights of [START]": {
                "softmax of −∞ only": _row(
                    normalise_exponentials(torch.full((len(WORDS),), -math.inf))
                ),
                "masked_softmax of the package": _row(strict[0]),
            },
            "Largest change": {name: {"change": value} for name, value in changes.items()},
        },
        claims=_claims(scores, strict, changes),
        plots={"masks": _plot_masks(scores)},
    )


def mask_before_softmax(scores: Tensor) -> Tensor:
    """Compute form (a): scores above the diagonal are −∞ before the softmax; j ≤ i remain."""
    return masked_softmax(scores, causal_mask(*scores.shape))


def strict_weights(scores: Tensor) -> Tensor:
    """Compute form (b): only j < i remain, so the first row has no key."""
    return masked_softmax(scores, torch.ones_like(scores).tril(-1).bool())


def mask_after_softmax(scores: Tensor) -> Tensor:
    """Compute form (c): the softmax is over all keys, and weights above the diagonal become 0."""
    return masked_softmax(scores) * causal_mask(*scores.shape)


def normalise_exponentials(scores: Tensor) -> Tensor:
    """Compute exp(s_j) / Σ_k exp(s_k) as written; if all scores are −∞, this is 0 / 0."""
    exponentials = scores.exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


def build_small(seed: int) -> EncoderDecoder:
    """Build an untrained small Transformer with 20 source and 20 target tokens."""
    recipe = read_recipe(SMALL_TRANSFORMER, (), seed=seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model(recipe.model, source=TextSpec(20), target_vocab_size=20)
    return model.eval()


@torch.no_grad()
def replace_tokens(seed: int) -> dict[str, float]:
    """Replace a target token or a source token and return the changes of the outputs."""
    model = build_small(seed)
    source = targets = torch.arange(LENGTH)[None] + 3
    memory, logits = _run(model, source, targets)
    other_targets, other_source = targets.clone(), source.clone()
    other_targets[0, CHANGED - 1] = other_source[0, -1] = 19
    _, changed = _run(model, source, other_targets)
    other_memory, other_logits = _run(model, other_source, targets)
    causal, other_causal = (_encode_causally(model, each) for each in (source, other_source))
    return {
        EARLIER: _distance(changed[:, : CHANGED - 1], logits[:, : CHANGED - 1]),
        LATER: _distance(changed[:, CHANGED - 1 :], logits[:, CHANGED - 1 :]),
        PREFIXES: _distance(_run_prefixes(model, targets, memory), logits),
        ENCODED: _distance(other_memory.states[:, 0], memory.states[:, 0]),
        CAUSAL_ENCODER: _distance(other_causal[:, 0], causal[:, 0]),
        TRANSLATED: _distance(other_logits[:, 0], logits[:, 0]),
    }


def change_scores(scores: Tensor) -> dict[str, float]:
    """Change a score that is masked in the first row, and return the changes of its weights."""
    changed = scores.clone()
    changed[0, -1] += 1
    return {
        f"{LEAK}(a)": _distance(mask_before_softmax(changed)[0], mask_before_softmax(scores)[0]),
        f"{LEAK}(c)": _distance(mask_after_softmax(changed)[0], mask_after_softmax(scores)[0]),
    }


def _run(model: EncoderDecoder, source: Tensor, targets: Tensor) -> tuple[Memory, Tensor]:
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    return memory, model.decoder(targets, memory).logits


def _run_prefixes(model: EncoderDecoder, targets: Tensor, memory: Memory) -> Tensor:
    """Return the logits of each position from a pass over its prefix, which has no later keys."""
    ends = range(1, targets.shape[1] + 1)
    return torch.cat([model.decoder(targets[:, :end], memory).logits[:, -1:] for end in ends], 1)


def _encode_causally(model: EncoderDecoder, source: Tensor) -> Tensor:
    encoder = model.encoder
    assert isinstance(encoder, TransformerEncoder)
    return encoder.blocks(encoder.embed(encoder.embedding(source)), is_causal=True)


def _distance(first: Tensor, second: Tensor) -> float:
    return float((first - second).abs().max())


def _row(weights: Tensor) -> dict[str, str]:
    return {word: f"{value:g}" for word, value in zip(WORDS, weights.tolist(), strict=True)}


def _claims(scores: Tensor, strict: Tensor, changes: dict[str, float]) -> tuple[Claim, ...]:
    before, after = mask_before_softmax(scores), mask_after_softmax(scores)
    rescaled = after / after.sum(1, keepdim=True)
    is_nan = bool(normalise_exponentials(torch.full((4,), -math.inf)).isnan().all())
    num_masked, num_prefixes = LENGTH, LENGTH * (LENGTH + 1) // 2
    return (
        Claim(
            "(a) Softmax(−∞) = 0: later positions get no weight, and rows sum to 1.",
            f"Weights above the diagonal: {float(before.triu(1).max()):g}; sums of rows "
            f"{float(before.sum(1).min()):.6f} to {float(before.sum(1).max()):.6f}.",
            bool(before.triu(1).eq(0).all()) and torch.allclose(before.sum(1), torch.ones(SIZE)),
        ),
        Claim(
            "(b) With j < i, the first row ([START]) is fully masked.",
            f"A softmax over −∞ only gives NaN ({'yes' if is_nan else 'no'}); the package gives "
            f"weights {strict[0].tolist()}, and [START], The for the second row "
            f"{strict[1, :2].tolist()}.",
            is_nan and bool(strict[0].eq(0).all()) and not bool(strict.isnan().any()),
        ),
        Claim(
            "(c) mask(softmax(q · k / √d)): masked after the softmax, rows need renormalising.",
            f"Rows sum to {float(after.sum(1).min()):.2f} to {float(after.sum(1).max()):.2f}, and "
            f"row 1 changes by {changes[f'{LEAK}(c)']:.3f} if a masked score changes (form (a): "
            f"{changes[f'{LEAK}(a)']:g}). Divided by their sums, the rows equal (a).",
            torch.allclose(rescaled, before)
            and changes[f"{LEAK}(c)"] > 0
            and changes[f"{LEAK}(a)"] == 0,
        ),
        Claim(
            "A masked decoder has no leak from future tokens.",
            f"If target token {CHANGED} is replaced, outputs 1–{CHANGED - 1} change by "
            f"{changes[EARLIER]:g} (bit-equal), later ones by {changes[LATER]:.2f}.",
            changes[EARLIER] == 0 and changes[LATER] > 0,
        ),
        Claim(
            "A set of keys per step gives the same outputs, but is inefficient.",
            f"One pass per prefix differs by {changes[PREFIXES]:.0e} and computes {num_prefixes} "
            f"positions instead of {num_masked}.",
            changes[PREFIXES] < 1e-4,
        ),
        Claim(
            "The encoder is not masked: the whole source is known.",
            f"The last source token changes the first encoder state by {changes[ENCODED]:.2f} and "
            f"the first output of the decoder by {changes[TRANSLATED]:.2f}; with a causal mask the "
            f"first state would change by {changes[CAUSAL_ENCODER]:g}.",
            changes[ENCODED] > 0 and changes[TRANSLATED] > 0 and changes[CAUSAL_ENCODER] == 0,
        ),
    )


def _plot_masks(scores: Tensor) -> Plot:
    numbers = [str(number) for number in range(1, SIZE + 1)]
    masked = torch.zeros(SIZE, SIZE).masked_fill(~causal_mask(SIZE, SIZE), -math.inf)
    strict = strict_weights(scores[: len(WORDS), : len(WORDS)])
    figure = word_maps(
        {
            "(a) added to the scores": WordMap(masked, numbers, numbers),
            "(a) weights": WordMap(mask_before_softmax(scores), numbers, numbers),
            "(b) weights, j < i": WordMap(strict, WORDS, WORDS),
            "(c) weights, masked after": WordMap(mask_after_softmax(scores), numbers, numbers),
        },
        columns=2,
        has_values=True,
    )
    return Plot(
        figure,
        "Three forms of mask on the same random scores; rows are queries, columns keys. (a) keeps "
        "the diagonal. (b) leaves the first row without a key: its weights are 0. (c) leaves rows "
        "that do not sum to 1.",
    )
