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
from regard.runs import folder as runs
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.masked_lm.distillation import Teacher
from regard.tasks.masked_lm.recipe import MaskedRecipe
from regard.tasks.masked_lm.task import MaskedLmTask

WORDS = (
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
    """Sentences in which a verb agrees with its noun."""
    generator = random.Random(seed)
    lines = []
    for _ in range(num):
        noun, verb = generator.choice(["cat", "dog", "hen"]), generator.choice(["run", "sing"])
        many = generator.random() < 0.5
        subject = f"two {noun}s {verb}" if many else f"a {noun} {verb}s"
        lines.append(f"{subject} in the {generator.choice(['rain', 'sun'])} .\n")
    return lines


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(write_lines(200)), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def request_for(text):
    def ask(out, *words, recipe="liu2019-laptop", **changes):
        settings = (*WORDS, *words)
        return Request(
            data=(text,), recipe=recipe, settings=settings, out=out, device="cpu", **changes
        )

    return ask


@pytest.fixture(scope="module")
def run(request_for, tmp_path_factory):
    return train(request_for(tmp_path_factory.mktemp("runs") / "masked"))


@pytest.fixture(scope="module")
def task(run):
    return runs.load(run.folder, "cpu")


def recipe_with(*words, recipe="liu2019-laptop"):
    return load_recipe(recipe, (*WORDS, *words))


def prepare(*words, recipe="liu2019-laptop", init_from=None):
    examples = [Example(line) for line in write_lines(60)]
    settings = recipe_with(*words, recipe=recipe)
    task = MaskedLmTask.prepare(settings, examples, device=torch.device("cpu"), init_from=init_from)
    return task, examples


def test_a_run_is_opened_with_what_it_learned(run, task):
    assert isinstance(task, MaskedLmTask)
    examples = [Example(line) for line in write_lines(20, seed=1)]
    found, expected = (one.evaluate(examples).results for one in (task, run.predictor))
    assert {name: r.value for name, r in found.items()} == {
        name: r.value for name, r in expected.items()
    }


def test_the_loss_falls(run):
    losses = [
        json.loads(line)["loss"]
        for line in (run.folder / "journal.jsonl").read_text().splitlines()
        if json.loads(line)["kind"] == "valid"
    ]
    assert losses[-1] < losses[0]


def test_a_mask_is_added_to_the_vocabulary(task):
    assert task.tokenizer.token(task.tokenizer.mask) == "<mask>"


def test_the_loss_is_taken_over_hidden_tokens_only(task):
    (batch, *_) = task.held_out_batches([Example(line) for line in write_lines(30)])
    loss = task.loss(batch)
    logits = task.model(batch.values, batch.mask).flatten(0, 1)[batch.masked_positions]
    expected = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="sum")
    assert loss.count == len(batch.labels)
    assert torch.allclose(loss.total, expected, rtol=1e-5)


def test_every_further_objective_adds_to_the_loss():
    for words in (
        ("model.boundary=1.0",),
        ("model.next_sentence=1.0", "data.packing=pairs"),
        ("model.next_sentence=1.0", "data.packing=swaps"),
    ):
        task, examples = prepare(*words)
        (batch, *_) = task.held_out_batches(examples)
        loss = task.loss(batch)
        assert loss.total > loss.nll


def test_pairs_are_judged_in_the_evaluation():
    task, examples = prepare("model.next_sentence=1.0", "data.packing=pairs")
    assert 0 <= task.evaluate(examples).results["pairs"].value <= 100


def test_pairs_need_their_objective_and_the_other_way_round():
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


def test_validation_hides_always_the_same(task):
    examples = [Example(line) for line in write_lines(30)]
    validate = task.validation(examples)
    with torch.no_grad():
        assert validate().value == validate().value == task.validation(examples)().value


def test_gaps_are_filled_with_the_likeliest_tokens(task):
    line = "two <mask> run in the rain ."
    ((best, second),) = task.predict([line], num_best=2)
    before, after = task.tokenizer.encode("two"), task.tokenizer.encode("run in the rain .")
    place = len(before) + 1
    values = [task.tokenizer.sos, *before, task.tokenizer.mask, *after, task.tokenizer.eos]
    logits = task.model(torch.tensor([values]), torch.ones(1, len(values), dtype=torch.bool))
    log_probs = logits[0, place].log_softmax(-1).detach()
    log_probs[[0, 1, 2, 3, task.tokenizer.mask]] = -torch.inf  # what is no word
    assert best.log_prob == pytest.approx(float(log_probs.max()), abs=1e-4)
    assert best.tokens == (task.tokenizer.token(int(log_probs.argmax())),)
    assert best.text == line.replace("<mask>", task.tokenizer.decode([int(log_probs.argmax())]))
    assert second.log_prob <= best.log_prob


