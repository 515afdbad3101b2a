"""Two ways to compute the same result: constraints, sampling and forced prefixes."""

from functools import partial

import pytest
import torch

from regard.models.decoders import DECODERS
from regard.search.beam import beam_search
from regard.search.constraints import forbid_repeats, penalize_repetition
from regard.search.forced import target_log_probs
from regard.search.greedy import greedy
from regard.search.sampling import keep_min_p, keep_top_k, keep_top_p, keep_typical, scale
from regard.search.scorer import ModelScorer
from regard.search.search import search
from regard.search.settings import SearchConfig
from tests.all_pairs import Matrix
from tests.fixtures.inputs import END, PAD, START, make_sentences

MAX_LENGTHS = [9, 8, 5]
PREFIXES = [(4, 4, 5, 4, 4), (), (7, 6, 7)]
GREEDY, BEAM, SAMPLE = ({"beams": 1}, 1), ({"beams": 4}, 4), ({"temperature": 1.0}, 4)
"""Settings of a search and the number of hypotheses that it returns."""

SEARCHES = Matrix(
    "searches",
    decoder=[settings.kind for settings in DECODERS]
    + ["luong-monotonic", "bahdanau-lstm-coverage", "transformer-coverage"],
    method={"greedy": GREEDY, "beam": BEAM, "sample": SAMPLE},
    ngram=(1, 2),
)
pytestmark = pytest.mark.matrix("decoder, method, ngram", SEARCHES)


@pytest.fixture(scope="module")
def sentences():
    return make_sentences()


@pytest.fixture(scope="module")
def model(decoder, tiny_configs, build, calibrate, sentences):
    """A model with the decoder and the first encoder that it is combined with."""
    config = next(config for name, config in tiny_configs.items() if f"-{decoder}" in name)
    # Double precision, so that rounding does not change the result.
    return calibrate(build(config).double(), sentences).requires_grad_(False)


def run_search(
    model, source, mask, *, method, max_lengths, prefixes=None, sample_keys=None, **rules
):
    settings, num_best = method
    return search(
        ModelScorer(model, model.encode(source, mask), banned=(PAD, START)),
        start=START,
        end=END,
        max_lengths=torch.tensor(max_lengths),
        config=SearchConfig(**settings, **rules),
        num_best=num_best,
        prefixes=prefixes,
        sample_keys=sample_keys,
    )


def search_batch(model, sentences, method, **options):
    """Search for all three sentences and return (row of the sentence, hypothesis) pairs."""
    hypotheses = run_search(
        model,
        sentences.source,
        sentences.mask,
        method=method,
        max_lengths=MAX_LENGTHS,
        **options,
    )
    assert [len(group) for group in hypotheses] == [method[1]] * 3
    return [(row, hypothesis) for row, group in enumerate(hypotheses) for hypothesis in group]


def assert_log_probs_of_forced_decoding(model, sentences, hypotheses):
    for row, hypothesis in hypotheses:
        targets = torch.tensor([[START, *hypothesis.tokens]])
        forced = target_log_probs(model, *sentences.alone(row), targets=targets)[0]
        assert hypothesis.step_log_probs == pytest.approx(forced.tolist(), abs=1e-5)
        assert hypothesis.log_prob == pytest.approx(float(forced.sum()), abs=1e-4)


def test_no_ngram_occurs_twice(model, sentences, method, ngram):
    rules = {"no_repeat_ngram": ngram, "min_length": 5}
    for _, hypothesis in search_batch(model, sentences, method, **rules):
        tokens = hypothesis.tokens
        ngrams = [tokens[i : i + ngram] for i in range(len(tokens) - ngram + 1)]
        assert len(set(ngrams)) == len(ngrams)


def test_hypotheses_start_with_their_prefix(model, sentences, method):
    hypotheses = search_batch(model, sentences, method, prefixes=PREFIXES)
    for row, hypothesis in hypotheses:
        assert hypothesis.tokens[: len(PREFIXES[row])] == PREFIXES[row]
    assert_log_probs_of_forced_decoding(model, sentences, hypotheses)


def test_constraints_do_not_change_log_probabilities(model, sentences, method):
    rules = {"no_repeat_ngram": 2, "min_length": 4, "repetition_penalty": 1.3}
    hypotheses = search_batch(model, sentences, method, prefixes=PREFIXES, **rules)
    assert_log_probs_of_forced_decoding(model, sentences, hypotheses)


class FixedScorer(ModelScorer):
    """Scorer whose searches begin with all hypotheses, and keep sentences that are done."""

    has_whole_state = False


