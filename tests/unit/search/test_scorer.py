import pytest
import torch

from regard.models.build import ModelConfig
from regard.models.decoders import SutskeverDecoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.search.beam import beam_search
from regard.search.greedy import greedy
from regard.search.scorer import ModelScorer
from regard.search.settings import SearchConfig

START, END = 2, 3


@pytest.fixture
def model(build):
    return build(
        ModelConfig(
            encoder=RnnEncoderConfig(embedding_dim=4, dim=3),
            decoder=SutskeverDecoderConfig(embedding_dim=5, dim=6),
        )
    )


@pytest.fixture
def memory(model, sentences):
    with torch.no_grad():
        return model.encode(sentences.source, sentences.mask)


def first_step(scorer):
    with torch.no_grad():
        return scorer.step(torch.full((3,), START), scorer.start(1))[0]


def test_scores_are_the_log_probabilities_of_the_model(model, memory):
    with torch.no_grad():
        logits, _ = model.step(torch.full((3, 1), START), model.start(memory))
    assert torch.equal(
        first_step(ModelScorer(model, memory, banned=())), logits[:, 0].log_softmax(-1)
    )


def test_banned_tokens_are_impossible_and_others_unchanged(model, memory):
    free = first_step(ModelScorer(model, memory, banned=()))
    bound = first_step(ModelScorer(model, memory, banned=(0, 2)))
    assert (bound[:, [0, 2]] == -torch.inf).all()
    kept = [token for token in range(11) if token not in (0, 2)]
    assert torch.equal(bound[:, kept], free[:, kept])


@pytest.mark.parametrize("banned", [(0, 2), (0, 2, 3, 4, 5, 6, 7)])
def test_banned_tokens_are_never_generated(model, memory, banned):
    scorer = ModelScorer(model, memory, banned=banned)
    limits = torch.tensor([6, 6, 6])
    with torch.no_grad():
        found = greedy(scorer, start=START, end=END, max_lengths=limits)
        config = SearchConfig(beams=4)
        for best in beam_search(
            scorer, start=START, end=END, max_lengths=limits, config=config, num_best=4
        ):
            found.extend(best)
    assert len(found) == 3 + 12
    assert not {token for hypothesis in found for token in hypothesis.tokens} & set(banned)


def test_one_row_per_beam_of_each_sentence(model, memory):
    scorer = ModelScorer(model, memory, banned=())
    log_probs, _ = scorer.step(torch.full((12,), START), scorer.start(4))
    assert scorer.batch == 3
    assert log_probs.shape == (12, 11)
