import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.core.errors import CheckpointError, ConfigError, DataError
from regard.data.example import Example
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.masked_lm import MaskedModelConfig
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.masked_lm.distillation import Teacher
from regard.tasks.masked_lm.recipe import MaskedRecipe
from regard.tasks.masked_lm.task import MaskedLmTask

SETTINGS = (
    "data.tokenizer.vocab_size=80",
    "data.batch.max_tokens=400",
    "data.batch.max_length=24",
    "model.encoder.dim=16",
    "model.encoder.num_heads=2",
    "model.encoder.num_layers=2",
    "model.encoder.feed_forward_dim=24",
    "model.encoder.max_length=24",
    "train.max_steps=20",
    "train.validate_every=10",
    "train.schedule.warmup_steps=2",
    "train.precision=fp32",
    "model.encoder.positions=learned",
)


def write_lines(num, seed=0):
    """Return sentences in which noun and predicate agree in number."""
    generator = random.Random(seed)
    lines = []
    for _ in range(num):
        noun, action = generator.choice(["cat", "dog", "hen"]), generator.choice(["run", "sing"])
        is_plural = generator.random() < 0.5
        subject = f"two {noun}s {action}" if is_plural else f"a {noun} {action}s"
        lines.append(f"{subject} in the {generator.choice(['rain', 'sun'])} .\n")
    return lines


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(write_lines(200)), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def request_for(text):
    def make_request(out, *overrides, recipe="liu2019-laptop", **changes):
        settings = (*SETTINGS, *overrides)
        return Request(
            data=(text,), recipe=recipe, settings=settings, out=out, device="cpu", **changes
        )

    return make_request


@pytest.fixture(scope="module")
def run(request_for, tmp_path_factory):
    return train(request_for(tmp_path_factory.mktemp("runs") / "masked"))


@pytest.fixture(scope="module")
def task(run):
    return load(run.folder, "cpu")


def recipe_with(*overrides, recipe="liu2019-laptop"):
    return load_recipe(recipe, (*SETTINGS, *overrides))


def prepare(*overrides, recipe="liu2019-laptop", init_from=None):
    examples = [Example(line) for line in write_lines(60)]
    settings = recipe_with(*overrides, recipe=recipe)
    task = MaskedLmTask.prepare(settings, examples, device=torch.device("cpu"), init_from=init_from)
    return task, examples


def test_loaded_run_evaluates_as_the_trained_one(run, task):
    assert isinstance(task, MaskedLmTask)
    examples = [Example(line) for line in write_lines(20, seed=1)]
    found, expected = (one.evaluate(examples).results for one in (task, run.predictor))
    assert {name: r.value for name, r in found.items()} == {
        name: r.value for name, r in expected.items()
    }


def test_training_reduces_the_validation_loss(run):
    losses = [
        json.loads(line)["loss"]
        for line in (run.folder / "journal.jsonl").read_text().splitlines()
        if json.loads(line)["kind"] == "valid"
    ]
    assert losses[-1] < losses[0]


def test_a_mask_is_added_to_the_vocabulary(task):
    assert task.tokenizer.token(task.tokenizer.mask) == "<mask>"


def test_loss_is_over_masked_tokens_only(task):
    (batch, *_) = task.held_out_batches([Example(line) for line in write_lines(30)])
    loss = task.loss(batch)
    logits = task.model(batch.values, batch.mask).flatten(0, 1)[batch.masked_positions]
    expected = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="sum")
    assert loss.count == len(batch.labels)
    assert torch.allclose(loss.total, expected, rtol=1e-5)


def test_auxiliary_objectives_add_to_the_loss():
    for settings in (
        ("model.boundary=1.0",),
        ("model.next_sentence=1.0", "data.packing=pairs"),
        ("model.next_sentence=1.0", "data.packing=swaps"),
    ):
        task, examples = prepare(*settings)
        (batch, *_) = task.held_out_batches(examples)
        loss = task.loss(batch)
        assert loss.total > loss.nll


def test_evaluation_measures_pairs():
    task, examples = prepare("model.next_sentence=1.0", "data.packing=pairs")
    assert 0 <= task.evaluate(examples).results["pairs"].value <= 100