def test_search_equals_one_that_keeps_all_rows(model, sentences, method, ngram):
    found = []
    for kind in (ModelScorer, FixedScorer):
        memory = model.encode(sentences.source, sentences.mask)
        found.append(
            search(
                kind(model, memory, banned=(PAD, START)),
                start=START,
                end=END,
                max_lengths=torch.tensor(MAX_LENGTHS),
                config=SearchConfig(**method[0], no_repeat_ngram=2 * ngram),
                num_best=method[1],
            )
        )
    for ours, theirs in zip(*found, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        log_probs = [pytest.approx(one.log_prob, abs=1e-6) for one in theirs]
        assert [one.log_prob for one in ours] == log_probs


def test_batched_equals_alone(model, sentences, method):
    rules = {"no_repeat_ngram": 2, "min_length": 3, "repetition_penalty": 1.3}
    sample_keys = [11, 5, 8]
    together = run_search(
        model,
        sentences.source,
        sentences.mask,
        method=method,
        max_lengths=MAX_LENGTHS,
        prefixes=PREFIXES,
        sample_keys=sample_keys,
        **rules,
    )
    for row, hypotheses in enumerate(together):
        (alone,) = run_search(
            model,
            *sentences.alone(row),
            method=method,
            max_lengths=MAX_LENGTHS[row : row + 1],
            prefixes=PREFIXES[row : row + 1],
            sample_keys=sample_keys[row : row + 1],
            **rules,
        )
        assert [best.tokens for best in alone] == [best.tokens for best in hypotheses]


def test_half_of_the_best_hypothesis_as_prefix_changes_nothing(model, sentences):
    best = [hypothesis for _, hypothesis in search_batch(model, sentences, GREEDY)]
    prefixes = [hypothesis.tokens[: len(hypothesis.tokens) // 2] for hypothesis in best]
    again = search_batch(model, sentences, GREEDY, prefixes=prefixes)
    assert [hypothesis for _, hypothesis in again] == best


def test_sampling_at_temperature_0_or_with_top_k_1_is_greedy(model, sentences):
    expected = [best.tokens for _, best in search_batch(model, sentences, GREEDY)]
    for settings in ({"temperature": 1e-6}, {"temperature": 1.0, "top_k": 1}):
        sampled = search_batch(model, sentences, (settings, 1))
        assert [hypothesis.tokens for _, hypothesis in sampled] == expected


def test_search_without_constraints_equals_greedy_and_beam_search(model, sentences):
    scorer = ModelScorer(model, model.encode(sentences.source, sentences.mask), banned=(PAD, START))
    common = {"start": START, "end": END, "max_lengths": torch.tensor(MAX_LENGTHS)}
    ours = [hypothesis for _, hypothesis in search_batch(model, sentences, GREEDY)]
    assert ours == greedy(scorer, **common)
    beams = beam_search(scorer, **common, config=SearchConfig(beams=4), num_best=4)
    ours = [hypothesis for _, hypothesis in search_batch(model, sentences, BEAM)]
    assert ours == [hypothesis for group in beams for hypothesis in group]


def hugging_face(name, *arguments):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    return getattr(transformers, name)(*arguments)


@pytest.fixture(params=range(3))
def distributions(request):
    generator = torch.Generator().manual_seed(request.param)
    log_probs = (torch.randn(8, 40, generator=generator) * 2).log_softmax(1)
    return log_probs, torch.randint(0, 6, (8, 12), generator=generator)


@pytest.mark.parametrize(
    ("rule", "theirs"),
    [
        (partial(forbid_repeats, length=1), ("NoRepeatNGramLogitsProcessor", 1)),
        (partial(forbid_repeats, length=2), ("NoRepeatNGramLogitsProcessor", 2)),
        (partial(forbid_repeats, length=3), ("NoRepeatNGramLogitsProcessor", 3)),
        (partial(penalize_repetition, penalty=1.7), ("RepetitionPenaltyLogitsProcessor", 1.7)),
    ],
    ids=lambda case: case[0] if isinstance(case, tuple) else None,
)
def test_constraints_equal_those_of_hugging_face(distributions, rule, theirs):
    log_probs, tokens = distributions
    assert torch.equal(rule(log_probs, tokens), hugging_face(*theirs)(tokens, log_probs.clone()))


@pytest.mark.parametrize(
    ("change", "theirs"),
    [
        (partial(scale, value=0.6), ("TemperatureLogitsWarper", 0.6)),
        (partial(keep_top_k, value=5), ("TopKLogitsWarper", 5)),
        (partial(keep_top_p, value=0.7), ("TopPLogitsWarper", 0.7)),
        (partial(keep_min_p, value=0.1), ("MinPLogitsWarper", 0.1)),
        (partial(keep_typical, value=0.6), ("TypicalLogitsWarper", 0.6)),
    ],
    ids=lambda case: case[0] if isinstance(case, tuple) else None,
)
def test_filtered_distributions_equal_those_of_hugging_face(distributions, change, theirs):
    log_probs, tokens = distributions
    expected = hugging_face(*theirs)(tokens, log_probs.clone()).softmax(1)
    assert torch.allclose(change(log_probs).softmax(1), expected, atol=1e-6)
