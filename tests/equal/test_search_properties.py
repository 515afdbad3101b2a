"""Property: the result of a sentence does not depend on its batch, for any model and search."""

from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.core.native.bindings import find_kernels
from regard.core.native.kernels import is_fast
from regard.models.build import build_model
from regard.models.packing import pack
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from tests.fixtures.inputs import END, PAD, START, VOCAB_SIZE
from tests.fixtures.models import TEXT
from tests.fixtures.parts import TINY_CONFIGS


@dataclass(frozen=True)
class Limits:
    """Differences between a sentence in a batch and alone that are due to rounding."""

    margin: float
    """Tokens must be equal if changes of log-probabilities by this much do not change them."""
    tolerance: float
    """Tolerance of log-probabilities, absolute or relative."""


LIMITS = {"fp32": Limits(1e-4, 1e-5), "bf16": Limits(0.2, 0.05), "int8": Limits(0.2, 0.05)}
"""Limits by precision: the last digit of a float32 number may change its rounding to bf16 or int8.
"""

TRANSFORMER = TINY_CONFIGS["transformer-transformer"]
FAMILIES = {
    "cho": TINY_CONFIGS["gru-one-cho-gru"],
    "bahdanau": TINY_CONFIGS["gru-both-bahdanau-gru"],
    "luong": TINY_CONFIGS["lstm-one-luong-lstm"],
    "convolution": TINY_CONFIGS["convolution-convolution"],
    "transformer": TRANSFORMER,
    "rotary": replace(
        TRANSFORMER,
        # The smallest even head size that rotary embeddings take.
        encoder=replace(TRANSFORMER.encoder, positions="rotary", dim=8),
        decoder=replace(TRANSFORMER.decoder, positions="rotary", dim=8),
    ),
    "prefix": TINY_CONFIGS["transformer-prefix"],
    "recurrent prefix": TINY_CONFIGS["gru-one-recurrent_prefix-lstm"],
}
WIDE = {
    "wide": replace(
        TRANSFORMER,
        encoder=replace(TRANSFORMER.encoder, dim=64, num_heads=4),
        decoder=replace(TRANSFORMER.decoder, dim=64, num_heads=4),
    )
}
"""A model whose sums in low precision have many terms."""
SEARCHES = {
    "greedy": {"beams": 1},
    "beam": {"beams": 3},
    "bound": {"beams": 3, "stopping": "bound", "length_penalty_kind": "gnmt"},
    "groups": {"beams": 4, "groups": 2},
    "sampling": {"temperature": 0.8, "seed": 3},
    "filters": {"temperature": 1.0, "top_k": 6, "typical_p": 0.9},
}


