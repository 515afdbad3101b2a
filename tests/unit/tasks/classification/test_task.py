import json
import math
from dataclasses import replace

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.labelled import generate_opinions
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.classification.attention import SALIENCY
from regard.tasks.classification.task import ClassificationTask

TINY = (
    "data.batch.max_sentences=16",
    "model.encoder.dim=16",
    "model.encoder.num_layers=1",
    "model.encoder.feed_forward_dim=16",
    "model.encoder.dropout=0.0",
    "train.max_epochs=2",
    "train.precision=fp32",
)
CPU = torch.device("cpu")
TEXTS = [
    "the film is not dull",
    "the plot was awful",
    "i find the cast superb , but the ending is not fresh",
]
PAIRS = [
    Example((f"a {a} {action}", f"a {b} {action}"), "same" if a == b else "other")
    for a in ("dog", "cat", "man", "bird")
    for b in ("dog", "cat", "man", "bird")
    for action in ("runs", "sleeps", "eats")
]


def recipe_of(*overrides, name="sst2-transformer"):
    return load_recipe(name, (*TINY, *overrides))


def build(*overrides, examples=None, name="sst2-transformer"):
    """Return an untrained task with enlarged weights, so that errors are visible."""
    examples = generate_opinions(40) if examples is None else examples
    task = ClassificationTask.prepare(recipe_of(*overrides, name=name), examples, device=CPU)
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.mul_(1.5)
    return task


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opinions")
    examples = generate_opinions(220, seed=4)
    splits = {"train": examples[:160], "valid": examples[160:190], "test": examples[190:]}
    for split, part in splits.items():
        write_examples(folder / f"{split}.jsonl", part)
    data, valid, test = ((str(folder / f"{split}.jsonl"),) for split in splits)
    return train(
        Request(
            data=data,
            valid=valid,
            test=test,
            recipe="sst2-transformer",
            settings=TINY,
            out=folder / "run",
            device="cpu",
        )
    )


def test_probabilities_of_all_labels_sum_to_one():
    for found in build().predict(TEXTS, num_best=5):
        assert {prediction.text for prediction in found} == {"negative", "positive"}
        assert sum(math.exp(p.log_prob) for p in found) == pytest.approx(1)
        assert found[0].log_prob >= found[1].log_prob


def test_batched_equals_alone():
    task = build()
    together = task.predict(TEXTS, num_best=2)
    for text, found in zip(TEXTS, together, strict=True):
        ((alone),) = task.predict([text], num_best=2)
        assert [p.text for p in alone] == [p.text for p in found]
        assert [p.log_prob for p in alone] == pytest.approx([p.log_prob for p in found], abs=1e-5)


def test_score_of_a_label_is_its_log_probability_in_predict():
    task = build()
    for label in task.labels.names:
        scored = task.score([Example(text, label) for text in TEXTS])
        for one, found in zip(scored, task.predict(TEXTS, num_best=2), strict=True):
            assert one.log_prob == pytest.approx({p.text: p.log_prob for p in found}[label])


def test_loss_is_the_mean_negative_log_probability_of_the_labels():
    task = build("train.label_smoothing=0.2")
    examples = [Example(text, "positive") for text in TEXTS]
    (batch,) = task.batches(examples, [1, 1, 1])
    found = task.loss(batch)
    expected = -sum(prediction.log_prob for prediction in task.score(examples))
    assert float(found.total.detach()) == pytest.approx(expected, rel=1e-5)
    task.model.train()
    assert float(task.loss(batch).total.detach()) != pytest.approx(expected, rel=1e-3)


def test_empty_text_has_an_empty_prediction():
    found = build().predict(["", " ", "\t", "the film is dull"])
    assert [best[0].text for best in found][:3] == ["", "", ""]
    assert found[3][0].text in ("negative", "positive")


def test_tab_in_a_line_makes_a_pair():
    task = build(examples=PAIRS, name="sick-transformer")
    ((line,), (pair,)) = task.predict(["a dog runs\ta cat runs", ("a dog runs", "a cat runs")])
    assert line == pair
    assert task.read_items(["a dog runs\ta cat runs"])[0].count(task.source.tokenizer.eos) == 2


def test_order_of_a_pair_matters():
    task = build(examples=PAIRS, name="sick-transformer")
    ((one,), (other,)) = task.predict([("a dog runs", "a cat"), ("a cat", "a dog runs")])
    assert one.log_prob != pytest.approx(other.log_prob, abs=1e-6)


def test_long_text_is_shortened_with_one_warning(caplog):
    task = build("data.batch.max_length=6")
    long = " ".join(["film"] * 50)
    assert len(task.read_items([long])[0]) == 6
    task.predict([long])
    assert caplog.text.count("shortened 1 of 1 texts to 6 tokens") == 1


