"""Text autoencoders: noise, word dropout, latents and their metrics."""

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.search.settings import SearchConfig
from regard.tasks.autoencoding.recipe import AutoencodingDataConfig, AutoencodingRecipe
from regard.tasks.autoencoding.task import AutoencodingTask
from regard.tasks.base import Autoencodes
from regard.tasks.latents import sample_latents

SETTINGS = (
    "model.encoder.encoder.embedding_dim=12",
    "model.encoder.encoder.dim=12",
    "model.encoder.bottleneck.dim=5",
    "model.decoder.embedding_dim=12",
    "model.decoder.dim=12",
    "data.batch.max_tokens=400",
    "train.max_epochs=0",
    "train.max_steps=12",
    "train.validate_every=6",
    "train.schedule.warmup_steps=2",
)
NOISE = ("data.noise.drop=0.2", "data.noise.swap=0.2", "data.noise.mask=0.2")
VARIATIONAL = (
    "model.encoder.bottleneck.annealing_steps=20",
    "data.word_dropout=0.4",
    *NOISE,
)
LINES = [
    f"{first} {noun} {action}s {ending} ."
    for first in ("the", "a", "my")
    for noun in ("cat", "dog", "bird", "child")
    for action in ("run", "sing", "sleep")
    for ending in ("here", "in the sun", "all day long")
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def make_request(text):
    def request(out, *overrides, recipe="bowman2016-laptop", **changes):
        return Request(
            data=(text,),
            recipe=recipe,
            settings=(*SETTINGS, *overrides),
            out=out,
            device="cpu",
            **changes,
        )

    return request


@pytest.fixture(scope="module")
def run(make_request, tmp_path_factory):
    return train(make_request(tmp_path_factory.mktemp("runs") / "variational", *VARIATIONAL))


@pytest.fixture(scope="module")
def task(run):
    return load(run.folder, "cpu")


@pytest.fixture(scope="module")
def plain(make_request, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "plain"
    return train(make_request(out, recipe="dai2015-autoencoder-laptop")).predictor


def test_loaded_run_is_an_autoencoder_with_one_vocabulary(task):
    assert isinstance(task, AutoencodingTask) and isinstance(task, Autoencodes)
    assert task.source.tokenizer.mask == task.target.tokenizer.mask


def test_resumed_training_equals_uninterrupted(make_request, run, interrupted_at, tmp_path):
    """With noise, word dropout, annealing and sampled latents."""
    out = tmp_path / "run"
    train(make_request(out, *VARIATIONAL), display=interrupted_at(7))
    resumed = train(Request(**{**vars(make_request(out, is_resumed=True)), "settings": ()}))
    for name, weight in run.predictor.model.state_dict().items():
        assert torch.equal(weight, resumed.predictor.model.state_dict()[name]), name


def _rows(batch):
    return zip(batch.rows, batch.source.tolist(), strict=True)


def test_noise_differs_between_epochs(task):
    batches = task.training_batches([Example(line, line) for line in LINES])
    first, again, other = (list(batches.epoch(number)) for number in (0, 0, 1))
    assert all(torch.equal(a.source, b.source) for a, b in zip(first, again, strict=True))
    texts, others = (
        {row: task.source.write(ids) for batch in epoch for row, ids in _rows(batch)}
        for epoch in (first, other)
    )
    assert sum(texts[row] != others[row] for row in texts) > len(LINES) / 2


def test_word_dropout_applies_only_in_training(task):
    tokens = torch.full((50, 40), 9)
    tokens[:, 0] = task.target.tokenizer.sos
    assert torch.equal(task.decoder_inputs(tokens), tokens)
    task.model.train()
    dropped = task.decoder_inputs(tokens)
    task.model.eval()
    assert torch.equal(dropped[:, 0], tokens[:, 0])
    is_unknown = dropped[:, 1:] == task.target.tokenizer.unk
    assert torch.equal(dropped[:, 1:][~is_unknown], tokens[:, 1:][~is_unknown])
    assert is_unknown.float().mean().item() == pytest.approx(0.4, abs=0.04)


def test_translate_decodes_the_latents(task):
    lines = [*LINES[:9], "a bird"]
    assert task.decode(task.encode(lines)) == task.translate(lines)
    assert task.decode(task.encode(lines).double()) == task.translate(lines)


def test_latents_of_a_text_do_not_depend_on_the_batch(task):
    together = task.encode(LINES[:20])
    assert together.shape == (20, 5) and together.dtype == torch.float32
    for row in (0, 7, 19):
        assert torch.allclose(task.encode([LINES[row]])[0], together[row], atol=1e-6)
    assert task.encode([]).shape == (0, 5) and task.decode(torch.zeros(0, 5)) == []


def test_sampled_texts_depend_on_the_seed(task):
    latents = sample_latents(task, 6)
    search = SearchConfig(temperature=1.0)
    first = task.decode(latents, search=search)
    assert task.decode(latents, search=search) == first
    assert task.decode(latents, search=SearchConfig(temperature=1.0, seed=5)) != first


def test_first_samples_do_not_depend_on_the_number_of_samples(task):
    assert torch.equal(sample_latents(task, 9, seed=3)[:4], sample_latents(task, 4, seed=3))
    assert not torch.equal(sample_latents(task, 4, seed=4), sample_latents(task, 4, seed=3))


def test_loss_is_reconstruction_plus_divergence(task):
    examples = [Example(line, line) for line in LINES[:8]]
    (batch,) = task.batches(examples)
    with torch.no_grad():
        loss = task.loss(batch)
        mean, log_variance = task.bottleneck_encoder.bottleneck.posterior(
            task.bottleneck_encoder.encoder(batch.source, batch.source_mask).summary
        )
    divergence = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum()
    expected = -sum(found.log_prob for found in task.score(examples)) + divergence
    assert loss.total.item() == pytest.approx(expected.item(), rel=1e-5)
    assert task.mean_nll([batch]) == pytest.approx(expected.item() / loss.count.item(), rel=1e-5)


def test_evaluation_does_not_depend_on_the_batch(task):
    examples = [Example(line, line) for line in LINES[:12]]
    found = task.evaluate(examples).results
    assert found["elbo"].value < -found["kl"].value < 0
    assert found["elbo"].value == pytest.approx(
        found["elbo"].detail["reconstruction"] - found["kl"].value, rel=1e-5
    )
    config = task.recipe.data.batch
    object.__setattr__(config, "max_sentences", 1)
    alone = task.evaluate(examples).results
    object.__setattr__(config, "max_sentences", 0)
    for name in ("elbo", "kl", "active_units", "token_accuracy", "restored_bleu"):
        assert alone[name].value == pytest.approx(found[name].value, rel=1e-5), name


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_attention_is_on_the_single_latent(kind, plain):
    settings = [setting for setting in SETTINGS if not setting.startswith("model.decoder")]
    recipe = load_recipe(
        "dai2015-autoencoder-laptop", (*settings, f"model.decoder.kind={kind}", "model.ties=none")
    )
    examples = [Example(line, line) for line in LINES[:3]]
    task = AutoencodingTask.prepare(recipe, examples, device=plain.device)
    for example, found in zip(examples, task.attend(examples), strict=True):
        assert found.source == (example.source,)
        assert torch.allclose(found.weights, torch.ones_like(found.weights))
    assert task.decode(task.encode(LINES[:3])) == task.translate(LINES[:3])


def test_validation_ignores_long_texts(plain):
    long = " ".join(LINES)
    short = [Example(line, line) for line in LINES[:4]]
    both = plain.validation([*short, Example(long, long)])()
    assert both == plain.validation(short)()


def test_plain_bottleneck_has_no_elbo_and_no_samples(plain):
    results = plain.evaluate([Example(line, line) for line in LINES[:5]]).results
    assert set(results) == {"accuracy", "bleu", "token_accuracy"}
    with pytest.raises(ConfigError, match="bottleneck of this run is not variational"):
        sample_latents(plain, 2)


def test_only_autoencoders_have_latents(tiny_run):
    with pytest.raises(ConfigError, match="needs a run of an autoencoder, but the task of this"):
        sample_latents(tiny_run.predictor, 2)


def test_latents_of_another_size_are_refused(task):
    with pytest.raises(DataError, match=r"`latents` must have the shape \(B, 5\), but has"):
        task.decode(torch.zeros(2, 4))


def test_autoencoder_is_fine_tuned_from_another(plain):
    recipe = load_recipe("dai2015-autoencoder-laptop", SETTINGS)
    tuned = AutoencodingTask.prepare(recipe, [], device=plain.device, init_from=plain)
    assert tuned.translate(LINES[:5]) == plain.translate(LINES[:5])


def test_fine_tuning_restarts_the_annealing(task):
    assert task.bottleneck_encoder.bottleneck.step > 0
    tuned = AutoencodingTask.prepare(task.recipe, [], device=task.device, init_from=task)
    assert tuned.bottleneck_encoder.bottleneck.step == 0
    assert tuned.translate(LINES[:5]) == task.translate(LINES[:5])


def test_fine_tuning_a_run_of_another_task_is_refused(tiny_run, plain):
    with pytest.raises(ConfigError, match="`init_from` must be a run of an autoencoder of texts"):
        AutoencodingTask.prepare(
            plain.recipe, [], device=plain.device, init_from=tiny_run.predictor
        )


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("model.encoder.of=states",), r"`model\.encoder\.of` must be 'summary'"),
        (("model.encoder.kind=rnn",), r"`model\.encoder\.kind` must be 'bottleneck'.* is 'rnn'"),
        (("data.is_joint=false",), "`data.is_joint` must be true .* but is false"),
        (("data.word_dropout=1.5",), r"`data.word_dropout` must be between 0\.0 and 1\.0"),
    ],
)
def test_wrong_settings_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_recipe("bowman2016-laptop", overrides)


def test_default_recipe_has_a_bottleneck_and_no_noise():
    assert AutoencodingRecipe().model.encoder.kind == "bottleneck"
    assert not AutoencodingDataConfig().noise.is_any