@cache
def tiny_model(family, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model((FAMILIES | WIDE)[family], source=TEXT, target_vocab_size=VOCAB_SIZE)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return model.eval().requires_grad_(False)


class NoisyScorer:
    """Scorer whose log-probabilities are changed by up to half a margin."""

    def __init__(self, scorer, seed, margin):
        self.scorer, self.margin = scorer, margin
        self.batch, self.device = scorer.batch, scorer.device
        self.generator = torch.Generator().manual_seed(seed)

    def start(self, beams, max_length=None):
        return self.scorer.start(beams, max_length)

    def step(self, tokens, state):
        log_probs, state = self.scorer.step(tokens, state)
        noise = torch.rand(log_probs.shape, generator=self.generator) - 0.5
        return log_probs + self.margin * noise, state


def run_search(model, sentences, *, config, num_best, padding=0, noise=()):
    """Search for sentences, each (source ids, maximum length, key), in one batch."""
    width = max(len(ids) for ids, _, _ in sentences) + padding
    source = torch.tensor([[*ids, *[PAD] * (width - len(ids))] for ids, _, _ in sentences])
    mask = torch.tensor([[at < len(ids) for at in range(width)] for ids, _, _ in sentences])
    scorer = ModelScorer(model, model.encode(source, mask), banned=(PAD, START))
    return search(
        NoisyScorer(scorer, *noise) if noise else scorer,
        start=START,
        end=END,
        max_lengths=torch.tensor([limit for _, limit, _ in sentences]),
        config=config,
        num_best=num_best,
        sample_keys=[key for _, _, key in sentences],
    )


def tokens_of(hypotheses):
    return [one.tokens for one in hypotheses]


def is_stable(model, sentence, alone, *, config, num_best, margin):
    """Whether small changes of all log-probabilities leave the tokens of a sentence unchanged."""
    noisy = (
        run_search(model, [sentence], config=config, num_best=num_best, noise=(seed, margin))
        for seed in range(3)
    )
    return all(tokens_of(best) == tokens_of(alone) for (best,) in noisy)


def assert_equal_results(found, expected, tolerance=LIMITS["fp32"].tolerance):
    near = {"abs": tolerance, "rel": tolerance}
    assert tokens_of(found) == tokens_of(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.step_log_probs == pytest.approx(theirs.step_log_probs, **near)
        assert ours.log_prob == pytest.approx(theirs.log_prob, **near)
        assert ours.value == pytest.approx(theirs.value, **near)


SENTENCES = st.lists(
    st.tuples(
        st.lists(st.integers(4, VOCAB_SIZE - 1), min_size=1, max_size=7),
        st.integers(1, 10),
        st.integers(0, 2**32 - 1),
    ),
    min_size=1,
    max_size=5,
)


def check_batches(family, name, drawn, precision=None):
    """Compare the search for sentences in batches with the search for each of them alone."""
    limits = LIMITS[precision or "fp32"]
    model = tiny_model(family, drawn["seed"])
    if precision is not None:
        model = pack(model, precision)
    config = SearchConfig(**SEARCHES[name], **drawn["rules"])
    num_best = 1 if name == "greedy" else 2
    sentences, size = drawn["sentences"], drawn["batch_size"]
    found = []
    for first in range(0, len(sentences), size):
        batch = sentences[first : first + size]
        padding = drawn["padding"]
        found += run_search(model, batch, config=config, num_best=num_best, padding=padding)
    for sentence, together in zip(sentences, found, strict=True):
        (alone,) = run_search(model, [sentence], config=config, num_best=num_best)
        if tokens_of(together) == tokens_of(alone) or is_stable(
            model, sentence, alone, config=config, num_best=num_best, margin=limits.margin
        ):
            assert_equal_results(together, alone, limits.tolerance)


CASES = st.fixed_dictionaries(
    {
        "sentences": SENTENCES,
        "seed": st.integers(0, 4),
        "padding": st.integers(0, 4),
        "batch_size": st.integers(1, 5),
        "rules": st.fixed_dictionaries(
            {
                "min_length": st.integers(0, 4),
                "no_repeat_ngram": st.integers(0, 2),
                "length_penalty": st.sampled_from((0.0, 0.6, 1.0)),
            }
        ),
    }
)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sentence_does_not_depend_on_its_batch(family, name, request):
    check_property(request, lambda drawn: check_batches(family, name, drawn))


@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("name", ["greedy", "beam"])
@pytest.mark.parametrize("family", ["bahdanau", "recurrent prefix", "transformer", "wide"])
def test_a_sentence_does_not_depend_on_its_batch_with_packed_weights(
    family, name, precision, request
):
    check_property(request, lambda drawn: check_batches(family, name, drawn, precision))


EXACT = ("transformer", "rotary", "wide")
"""Families that the kernels compute as a whole."""


@pytest.mark.skipif(find_kernels() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("precision", LIMITS)
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("family", EXACT)
def test_a_sentence_alone_has_the_bits_of_a_sentence_in_a_batch(family, name, precision, request):
    if not is_fast(precision):
        pytest.skip("the processor has no instructions for this precision, or faster ones")

    def check(drawn):
        model = pack(tiny_model(family, drawn["seed"]), precision)
        config = SearchConfig(**SEARCHES[name], **drawn["rules"])
        options = {"config": config, "num_best": 1 if name == "greedy" else 2}
        sentences = drawn["sentences"]
        together = run_search(model, sentences, padding=drawn["padding"], **options)
        alone = [run_search(model, [sentence], **options)[0] for sentence in sentences]
        assert together == alone

    check_property(request, check)


def check_property(request, check):
    """Check a property of random sentences."""
    is_full = request.config.getoption("--full-matrix")
    configure = settings(
        max_examples=60 if is_full else 4,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    configure(given(CASES)(check))()


@pytest.mark.parametrize("name", SEARCHES)
def test_order_of_sentences_changes_nothing(name):
    model, config = tiny_model("rotary", 0), SearchConfig(**SEARCHES[name])
    sentences = [([4, 5, 6], 8, 1), ([7], 3, 2), ([8, 9, 4, 5, 10, 6], 9, 3)]
    forward = run_search(model, sentences, config=config, num_best=1)
    backward = run_search(model, sentences[::-1], config=config, num_best=1)
    for ours, theirs in zip(backward[::-1], forward, strict=True):
        assert_equal_results(ours, theirs)


def test_a_change_of_the_scores_is_noticed(monkeypatch):
    """The property fails for a scorer whose results depend on the padding."""

    def encode(source, mask):
        return model_encode(source, torch.ones_like(mask))

    model = tiny_model("bahdanau", 0)
    model_encode = model.encode
    monkeypatch.setattr(model, "encode", encode)
    sentences = [([4, 5, 6], 8, 1), ([7], 8, 2)]
    drawn = {"sentences": sentences, "seed": 0, "padding": 3, "batch_size": 2, "rules": {}}
    with pytest.raises(AssertionError):
        check_batches("bahdanau", "beam", drawn)
