"""CTC search: prefix scores against torch's loss, searches against brute force."""

import itertools

import pytest
import torch
from torch.nn.functional import ctc_loss

from regard.models.build import ModelConfig
from regard.models.heads.ctc import CtcHeadConfig
from regard.models.interfaces import Emissions
from regard.search.beam import beam_search
from regard.search.ctc import CtcScorer, JointScorer, best_path
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer
from regard.search.search import rescore
from regard.search.settings import SearchConfig

PAD, START, END = 0, 1, 2
VOCAB = BLANK = 6
LABELS = (3, 4, 5)
LENGTHS = torch.tensor([4, 2, 3])


@pytest.fixture
def emissions():
    """Three sources of 4, 2 and 3 positions; special tokens are impossible."""
    generator = torch.Generator().manual_seed(3)
    logits = 2 * torch.randn(3, 4, VOCAB + 1, generator=generator, dtype=torch.float64)
    logits[..., :3] = -torch.inf
    return Emissions(logits.log_softmax(-1), LENGTHS)


def alone(emissions, row):
    length = emissions.lengths[row]
    return Emissions(emissions.log_probs[row : row + 1, :length], emissions.lengths[row : row + 1])


def build_scorer(emissions):
    return CtcScorer(emissions, start=START, end=END, banned=(PAD, START))


def score_steps(scorer, tokens):
    """Log-probabilities of the next token, step by step, with one hypothesis per sentence."""
    state, steps = scorer.start(1), []
    for token in (START, *tokens):
        log_probs, state = scorer.step(torch.full((scorer.batch,), token), state)
        steps.append(log_probs)
    return steps


def total(scorer, labels):
    """Log-probability of a whole labelling, (B,)."""
    steps = score_steps(scorer, labels)
    return sum(step[:, token] for step, token in zip(steps, (*labels, END), strict=True))


def torch_log_prob(emissions, labels):
    size = torch.full((len(emissions.lengths),), len(labels))
    targets = torch.tensor([labels] * len(size))
    return -ctc_loss(
        emissions.log_probs.transpose(0, 1),
        targets,
        emissions.lengths,
        size,
        blank=BLANK,
        reduction="none",
    )


@pytest.mark.parametrize("labels", [(3,), (3, 3), (4, 3, 4), (5, 4), (3, 4, 5), (4, 4, 3)])
def test_score_of_a_labelling_equals_the_ctc_loss(emissions, labels):
    found, expected = total(build_scorer(emissions), labels), torch_log_prob(emissions, labels)
    possible = expected.isfinite()
    assert possible.any()
    assert torch.allclose(found[possible], expected[possible])
    assert not found[~possible].isfinite().any()


def test_score_of_the_empty_hypothesis_is_that_of_blank_tokens_only(emissions):
    found = total(build_scorer(emissions), ())
    for row, length in enumerate(LENGTHS):
        assert float(found[row]) == pytest.approx(
            float(emissions.log_probs[row, :length, BLANK].sum())
        )


def test_next_token_probabilities_sum_to_one(emissions):
    for steps in score_steps(build_scorer(emissions), (4, 5)):
        assert torch.allclose(steps.exp().sum(1), torch.ones(3, dtype=steps.dtype))


def test_probabilities_of_all_labellings_sum_to_one(emissions):
    scorer = build_scorer(emissions)
    every = [labels for size in range(5) for labels in itertools.product(LABELS, repeat=size)]
    certain = sum(total(scorer, labels).exp() for labels in every)
    assert torch.allclose(certain, torch.ones(3, dtype=certain.dtype))


def test_batched_equals_alone(emissions):
    together = score_steps(build_scorer(emissions), (3, 5))
    for row in range(3):
        for one, many in zip(
            score_steps(build_scorer(alone(emissions, row)), (3, 5)), together, strict=True
        ):
            assert torch.allclose(one[0], many[row])


def find_with_beams(scorer, beams=30):
    return beam_search(
        scorer,
        start=START,
        end=END,
        max_lengths=torch.full((scorer.batch,), 6),
        config=SearchConfig(beams=beams, length_penalty=0.0),
    )


def test_wide_beam_finds_the_most_likely_labelling(emissions):
    scorer = build_scorer(emissions)
    every = [labels for size in range(5) for labels in itertools.product(LABELS, repeat=size)]
    totals = torch.stack([total(scorer, labels) for labels in every])  # labellings x sources
    for row, (found,) in enumerate(find_with_beams(scorer)):
        assert found.tokens == (*every[int(totals[:, row].argmax())], END)
        assert found.log_prob == pytest.approx(float(totals[:, row].max()), abs=1e-5)


def test_searched_batch_equals_alone(emissions):
    together = find_with_beams(build_scorer(emissions), beams=3)
    for row in range(3):
        (one,) = find_with_beams(build_scorer(alone(emissions, row)), beams=3)
        assert [best.tokens for best in one] == [best.tokens for best in together[row]]


def test_best_path_is_the_most_likely_path(emissions):
    found = best_path(emissions, end=END, banned=(PAD, START))
    for row, (hypothesis,) in enumerate(found):
        length = int(LENGTHS[row])
        log_probs = emissions.log_probs[row, :length]
        best, value = max(
            (
                (path, float(log_probs[range(length), path].sum()))
                for path in itertools.product((*LABELS, BLANK), repeat=length)
            ),
            key=lambda each: each[1],
        )
        tokens = tuple(token for token, _ in itertools.groupby(best) if token != BLANK)
        assert hypothesis.tokens == (*tokens, END)
        assert hypothesis.log_prob == pytest.approx(value)
        assert len(hypothesis.step_log_probs) == len(hypothesis.tokens)


@pytest.fixture
def joint(tiny_configs, build, recordings):
    """Joint scorer of decoder and CTC for three recordings."""
    plain = tiny_configs["pyramidal_lstm-luong-gru"]
    config = ModelConfig(encoder=plain.encoder, decoder=plain.decoder, ctc=CtcHeadConfig())
    with torch.inference_mode():
        model = build(config).double()
        memory = model.encode(recordings.source, recordings.mask)
        decoder = ModelScorer(model, memory, banned=(PAD, START))
        ctc = CtcScorer(model.ctc(memory), start=START, end=END, banned=(PAD, START))
        yield JointScorer(decoder, ctc, weight=0.4)


def test_joint_score_is_the_weighted_sum(joint):
    tokens = (5, 7, 5)
    both, decoder, ctc = (
        score_steps(scorer, tokens) for scorer in (joint, joint.decoder, joint.ctc)
    )
    for step in range(4):
        expected = 0.6 * decoder[step] + 0.4 * ctc[step]
        assert torch.allclose(both[step], expected.to(both[step].dtype))


def test_joint_beams_keep_their_own_states(joint):
    limits = torch.tensor([6, 6, 6])
    found = beam_search(
        joint,
        start=START,
        end=END,
        max_lengths=limits,
        config=SearchConfig(beams=4, length_penalty=0.0),
        num_best=4,
    )
    again = rescore(joint, found, start=START)
    for group, other in zip(found, again, strict=True):
        for one, same in zip(group, other, strict=True):
            assert one.step_log_probs == pytest.approx(same.step_log_probs, abs=1e-5)


def test_one_beam_is_greedy(joint):
    limits = torch.tensor([6, 6, 6])
    one = beam_search(joint, start=START, end=END, max_lengths=limits, config=SearchConfig(beams=1))
    best = greedy(joint, start=START, end=END, max_lengths=limits)
    assert [found.tokens for (found,) in one] == [found.tokens for found in best]