def test_all_spellings_of_a_gap_are_one(task):
    lines = [f"two {gap} run in the rain ." for gap in ("<mask>", "[MASK]", "___", "_____")]
    assert len({found[0].text for found in task.predict(lines)}) == 1


def test_several_gaps_are_filled_independently_and_ranked(task):
    (found,) = task.predict(["two <mask> run in the <mask>."], num_best=4)
    assert [len(one.tokens) for one in found] == [2] * 4
    assert [one.log_prob for one in found] == sorted((p.log_prob for p in found), reverse=True)
    assert all(one.log_prob == pytest.approx(sum(one.token_log_probs)) for one in found)
    assert len({one.tokens for one in found}) == 4


def test_a_mark_after_a_gap_is_cut_as_ever(task):
    whole = task.tokenizer.encode("in the sun.")
    assert task.predict(["in the <mask>."])[0][0].text.endswith(".")
    assert task._read_gaps("in the <mask>.").values[-2] == whole[-1]


def test_a_batch_is_answered_as_alone(task):
    lines = ["two <mask> run in the rain .", "a dog <mask> .", ""]
    together = task.predict(lines)
    for line, found in zip(lines, together, strict=True):
        (alone,) = task.predict([line])
        assert alone[0].text == found[0].text
        assert alone[0].log_prob == pytest.approx(found[0].log_prob, abs=1e-4)


def test_a_line_without_a_gap_is_refused(task):
    with pytest.raises(DataError, match=r"Line 2 must have a gap to fill, spelled '<mask>'"):
        task.predict(["a <mask>", "a dog runs"])


def test_an_unknown_spelling_of_a_gap_is_guessed(task):
    with pytest.raises(DataError, match=r"Did you mean '<mask>' by '<MASK>'\?"):
        task.predict(["a <MASK> runs"])


def test_a_line_beyond_the_positions_is_refused(task):
    with pytest.raises(ConfigError, match=r"`max_length` must be at least the length of the text"):
        task.predict(["a dog " * 20 + "<mask>"])


def test_a_line_without_a_gap_is_its_own_translation(task):
    assert task.translate(["a dog runs"]) == ["a dog runs"]


def test_a_score_hides_each_token_in_turn(task):
    (scored,) = task.score([Example("two dogs run")])
    ids = task.text.read("two dogs run")
    for place, found in enumerate(scored.token_log_probs, start=1):
        values = torch.tensor([ids])
        values[0, place] = task.tokenizer.mask
        logits = task.model(values, torch.ones_like(values, dtype=torch.bool))
        expected = logits[0, place].log_softmax(-1)[ids[place]].item()
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


def test_attention_of_a_shared_block_has_every_layer_too():
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
    blind = MaskedLmTask.fresh(recipe, task.fields, device=torch.device("cpu"))
    (found,) = blind.attend([Example("two dogs run")])
    assert found.weights.shape[0] == 0


def test_nothing_to_evaluate_is_refused(task):
    with pytest.raises(DataError, match=r"the test set has no text"):
        task.evaluate([Example("\n")])


def test_intervals_hold_the_value(task):
    results = task.evaluate([Example(line) for line in write_lines(40)], num_bootstrap=50).results
    for result in results.values():
        low, high = result.interval
        assert low <= result.value <= high


def test_another_run_is_gone_on_with(task):
    begun, _ = prepare("model.boundary=1.0", init_from=task)
    assert begun.tokenizer is task.tokenizer
    assert begun.model.boundary is not None
    values = torch.tensor([task.text.read("two dogs run")])
    mask = torch.ones_like(values, dtype=torch.bool)
    assert torch.equal(begun.model(values, mask), task.model(values, mask))


def test_only_a_masked_model_can_be_gone_on_with(tiny_run):
    with pytest.raises(ConfigError, match=r"`init_from` must be a run of a masked language model"):
        prepare(init_from=tiny_run.predictor)


def test_a_student_begins_with_evenly_chosen_layers(run):
    student, _ = prepare(f"teacher={run.folder}", "model.encoder.num_layers=1")
    own, teachers = student.model.state_dict(), run.predictor.model.state_dict()
    for name, weight in own.items():
        assert torch.equal(weight, teachers[name]), name
    assert student.tokenizer.vocab_size == run.predictor.tokenizer.vocab_size


