import itertools

import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.models.build import ModelConfig
from regard.models.decoders import (
    HardXuDecoder,
    HardXuDecoderConfig,
    SoftXuDecoder,
    SoftXuDecoderConfig,
)
from regard.models.heads.copying import PointerConfig
from regard.models.interfaces import Memory
from regard.training.checkpoint import load_weights, save_weights
from regard.training.losses import log_probs_of

LENGTHS = [5, 2, 4]
SIZES = {"embedding_dim": 3, "dim": 6, "attention_dim": 2}
TARGETS = torch.tensor([[2, 5, 8, 4], [2, 7, 7, 1], [2, 8, 5, 3]])


def build_soft(**changes):
    torch.manual_seed(0)
    return SoftXuDecoder(SoftXuDecoderConfig(**SIZES, **changes), 9, memory_dim=4).eval()


def build_hard(**changes):
    torch.manual_seed(0)
    return HardXuDecoder(HardXuDecoderConfig(**SIZES, **changes), 9, memory_dim=4).eval()


def lstm_by_hand(cell, inputs, hidden, kept):
    gates = cell.weight_ih_l0 @ inputs + cell.bias_ih_l0 + cell.weight_hh_l0 @ hidden
    take, keep, new, give = (gates + cell.bias_hh_l0).chunk(4)
    kept = keep.sigmoid() * kept + take.sigmoid() * new.tanh()
    return give.sigmoid() * kept.tanh(), kept


def attend_by_hand(decoder, hidden, annotations):
    score = decoder.attention.score
    energies = torch.stack(
        [
            score.weight.weight[0] @ (score.query_map.weight @ hidden + score.key_map(one)).tanh()
            for one in annotations
        ]
    )
    return energies.exp() / energies.exp().sum()


@pytest.mark.parametrize("build", [build_soft, build_hard], ids=["soft", "hard"])
def test_steps_follow_the_paper(memory, build):
    decoder = build()
    logits = decoder(TARGETS, memory).logits
    for row, length in enumerate(LENGTHS):
        annotations = memory.states[row, :length]
        hidden, kept = (start(annotations.mean(0)).tanh() for start in decoder.bridge.maps)
        for position, token in enumerate(TARGETS[row]):
            weights = attend_by_hand(decoder, hidden, annotations)
            if build is build_hard:
                weights = torch.eye(length)[weights.argmax()]
            context = decoder.gate(hidden).sigmoid() * (weights @ annotations)
            word = decoder.embedding.weight[token]
            inputs = torch.cat([word, context])
            hidden, kept = lstm_by_hand(decoder.recurrence.sequence, inputs, hidden, kept)
            joined = word + decoder.state_map(hidden) + decoder.context_map(context)
            assert torch.allclose(logits[row, position], decoder.output(joined), atol=1e-5)


def test_doubly_stochastic_loss_excludes_padding_of_source_and_target(memory):
    decoder = build_soft(doubly_stochastic=0.5)
    with record(decoder) as maps:
        terms = decoder(TARGETS, memory).losses["doubly_stochastic"]
    weights = maps.stack()[:, 0, 0]
    assert terms.shape == (3, 4)
    for row, (num_positions, num_tokens) in enumerate(zip(LENGTHS, (4, 2, 3), strict=True)):
        sums = weights[row, :num_tokens, :num_positions].sum(0)
        expected = 0.5 * (1 - sums).square().sum()
        assert torch.allclose(terms[row, :num_tokens].sum(), expected, atol=1e-5)


def test_without_its_weight_there_is_no_doubly_stochastic_loss(memory):
    assert build_soft(doubly_stochastic=0.0)(TARGETS, memory).losses == {}


def test_hard_attention_selects_one_position_per_step(memory):
    decoder = build_hard()
    with record(decoder) as maps:
        decoder(TARGETS, memory)
    weights = maps.stack()[:, 0, 0]
    assert weights.shape == (3, 4, 5)
    assert ((weights == 0) | (weights == 1)).all()
    assert (weights.sum(-1) == 1).all()


def test_evaluation_is_deterministic_without_loss_terms(memory):
    decoder = build_hard()
    first, second = (decoder(TARGETS, memory) for _ in range(2))
    assert torch.equal(first.logits, second.logits)
    assert first.losses == {} and first.reinforce is None


