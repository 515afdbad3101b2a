import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.denoising import DenoisingDataConfig, DenoisingTask
from regard.tasks.generation.task import Predictor

SIZES = tuple(
    f"model.{side}.{setting}"
    for side in ("encoder", "decoder")
    for setting in ("dim=16", "num_heads=2", "num_layers=1", "feed_forward_dim=24")
)
SETTINGS = (
    *SIZES,
    "data.source.vocab_size=80",
    "data.corruption.num_sentinels=4",
    "data.batch.max_tokens=400",
    "data.batch.max_length=24",
    "train.max_steps=12",
    "train.validate_every=6",
    "train.schedule.warmup_steps=2",
    "train.precision=fp32",
)
LINES = [
    f"the {noun} {action}s in the sun .\n" for noun in ("cat", "dog") for action in ("run", "sing")
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(LINES * 40), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def make_request(text):
    def request(out, **changes):
        return Request(
            data=(text,),
            recipe="raffel2020-small",
            settings=SETTINGS,
            out=out,
            device="cpu",
            **changes,
        )

    return request


@pytest.fixture(scope="module")
def run(make_request, tmp_path_factory):
    return train(make_request(tmp_path_factory.mktemp("runs") / "t5"))


@pytest.fixture(scope="module")
def task(run):
    return load(run.folder, "cpu")


def test_loaded_run_is_a_denoising_task_with_sentinels(task):
    assert isinstance(task, DenoisingTask)
    assert task.source.tokenizer.token(task.source.tokenizer.find("<x3>")) == "<x3>"


def test_embeddings_and_output_are_tied(task):
    model = task.model
    assert model.encoder.embedding.weight is model.decoder.embedding.weight
    assert model.decoder.output.weight is model.decoder.embedding.weight


def test_masks_are_filled(task):
    (best,) = task.predict(["the ___ runs in the <mask> ."], num_best=2)
    assert len(best) == 2
    assert all("___" not in one.text and "<x" not in one.text for one in best)
    assert best[0].text.startswith("the ")


def test_line_without_a_mask_is_refused(task):
    with pytest.raises(DataError, match=r"Line 1 must have a mask"):
        task.predict(["the cat"])


def test_translate_returns_a_line_without_a_mask_unchanged(task):
    assert task.translate(["the cat"]) == ["the cat"]


def test_more_masks_than_sentinels_are_refused(task):
    with pytest.raises(DataError, match=r"at most 4 masks \(`data.corruption.num_sentinels`\)"):
        task.predict(["___ " * 5])


def test_masks_are_encoded_as_sentinels_and_spans_follow_them(task):
    tokens = task.source.tokenizer
    ids = task.source.read("the ___ runs")
    assert ids == [*tokens.encode("the"), tokens.find("<x0>"), *tokens.encode("runs"), tokens.eos]
    spans = task.target.read("<x0> cat <x1> the sun")
    assert spans[1:-1] == [
        tokens.find("<x0>"),
        *tokens.encode("cat"),
        tokens.find("<x1>"),
        *tokens.encode("the sun"),
    ]
    assert task.target.spans("<x0> cat <x1> the sun") == ["cat", "the sun"]


def test_score_is_the_log_probability_of_the_masked_spans(task):
    examples = [Example(line) for line in LINES]
    for scored in task.score(examples):
        assert scored.tokens[0] == "<x0>"
        assert scored.tokens[-1] == "<eos>"
        assert scored.log_prob == pytest.approx(sum(scored.token_log_probs))
    assert [s.log_prob for s in task.score(examples)] == [s.log_prob for s in task.score(examples)]


def test_evaluation_and_validation_measure_the_same_loss(task):
    examples = [Example(line) for line in LINES * 3]
    with torch.no_grad():
        value = task.validation(examples)().value
    results = task.evaluate(examples).results
    assert results["perplexity"].detail["loss"] == pytest.approx(-value, rel=1e-4)
    assert 0 <= results["accuracy"].value <= 100


def test_empty_test_set_is_refused(task):
    with pytest.raises(DataError, match=r"the test set has no text"):
        task.evaluate([Example(" \n")])


@pytest.mark.parametrize("line", ["the cat runs in the sun .", "the ___ runs in the sun ."])
def test_attention_is_from_the_spans_to_the_masked_text(line, task):
    (attention,) = task.attend([Example(line)])
    weights = attention.weights
    assert weights.shape[2:] == (len(attention.target), len(attention.source))
    assert "<x0>" in attention.source
    assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]))


def test_resumed_training_equals_uninterrupted(make_request, run, interrupted_at, tmp_path):
    out = tmp_path / "run"
    train(make_request(out), display=interrupted_at(7))
    request = make_request(out, is_resumed=True)
    resumed = train(Request(**{**vars(request), "settings": ()}))
    for name, weight in run.predictor.model.state_dict().items():
        assert torch.equal(weight, resumed.predictor.model.state_dict()[name]), name


def test_translation_model_is_fine_tuned_from_a_denoiser(task):
    recipe = load_recipe("bahdanau2015-laptop")
    assert not recipe.data.is_joint
    tuned = Predictor.prepare(recipe, [], device=torch.device("cpu"), init_from=task)
    assert tuned.recipe.data.is_joint
    assert tuned.recipe.model == task.recipe.model
    for name, weight in task.model.state_dict().items():
        assert torch.equal(weight, tuned.model.state_dict()[name]), name
    assert tuned.translate(["the cat runs"])


def test_only_denoisers_can_be_fine_tuned_as_denoisers(task, tiny_run):
    device = torch.device("cpu")
    tuned = DenoisingTask.prepare(task.recipe, [], device=device, init_from=task)
    assert tuned.source.tokenizer.vocab_size == task.source.tokenizer.vocab_size
    with pytest.raises(ConfigError, match=r"but is one for the task 'generation'"):
        DenoisingTask.prepare(task.recipe, [], device=device, init_from=tiny_run.predictor)


def test_separate_vocabularies_are_refused():
    with pytest.raises(ConfigError, match=r"`is_joint` must be true"):
        DenoisingDataConfig(is_joint=False)


def test_score_of_a_mask_without_a_target_is_refused(task):
    with pytest.raises(
        DataError,
        match=r"Line 2 must be without a mask, or have a target for it, to be scored, but is "
        r"'the ___ runs \.'\.",
    ):
        task.score([Example("the cat runs ."), Example("the ___ runs .\n")])
    (scored,) = task.score([Example("the ___ runs .", "<x0> cat")])
    assert scored.log_prob < 0


def test_target_in_show_is_refused(task):
    with pytest.raises(
        ConfigError, match=r"but this model fills masks\. Write 'cat' in place of the mask"
    ):
        task.example_to_show("the ___ runs .", "cat")


def test_reward_is_refused():
    with pytest.raises(ConfigError, match=r"`reward.metric` must be 'none' if `task` is 'den"):
        load_recipe("raffel2020-small", ["reward.metric=bleu"])