def test_learned_positions_limit_the_length():
    task = build("model.encoder.positions=learned", "model.encoder.max_length=9")
    assert task.max_length == 9
    assert task.predict([" ".join(["film"] * 50)])[0][0].text


def test_long_texts_can_be_dropped_from_training():
    task = build("data.batch.max_length=6", "data.batch.too_long=drop")
    examples = [Example("the film", "positive"), Example(" ".join(["film"] * 9), "negative")]
    (batch,) = task.training_batches(examples).epoch(0)
    assert batch.rows == (0,)


def test_longest_text_of_a_pair_is_truncated():
    task = build("data.batch.max_length=8", examples=PAIRS, name="sick-transformer")
    tokenizer = task.source.tokenizer
    (ids,) = task.read_items([("a dog " * 9, "a cat")])
    assert len(ids) == 8
    assert ids[0] == tokenizer.sos and ids[-3:] == [*tokenizer.encode("a cat"), tokenizer.eos]


def test_data_with_one_label_is_refused():
    with pytest.raises(DataError, match="at least two labels"):
        build(examples=[Example("a", "yes"), Example("b", "yes")])


def test_unknown_label_in_a_test_set_is_refused():
    with pytest.raises(DataError, match="'positif' is not a label.*Did you mean 'positive'?"):
        build().evaluate([Example("the film is dull", "positif")])


def test_empty_test_set_is_refused():
    with pytest.raises(DataError, match="nothing to evaluate"):
        build().evaluate([])


def test_zero_labels_are_refused():
    with pytest.raises(ConfigError, match="`nbest` must be at least 1"):
        build().predict(["a"], num_best=0)


def test_evaluation_has_scores_and_a_confusion_matrix(trained):
    found = json.loads(json.dumps(trained.evaluation.to_dict()))
    correct = sum(found["confusion"][label].get(label, 0) for label in found["confusion"])
    assert found["scores"]["accuracy"]["value"] == pytest.approx(100 * correct / 30)
    assert found["scores"]["accuracy"]["detail"]["count"] == 30
    assert sum(group["count"] for group in found["by_length"]) == 30
    assert "recall positive" in found["scores"]["macro_f1"]["detail"]


def test_accuracy_at_five_is_measured_with_many_labels():
    examples = [Example(f"text number {number}", f"label {number % 7}") for number in range(28)]
    task = build(examples=examples)
    found = task.predict([example.source for example in examples], num_best=5)
    hits = [
        example.target in {prediction.text for prediction in best}
        for example, best in zip(examples, found, strict=True)
    ]
    result = task.evaluate(examples).results["accuracy@5"]
    assert result.value == pytest.approx(100 * sum(hits) / 28)
    assert 0 < sum(hits) < 28


def test_accuracy_at_five_is_not_measured_with_few_labels(trained):
    assert set(trained.evaluation.results) == {"accuracy", "macro_f1"}


def test_loaded_run_has_the_best_validation_score(trained):
    task = load(trained.folder, "cpu")
    examples = generate_opinions(220, seed=4)[160:190]
    with torch.no_grad():
        found = task.validation(examples)()
    assert found.value == pytest.approx(trained.summary.progress.best)
    outputs = [best[0].text for best in task.predict([example.source for example in examples])]
    accuracy = sum(a == e.target for a, e in zip(outputs, examples, strict=True)) / 30
    assert found.metrics["accuracy"] == pytest.approx(100 * accuracy)


def test_loss_can_be_the_criterion_for_the_best_weights():
    task = build("validation.metric=loss")
    examples = [Example(text, "positive") for text in TEXTS]
    with torch.no_grad():
        found = task.validation(examples)()
    assert found.value == -found.metrics["loss"]


def test_loaded_run_predicts_as_the_trained_one(trained):
    assert load(trained.folder, "cpu").predict(TEXTS) == trained.predictor.predict(TEXTS)