def test_pairs_and_next_sentence_objective_need_each_other():
    with pytest.raises(ConfigError, match=r"`model.next_sentence` must be above 0 with"):
        recipe_with("data.packing=pairs")
    with pytest.raises(ConfigError, match=r"but is 1 with 'windows'"):
        recipe_with("model.next_sentence=1.0")


def test_resumed_training_equals_uninterrupted(request_for, run, interrupted_at, tmp_path):
    out = tmp_path / "run"
    train(request_for(out), display=interrupted_at(13))
    resumed = train(replace(request_for(out), is_resumed=True, settings=()))
    for name, weight in run.predictor.model.state_dict().items():
        assert torch.equal(weight, resumed.predictor.model.state_dict()[name]), name


def test_validation_masks_always_the_same_tokens(task):
    examples = [Example(line) for line in write_lines(30)]
    validate = task.validation(examples)
    with torch.no_grad():
        assert validate().value == validate().value == task.validation(examples)().value


def test_masks_are_filled_with_the_most_probable_tokens(task):
    line = "two <mask> run in the rain ."
    ((best, second),) = task.predict([line], num_best=2)
    before, after = task.tokenizer.encode("two"), task.tokenizer.encode("run in the rain .")
    position = len(before) + 1
    values = [task.tokenizer.sos, *before, task.tokenizer.mask, *after, task.tokenizer.eos]
    logits = task.model(torch.tensor([values]), torch.ones(1, len(values), dtype=torch.bool))
    log_probs = logits[0, position].log_softmax(-1).detach()
    log_probs[[0, 1, 2, 3, task.tokenizer.mask]] = -torch.inf  # special tokens
    assert best.log_prob == pytest.approx(float(log_probs.max()), abs=1e-4)
    assert best.tokens == (task.tokenizer.token(int(log_probs.argmax())),)
    assert best.text == line.replace("<mask>", task.tokenizer.decode([int(log_probs.argmax())]))
    assert second.log_prob <= best.log_prob


def test_all_spellings_of_a_mask_are_equivalent(task):
    lines = [f"two {mask} run in the rain ." for mask in ("<mask>", "[MASK]", "___", "_____")]
    assert len({found[0].text for found in task.predict(lines)}) == 1


def test_several_masks_are_filled_independently_and_ranked(task):
    (found,) = task.predict(["two <mask> run in the <mask>."], num_best=4)
    assert [len(one.tokens) for one in found] == [2] * 4
    assert [one.log_prob for one in found] == sorted((p.log_prob for p in found), reverse=True)
    assert all(one.log_prob == pytest.approx(sum(one.token_log_probs)) for one in found)
    assert len({one.tokens for one in found}) == 4


def test_punctuation_after_a_mask_is_tokenised_as_usual(task):
    expected = task.tokenizer.encode("in the sun.")
    assert task.predict(["in the <mask>."])[0][0].text.endswith(".")
    assert task._encode_masked("in the <mask>.").values[-2] == expected[-1]


def test_batched_equals_alone(task):
    lines = ["two <mask> run in the rain .", "a dog <mask> .", ""]
    together = task.predict(lines)
    for line, found in zip(lines, together, strict=True):
        (alone,) = task.predict([line])
        assert alone[0].text == found[0].text
        assert alone[0].log_prob == pytest.approx(found[0].log_prob, abs=1e-4)


def test_line_without_a_mask_is_refused(task):
    with pytest.raises(DataError, match=r"Line 2 must have a mask, spelled '<mask>'"):
        task.predict(["a <mask>", "a dog runs"])


def test_error_suggests_the_spelling_of_a_mask(task):
    with pytest.raises(DataError, match=r"Did you mean '<mask>' by '<MASK>'\?"):
        task.predict(["a <MASK> runs"])


def test_line_beyond_learned_positions_is_refused(task):
    with pytest.raises(ConfigError, match=r"`max_length` must be at least the length of the text"):
        task.predict(["a dog " * 20 + "<mask>"])