def test_entropy_term_is_the_negative_entropy(memory):
    decoder = build_hard(entropy=0.5, soft_share=1.0).train()
    with record(decoder) as maps:
        terms = decoder(TARGETS, memory).losses["entropy"]
    probs = maps.stack()[:, 0, 0]
    expected = -0.5 * torch.distributions.Categorical(probs).entropy()
    assert torch.allclose(terms, expected, atol=1e-5)


def test_reinforce_term_is_advantage_times_log_probability(memory):
    decoder, other = (build_hard(reward=2.0, soft_share=0.5).train() for _ in range(2))
    torch.manual_seed(0)
    state = decoder.start(memory)
    outputs = decoder.run(TARGETS, state)[2]
    torch.manual_seed(0)
    output = decoder(TARGETS, memory)
    target_log_probs, mask = torch.randn(3, 4), torch.arange(4) < torch.tensor([4, 2, 3])[:, None]
    is_soft = state.per_hypothesis["attention"]
    assert is_soft.any() and not is_soft.all()
    expected = other.advantage(target_log_probs, TARGETS, mask & ~is_soft[:, None])
    log_probs = torch.cat([attended.sample.log_probs for attended in outputs], dim=1)
    terms = output.reinforce(target_log_probs, TARGETS, mask)
    assert torch.allclose(terms, -2.0 * expected * log_probs, atol=1e-5)
    assert not terms[is_soft].any() and terms[~is_soft, 0].all()


def test_soft_steps_start_with_soft_attention(memory):
    decoder = build_hard(soft_share=0.0, soft_steps=1).train()
    first, second = (decoder.start(memory).per_hypothesis["attention"] for _ in range(2))
    assert first.all() and not second.any()


def test_baseline_is_saved(memory, tmp_path):
    decoder, other = build_hard(soft_share=0.0).train(), build_hard()
    target_log_probs = torch.full((3, 4), -1.5)
    decoder(TARGETS, memory).reinforce(target_log_probs, TARGETS, torch.ones(3, 4).bool())
    save_weights(decoder, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert torch.equal(other.advantage.usual, decoder.advantage.usual)
    assert torch.equal(other.advantage.variance, decoder.advantage.variance)
    assert not torch.equal(other.advantage.usual, build_hard().advantage.usual)


class Forced:
    """Sampler that returns the given choices, step by step."""

    def __init__(self, choices):
        self.choices = iter(choices.unbind(1))

    def __call__(self, probs):
        return next(self.choices)[:, None]


NUM_POSITIONS, INPUTS, LABELS = 3, torch.tensor([[2, 5]]), torch.tensor([[5, 3]])
ATTENTION_WEIGHTS = (
    "attention.score.query_map.weight",
    "attention.score.weight.weight",
    "gate.weight",
)


def one_image(num_rows):
    """The same image in every row."""
    states = torch.randn(1, NUM_POSITIONS, 4, generator=torch.Generator().manual_seed(2))
    return Memory(
        states=2 * states.expand(num_rows, -1, -1),
        mask=torch.ones(num_rows, NUM_POSITIONS).bool(),
        summary=states[:, 0].expand(num_rows, -1),
    )


def sharpened():
    """Decoder with uneven attention distributions."""
    decoder = build_hard(soft_share=0.0, entropy=0.0, reward=1.0).train().double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.mul_(2.0)
    return decoder


def memory_of(num_rows):
    memory = one_image(num_rows)
    return Memory(memory.states.double(), memory.mask, memory.summary.double())


def gradients(decoder, loss, *, keep=False):
    parameters = dict(decoder.named_parameters())
    weights = [parameters[name] for name in ATTENTION_WEIGHTS]
    found = torch.autograd.grad(loss, weights, retain_graph=keep, materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in found])


def every_choice():
    """Decoder with every sequence of two positions out of three, each once."""
    decoder, choices = sharpened(), list(itertools.product(range(NUM_POSITIONS), repeat=2))
    decoder.attention.sample = Forced(torch.tensor(choices))
    num = len(choices)
    return decoder, memory_of(num), INPUTS.expand(num, -1), LABELS.expand(num, -1)