def test_a_student_learns_and_the_teacher_does_not(run):
    student, examples = prepare(f"teacher={run.folder}", "model.encoder.num_layers=1")
    (batch, *_) = student.training_batches(examples).epoch(0)
    student.model.train()
    student.loss(batch).total.backward()
    assert any(weight.grad.abs().sum() > 0 for weight in student.model.parameters())
    assert all(weight.grad is None for weight in student._teacher.model.parameters())
    assert not student._teacher.model.training
    # The teacher is no part of what is trained and saved.
    assert student.num_parameters < run.predictor.num_parameters


def test_a_student_equal_to_its_teacher_has_only_the_truth_to_learn(run):
    words = (f"teacher={run.folder}", "model.encoder.dropout=0.0", "distillation.truth=1.0")
    student, examples = prepare(*words)
    (batch, *_) = student.training_batches(examples).epoch(0)
    student.model.train()
    loss = student.loss(batch)
    assert torch.allclose(loss.total, loss.nll, rtol=1e-4)


def test_distillation_is_the_papers_formula(run):
    words = (f"teacher={run.folder}", "model.encoder.num_layers=1", "model.encoder.dropout=0.0")
    student, examples = prepare(*words)
    (batch, *_) = student.training_batches(examples).epoch(0)
    student.model.train()
    teacher = run.predictor.model
    states, true_states = (
        model.encode(batch.values, batch.mask).states for model in (student.model, teacher)
    )
    said, true = (
        model.predict(found, batch.masked_positions)
        for model, found in ((student.model, states), (teacher, true_states))
    )
    soft = (true / 2).log_softmax(-1)
    distance = (soft.exp() * (soft - (said / 2).log_softmax(-1))).sum() * 4
    truth = torch.nn.functional.cross_entropy(said, batch.labels, reduction="sum")
    alike = torch.nn.functional.cosine_similarity(states, true_states, dim=-1)[batch.mask].mean()
    expected = 5 * distance + 2 * truth + (1 - alike) * len(batch.labels)
    assert torch.allclose(student.loss(batch).total, expected, rtol=1e-4)


def test_a_student_of_another_width_is_refused(run):
    with pytest.raises(
        ConfigError, match=r"`model.encoder` must be of the teacher's kind and width"
    ):
        prepare(f"teacher={run.folder}", "model.encoder.dim=8")


def test_only_a_masked_model_can_teach(tiny_run):
    with pytest.raises(ConfigError, match=r"`teacher` must be a run of a masked language model"):
        prepare(f"teacher={tiny_run.folder}")


def test_a_teacher_must_be_there(tmp_path):
    with pytest.raises(CheckpointError, match=r"config.json"):
        Teacher.load(str(tmp_path / "none"), MaskedRecipe(), device=torch.device("cpu"))


def test_a_teacher_of_other_tokens_is_refused(run):
    other, examples = prepare("data.tokenizer.kind=char")
    student, _ = prepare(f"teacher={run.folder}", init_from=other)
    with pytest.raises(ConfigError, match=r"`teacher` must have the student's vocabulary"):
        student.training_batches(examples)


def test_static_masking_repeats_and_dynamic_does_not():
    for is_dynamic, is_same in ((False, True), (True, False)):
        task, examples = prepare(f"data.masking.is_dynamic={str(is_dynamic).lower()}")
        batches = task.training_batches(examples)
        seen = [
            {
                (row, place)
                for batch in batches.epoch(number)
                for row, place in zip(
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
        assert (seen[0] == seen[1]) == is_same


def test_the_run_folder_holds_no_teacher(run, request_for, tmp_path):
    words = (f"teacher={run.folder}", "model.encoder.num_layers=1", "train.max_steps=2")
    trained = train(request_for(tmp_path / "student", *words))
    loaded = runs.load(trained.folder, "cpu")
    assert loaded._teacher is None
    assert Path(trained.folder, "model.safetensors").stat().st_size < (
        Path(run.folder, "model.safetensors").stat().st_size
    )


def test_a_single_text_has_no_interval(task):
    results = task.evaluate([Example("a cat runs .")], num_bootstrap=50).results
    assert all(result.interval is None for result in results.values())


def test_no_other_filling_can_be_looked_at(task):
    example, written = task.example_to_show("a ___ runs in the sun .")
    assert example.source == "a ___ runs in the sun ."
    assert written == task.translate([example.source])[0]
    with pytest.raises(
        ConfigError, match=r"but this one fills gaps\. Write 'cat' where the gap is"
    ):
        task.example_to_show("a ___ runs .", "cat")