class TestFineTuning:
    def test_encoder_and_vocabulary_are_kept_and_the_head_is_new(self, trained):
        start = load(trained.folder, "cpu")
        recipe = recipe_of("model.encoder.dim=32", "model.pooling=mean", "seed=9")
        tuned = ClassificationTask.prepare(recipe, PAIRS, device=CPU, init_from=start)
        assert tuned.recipe.model.encoder == start.recipe.model.encoder
        assert tuned.recipe.model.pooling == "mean"
        assert tuned.source.tokenizer is start.source.tokenizer
        assert tuned.labels.names == ("other", "same")
        expected = start.model.encoder.state_dict()
        for name, weight in tuned.model.encoder.state_dict().items():
            assert torch.equal(weight, expected[name])
        assert not torch.equal(tuned.model.output.weight, start.model.output.weight)

    def test_encoder_of_a_translation_model_is_kept(self, tiny_run):
        tuned = ClassificationTask.prepare(
            recipe_of("model.pooling=max"),
            [Example("a b", "x"), Example("b a", "y")],
            device=CPU,
            init_from=tiny_run.predictor,
        )
        source = torch.tensor([tuned.source.read("a b c")])
        mask = torch.ones_like(source, dtype=torch.bool)
        with torch.no_grad():
            states = tuned.model.encoder(source, mask).states
            expected = tiny_run.predictor.model.encoder(source, mask).states
        assert torch.equal(states, expected)

    def test_run_without_encoder_is_refused(self, trained):
        start = load(trained.folder, "cpu")
        start.model = torch.nn.Linear(2, 2)
        with pytest.raises(ConfigError, match="`init_from` must be a run with an encoder"):
            ClassificationTask.prepare(recipe_of(), PAIRS, device=CPU, init_from=start)

    def test_training_starts_from_a_run_folder_and_can_be_resumed(self, trained, tmp_path):
        data = tmp_path / "data.jsonl"
        write_examples(data, PAIRS)
        request = Request(
            data=(str(data),),
            recipe="sst2-transformer",
            settings=(*TINY, "train.max_epochs=1", f"init_from={trained.folder}"),
            out=tmp_path / "run",
            device="cpu",
        )
        found = train(request).predictor
        assert found.source.tokenizer.vocab_size == trained.predictor.source.tokenizer.vocab_size
        again = train(replace(request, is_resumed=True, settings=("train.max_epochs=2",)))
        assert again.summary.progress.epoch == 2


KINDS = {
    "attention of the pooling": ("model.pooling=attention",),
    "self-attention": ("model.pooling=first",),
}
RNN = ("model.encoder.kind=rnn", "model.encoder.dim=8", "model.pooling=mean")


class TestAttend:
    @pytest.mark.parametrize("kind", KINDS)
    def test_weights_of_a_text_sum_to_one(self, kind):
        task = build(*KINDS[kind])
        examples = [Example(text, "positive") for text in TEXTS]
        for example, found in zip(examples, task.attend(examples), strict=True):
            assert found.kind == kind
            assert found.target == ("positive",)
            assert len(found.source) == len(task.source.read(example.source))
            assert found.mean().shape == (1, len(found.source))
            assert float(found.mean().sum()) == pytest.approx(1, abs=1e-5)

    def test_mean_pooling_averages_the_attention_of_all_positions(self):
        task = build("model.pooling=mean")
        together = task.attend([Example(text, "negative") for text in TEXTS])
        for text, found in zip(TEXTS, together, strict=True):
            (alone,) = task.attend([Example(text, "negative")])
            torch.testing.assert_close(alone.weights, found.weights)
            assert float(found.mean().sum()) == pytest.approx(1, abs=1e-5)

    def test_map_of_a_recurrent_network_is_gradient_times_input(self):
        settings = [setting for setting in TINY if not setting.startswith("model.encoder")]
        recipe = load_recipe("sst2-lstm", (*settings, *RNN))
        task = ClassificationTask.prepare(recipe, generate_opinions(40), device=CPU)
        (found,) = task.attend([Example(TEXTS[0], "positive")])
        assert found.kind == SALIENCY
        assert float(found.weights.sum()) == pytest.approx(1, abs=1e-5)
        # Scaling the embedding of a word changes the logit by gradient x input.
        ids = torch.tensor([task.source.read(TEXTS[0])])
        table = task.model.encoder.embedding.weight
        effects = []
        for position in range(ids.shape[1]):
            logits = []
            for scale in (1 - 1e-2, 1 + 1e-2):
                handle = task.model.encoder.embedding.register_forward_hook(
                    lambda _m, _i, out, position=position, scale=scale: torch.cat(
                        [
                            out[:, :position],
                            out[:, position : position + 1] * scale,
                            out[:, position + 1 :],
                        ],
                        1,
                    )
                )
                with torch.no_grad():
                    logits.append(task.model(ids, torch.ones_like(ids).bool())[0, 1])
                handle.remove()
            effects.append(abs(float(logits[1] - logits[0])))
        shares = torch.tensor(effects) / sum(effects)
        torch.testing.assert_close(found.weights.flatten(), shares, rtol=0.05, atol=0.01)
        assert table.grad is None

    def test_unknown_label_is_refused(self):
        with pytest.raises(DataError, match="'x' is not a label"):
            build().attend([Example("the film", "x")])