def probs_and_logits():
    """Probability of each sequence of positions, (N,), and its logits."""
    decoder, memory, inputs, _ = every_choice()
    logits, _, outputs = decoder.run(inputs, decoder.start(memory))
    return decoder, sum(attended.sample.log_probs[:, 0] for attended in outputs).exp(), logits


def exact_gradient():
    """Gradient of Σ_s p(s) log p(y | s) over all sequences of positions."""
    decoder, probs, logits = probs_and_logits()
    assert torch.allclose(probs.sum(), torch.ones((), dtype=torch.double))
    target_log_probs = log_probs_in_full(logits, LABELS.expand(len(probs), -1))
    return gradients(decoder, -(probs * target_log_probs.sum(1)).sum())


def log_probs_in_full(logits, labels):
    """As `log_probs_of`, in the precision of the logits."""
    return logits.log_softmax(-1).gather(-1, labels[..., None])[..., 0]


@pytest.mark.parametrize("usual", [0.0, -2.0], ids=["without", "with-a-baseline"])
def test_expected_gradient_is_the_exact_one(usual):
    _, probs, _ = probs_and_logits()
    decoder, memory, inputs, labels = every_choice()
    decoder.advantage.usual.copy_(usual * torch.arange(9))
    output = decoder(inputs, memory)
    target_log_probs = log_probs_in_full(output.logits, labels)
    terms = output.reinforce(target_log_probs.detach(), labels, torch.ones_like(labels).bool())
    found = gradients(decoder, (probs.detach()[:, None] * (terms - target_log_probs)).sum())
    assert torch.allclose(found, exact_gradient(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("usual", [0.0, -2.0], ids=["without", "with-a-baseline"])
def test_mean_of_sampled_gradients_approaches_the_exact_one(usual):
    decoder, num, parts, plain = sharpened(), 4000, [], []
    for _ in range(10):
        decoder.advantage.usual.fill_(usual)
        decoder.advantage.variance.fill_(1.0)  # A scale would change the gradient.
        output = decoder(INPUTS.expand(num, -1), memory_of(num))
        labels = LABELS.expand(num, -1)
        target_log_probs = log_probs_of(output.logits, labels)
        terms = output.reinforce(target_log_probs, labels, torch.ones_like(labels).bool())
        parts.append(gradients(decoder, (terms - target_log_probs).mean(0).sum(), keep=True))
        plain.append(gradients(decoder, -target_log_probs.mean(0).sum()))
    found, expected = torch.stack(parts), exact_gradient()
    error = found.std(0) / len(parts) ** 0.5
    assert (found.mean(0) - expected).abs().le(5 * error + 1e-4).all()
    assert error.norm() < 0.1 * expected.norm()
    # Without the term, the gradient is different.
    assert (torch.stack(plain).mean(0) - expected).norm() > 0.5 * expected.norm()


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        (SoftXuDecoderConfig, {"doubly_stochastic": -1.0}, "`doubly_stochastic` must be at least"),
        (HardXuDecoderConfig, {"soft_share": 1.5}, "`soft_share` must be between 0.0 and 1.0"),
        (HardXuDecoderConfig, {"soft_steps": -1}, "`soft_steps` must be at least 0, but is -1"),
        (HardXuDecoderConfig, {"reward": -1.0}, "`reward` must be at least 0.0, but is -1.0"),
        (HardXuDecoderConfig, {"entropy": -1.0}, "`entropy` must be at least 0.0, but is -1.0"),
    ],
    ids=["doubly-stochastic", "soft-share", "soft-steps", "reward", "entropy"],
)
def test_settings_have_limits(settings, changes, message):
    with pytest.raises(ConfigError, match=message):
        settings(**changes)


@pytest.mark.parametrize("settings", [SoftXuDecoderConfig, HardXuDecoderConfig])
def test_copying_is_an_error(settings):
    with pytest.raises(
        ConfigError,
        match=rf"`copying.kind` 'pointer'.*`decoder.kind` is '{settings.kind}'.*'bahdanau'",
    ):
        ModelConfig(decoder=settings(), copying=PointerConfig())
