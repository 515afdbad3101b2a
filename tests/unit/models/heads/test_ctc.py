"""CTC by brute force: every path, every labelling."""

import itertools

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.core.specs import AudioSpec
from regard.models.build import ModelConfig, build_model
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.models.heads.ctc import CtcHead, CtcHeadConfig, align, labelling_loss
from regard.models.interfaces import Emissions, Memory

VOCAB, BLANK = 3, 3


@pytest.fixture
def log_probs():
    """Three sources of 5 positions over 3 tokens and the blank."""
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(3, 5, VOCAB + 1, generator=generator, dtype=torch.float64)
    return logits.log_softmax(-1)


def collapse(path):
    return tuple(token for token, _ in itertools.groupby(path) if token != BLANK)


def paths(log_probs):
    """Every path through one source with its log-probability."""
    for path in itertools.product(range(VOCAB + 1), repeat=len(log_probs)):
        yield path, float(log_probs[range(len(path)), path].sum())


def labellings(log_probs):
    """Every labelling with its probability."""
    found = {}
    for path, log_prob in paths(log_probs):
        found.setdefault(collapse(path), []).append(log_prob)
    return {labels: torch.tensor(logs).logsumexp(0).exp() for labels, logs in found.items()}


def test_loss_is_the_sum_over_all_paths(log_probs):
    found = labellings(log_probs[0])
    assert float(sum(found.values())) == pytest.approx(1.0)
    emissions = Emissions(log_probs[:1], torch.tensor([5]))
    for labels, probability in found.items():
        if labels:
            loss = labelling_loss(emissions, torch.tensor([labels]), torch.tensor([len(labels)]))
            assert float((-loss).exp()) == pytest.approx(float(probability))


def test_batched_loss_equals_alone(log_probs):
    lengths, sizes = torch.tensor([5, 3, 4]), torch.tensor([2, 1, 3])
    labels = torch.tensor([[0, 0, 1], [2, 1, 1], [1, 0, 2]])
    together = labelling_loss(Emissions(log_probs, lengths), labels, sizes)
    for row in range(3):
        alone = labelling_loss(
            Emissions(log_probs[row : row + 1, : lengths[row]], lengths[row : row + 1]),
            labels[row : row + 1, : sizes[row]],
            sizes[row : row + 1],
        )
        assert torch.allclose(alone, together[row])


def test_loss_of_impossible_labels_is_zero(log_probs):
    emissions = Emissions(log_probs[:1, :2], torch.tensor([2]))
    assert float(labelling_loss(emissions, torch.tensor([[1, 1]]), torch.tensor([2]))) == 0.0


@pytest.mark.parametrize("labels", [[1], [0, 2], [1, 1], [2, 0, 2], [1, 1, 0], [0, 1, 2, 0, 1], []])
def test_alignment_is_the_most_likely_path(log_probs, labels):
    best, _ = max(
        (found for found in paths(log_probs[0]) if collapse(found[0]) == tuple(labels)),
        key=lambda found: found[1],
    )
    aligned = align(log_probs[0], labels)
    assert [labels[number] if number >= 0 else BLANK for number in aligned] == list(best)
    assert [number for number, _ in itertools.groupby(aligned) if number >= 0] == list(
        range(len(labels))
    )


def test_too_many_labels_are_an_error(log_probs):
    with pytest.raises(
        DataError, match=r"at least 4 positions to be aligned with 3 labels, but has 3\. Give a"
    ):
        align(log_probs[0, :3], [1, 1, 2])


def test_head_returns_log_probabilities_and_lengths():
    memory = Memory(
        states=torch.randn(2, 4, 6),
        mask=torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool(),
        summary=torch.zeros(2, 6),
    )
    emissions = CtcHead(6, 9)(memory)
    assert emissions.blank == 9
    assert emissions.lengths.tolist() == [4, 2]
    assert torch.allclose(emissions.log_probs.exp().sum(-1), torch.ones(2, 4))


def test_model_with_a_ctc_head_returns_emissions(recordings):
    config = ModelConfig(encoder=PyramidalLstmEncoderConfig(dim=3), ctc=CtcHeadConfig(weight=0.5))
    model = build_model(config, source=AudioSpec(5), target_vocab_size=11)
    output = model(recordings.source, recordings.mask, recordings.targets)
    assert output.emissions.log_probs.shape == (3, 3, 12)
    assert config.ctc_weight == 0.5
    assert ModelConfig().ctc_weight == 0.0


def test_weight_is_between_zero_and_one():
    with pytest.raises(ConfigError, match=r"`weight` must be .*1.*, but is 1\.5"):
        CtcHeadConfig(weight=1.5)