def test_translate_returns_a_line_without_a_mask_unchanged(task):
    assert task.translate(["a dog runs"]) == ["a dog runs"]


def test_score_masks_each_token_in_turn(task):
    (scored,) = task.score([Example("two dogs run")])
    ids = task.text.read("two dogs run")
    for position, found in enumerate(scored.token_log_probs, start=1):
        values = torch.tensor([ids])
        values[0, position] = task.tokenizer.mask
        logits = task.model(values, torch.ones_like(values, dtype=torch.bool))
        expected = logits[0, position].log_softmax(-1)[ids[position]].item()
        assert found == pytest.approx(expected, abs=1e-4)
    assert scored.log_prob == pytest.approx(sum(scored.token_log_probs))
    assert len(scored.tokens) == len(ids) - 2


def test_attention_has_every_layer_and_head_and_sums_to_one(task):
    (found,) = task.attend([Example("two dogs run")])
    size = len(found.source)
    assert found.weights.shape == (2, 2, size, size)
    assert torch.allclose(found.weights.sum(-1), torch.ones(2, 2, size))
    assert found.source == found.target
    assert found.source[0] == "<sos>"


def test_attention_of_a_shared_block_has_every_layer():
    task, _ = prepare(
        "model.encoder.kind=albert", "model.encoder.embedding_dim=8", "model.encoder.num_layers=3"
    )
    (found,) = task.attend([Example("two dogs run")])
    assert found.weights.shape[:2] == (3, 2)
    assert torch.allclose(found.weights.sum(-1), torch.ones(found.weights.shape[:3]))
    assert not torch.allclose(found.weights[0], found.weights[1])


def test_a_model_without_attention_has_maps_without_layers(task):
    encoder = RnnEncoderConfig(dim=8, embedding_dim=8)
    recipe = replace(task.recipe, model=MaskedModelConfig(encoder=encoder))
    recurrent = MaskedLmTask.from_scratch(recipe, task.fields, device=torch.device("cpu"))
    (found,) = recurrent.attend([Example("two dogs run")])
    assert found.weights.shape[0] == 0


def test_empty_test_set_is_refused(task):
    with pytest.raises(DataError, match=r"the test set has no text"):
        task.evaluate([Example("\n")])


def test_intervals_contain_the_value(task):
    results = task.evaluate([Example(line) for line in write_lines(40)], num_bootstrap=50).results
    for result in results.values():
        low, high = result.interval
        assert low <= result.value <= high


def test_masked_model_is_fine_tuned_from_another(task):
    tuned, _ = prepare("model.boundary=1.0", init_from=task)
    assert tuned.tokenizer is task.tokenizer
    assert tuned.model.boundary is not None
    values = torch.tensor([task.text.read("two dogs run")])
    mask = torch.ones_like(values, dtype=torch.bool)
    assert torch.equal(tuned.model(values, mask), task.model(values, mask))


def test_fine_tuning_a_run_of_another_task_is_refused(tiny_run):
    with pytest.raises(ConfigError, match=r"`init_from` must be a run of a masked language model"):
        prepare(init_from=tiny_run.predictor)


def test_student_is_initialised_from_evenly_spaced_layers(run):
    student, _ = prepare(f"teacher={run.folder}", "model.encoder.num_layers=1")
    expected = run.predictor.model.state_dict()
    for name, weight in student.model.state_dict().items():
        assert torch.equal(weight, expected[name]), name
    assert student.tokenizer.vocab_size == run.predictor.tokenizer.vocab_size


def test_student_has_gradients_and_the_teacher_has_none(run):
    student, examples = prepare(f"teacher={run.folder}", "model.encoder.num_layers=1")
    (batch, *_) = student.training_batches(examples).epoch(0)
    student.model.train()
    student.loss(batch).total.backward()
    assert any(weight.grad.abs().sum() > 0 for weight in student.model.parameters())
    assert all(weight.grad is None for weight in student._teacher.model.parameters())
    assert not student._teacher.model.training
    # The parameters of the teacher do not count.
    assert student.num_parameters < run.predictor.num_parameters


