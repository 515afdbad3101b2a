import pytest
import torch

from regard.data.example import Example
from regard.data.text.field import both_sides
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.models.build import ModelConfig
from regard.models.decoders import HardXuDecoderConfig, SoftXuDecoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.runs.train import train
from regard.tasks.generation.recipe import Recipe
from regard.tasks.generation.task import Predictor
from regard.training.checkpoint import read_weights

SIZES = {"embedding_dim": 6, "dim": 8, "attention_dim": 4}
EXAMPLES = [Example("a b b a", "b a a"), Example("c a b", "c")]


def build(decoder):
    tokenizer = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
    encoder = RnnEncoderConfig(embedding_dim=6, dim=8)
    recipe = Recipe(model=ModelConfig(encoder=encoder, decoder=decoder))
    return Predictor.from_scratch(recipe, {**both_sides(tokenizer)}, device=torch.device("cpu"))


def compute_loss(predictor):
    """Return the loss of all examples, with the same samples each time."""
    (batch,) = predictor.batches(EXAMPLES)
    torch.manual_seed(0)
    return predictor.loss(batch)


def test_reward_is_the_log_probability_of_the_true_tokens():
    predictor = build(HardXuDecoderConfig(soft_share=0.0, **SIZES))
    advantage = predictor.model.train().decoder.advantage
    before = advantage.usual.clone()
    (batch,) = predictor.batches(EXAMPLES)
    loss = compute_loss(predictor)
    tokens = batch.target[:, 1:][batch.target_mask[:, 1:]]
    # The baseline of each token moves a tenth of the way to its mean reward.
    moved = (10 * (advantage.usual - before) + before)[tokens].sum()
    assert moved.item() == pytest.approx(-loss.nll.item(), rel=1e-4)


def test_baseline_is_subtracted_from_the_reward():
    predictor = build(HardXuDecoderConfig(soft_share=0.0, entropy=0.0, reward=1.0, **SIZES))
    advantage = predictor.model.train().decoder.advantage
    terms = []
    for usual in (-2.0, -4.0, -8.0):
        advantage.usual.fill_(usual)
        advantage.variance.fill_(1.0)
        loss = compute_loss(predictor)
        terms.append(loss.total.item() - loss.nll.item())
    # The loss is linear in the baseline if the samples are the same.
    assert terms[2] - terms[1] == pytest.approx(2 * (terms[1] - terms[0]), rel=1e-4)
    assert terms[1] - terms[0] > 1.0


def test_evaluation_loss_has_only_the_doubly_stochastic_term():
    for decoder, has_term in (
        (HardXuDecoderConfig(**SIZES), False),
        (SoftXuDecoderConfig(**SIZES), True),
    ):
        predictor = build(decoder)
        predictor.model.eval()
        loss = compute_loss(predictor)
        assert (loss.total > loss.nll + 0.1) == has_term


def test_baseline_is_saved_with_the_weights(reverse_files, tmp_path):
    found = train(
        reverse_files.request(tmp_path / "run", "model.decoder.kind=xu_hard", "train.max_steps=2")
    )
    usual = read_weights(found.folder / "model.safetensors")["decoder.advantage.usual"]
    assert len(usual.unique()) > 1