def test_student_equal_to_its_teacher_has_only_the_masked_token_loss(run):
    settings = (f"teacher={run.folder}", "model.encoder.dropout=0.0", "distillation.truth=1.0")
    student, examples = prepare(*settings)
    (batch, *_) = student.training_batches(examples).epoch(0)
    student.model.train()
    loss = student.loss(batch)
    assert torch.allclose(loss.total, loss.nll, rtol=1e-4)


def test_distillation_loss_is_the_formula_of_the_paper(run):
    settings = (f"teacher={run.folder}", "model.encoder.num_layers=1", "model.encoder.dropout=0.0")
    student, examples = prepare(*settings)
    (batch, *_) = student.training_batches(examples).epoch(0)
    student.model.train()
    teacher = run.predictor.model
    states, teacher_states = (
        model.encode(batch.values, batch.mask).states for model in (student.model, teacher)
    )
    logits, teacher_logits = (
        model.predict(hidden_states, batch.masked_positions)
        for model, hidden_states in ((student.model, states), (teacher, teacher_states))
    )
    soft = (teacher_logits / 2).log_softmax(-1)
    distance = (soft.exp() * (soft - (logits / 2).log_softmax(-1))).sum() * 4
    truth = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="sum")
    cosine = torch.nn.functional.cosine_similarity(states, teacher_states, dim=-1)
    expected = 5 * distance + 2 * truth + (1 - cosine[batch.mask].mean()) * len(batch.labels)
    assert torch.allclose(student.loss(batch).total, expected, rtol=1e-4)


def test_student_of_another_size_is_refused(run):
    with pytest.raises(ConfigError, match=r"`model.encoder` must have the teacher's kind and dim"):
        prepare(f"teacher={run.folder}", "model.encoder.dim=8")


def test_teacher_of_another_task_is_refused(tiny_run):
    with pytest.raises(ConfigError, match=r"`teacher` must be a run of a masked language model"):
        prepare(f"teacher={tiny_run.folder}")


def test_missing_teacher_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"config.json"):
        Teacher.load(str(tmp_path / "none"), MaskedRecipe(), device=torch.device("cpu"))


def test_teacher_with_another_vocabulary_is_refused(run):
    other, examples = prepare("data.tokenizer.kind=char")
    student, _ = prepare(f"teacher={run.folder}", init_from=other)
    with pytest.raises(ConfigError, match=r"`teacher` must have the student's vocabulary"):
        student.training_batches(examples)


def test_static_masks_repeat_and_dynamic_masks_change():
    for is_dynamic, is_same in ((False, True), (True, False)):
        task, examples = prepare(f"data.masking.is_dynamic={str(is_dynamic).lower()}")
        batches = task.training_batches(examples)
        masked = [
            {
                (row, position)
                for batch in batches.epoch(number)
                for row, position in zip(
                    [
                        batch.rows[index]
                        for index in batch.masked_positions // batch.values.shape[1]
                    ],
                    (batch.masked_positions % batch.values.shape[1]).tolist(),
                    strict=True,
                )
            }
            for number in (0, 1)
        ]
        assert (masked[0] == masked[1]) == is_same


def test_run_folder_has_no_teacher(run, request_for, tmp_path):
    settings = (f"teacher={run.folder}", "model.encoder.num_layers=1", "train.max_steps=2")
    trained = train(request_for(tmp_path / "student", *settings))
    loaded = load(trained.folder, "cpu")
    assert loaded._teacher is None
    assert Path(trained.folder, "model.safetensors").stat().st_size < (
        Path(run.folder, "model.safetensors").stat().st_size
    )


def test_a_single_text_has_no_interval(task):
    results = task.evaluate([Example("a cat runs .")], num_bootstrap=50).results
    assert all(result.interval is None for result in results.values())


def test_show_fills_the_mask_and_refuses_a_target(task):
    example, text = task.example_to_show("a ___ runs in the sun .")
    assert example.source == "a ___ runs in the sun ."
    assert text == task.translate([example.source])[0]
    with pytest.raises(
        ConfigError, match=r"but this model fills masks\. Write 'cat' in place of the mask"
    ):
        task.example_to_show("a ___ runs .", "cat")
