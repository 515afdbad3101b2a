import math

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.texts import to_lines
from regard.data.example import Example
from regard.metrics.text.perplexity import TextSize
from regard.runs.recipes import load_recipe
from regard.search.settings import SearchConfig
from regard.tasks.language_modeling import LanguageModelingTask
from regard.tasks.reading import read_text_split, read_texts
from regard.tasks.recipe import BaseDataConfig
from regard.training.losses import cross_entropy

TEXT = "the cat sat on the mat\n\nthe dog sat on the cat\n" * 8
SIZES = {
    "transformer": (
        "model.dim=8", "model.num_heads=2", "model.feed_forward_dim=8", "model.num_layers=2",
    ),
    "rnn": ("model.kind=rnn", "model.dim=8", "model.embedding_dim=8"),
}  # fmt: skip
SMALL = ("data.window=16", "data.num_windows=4", "train.precision=fp32", "search.max_extra=12")


def build(*overrides, kind="transformer", tokenizer="byte"):
    settings = (*SIZES[kind], *SMALL, f"data.tokenizer.kind={tokenizer}", *overrides)
    recipe = load_recipe("gpt-laptop", ["model.init.rule=default", *settings])
    return LanguageModelingTask.prepare(recipe, to_lines(TEXT), device=torch.device("cpu"))


@pytest.fixture(params=["transformer", "rnn"])
def task(request):
    return build(kind=request.param)


def forced_nll(task, ids):
    """Return the negative log-likelihood of ids after a line end, in one pass."""
    tokens = torch.tensor([[task.text.line_end, *ids]])
    logits = task.model(tokens[:, :-1]).logits
    labels = tokens[:, 1:]
    return float(cross_entropy(logits, labels, torch.ones_like(labels).bool()).nll)


def test_score_is_the_forced_log_probability_and_batched_equals_alone(task):
    lines = ["the cat\n", "", "on\n", "the dog sat on the mat and so on"]
    scored = task.score([Example(line) for line in lines])
    for line, found in zip(lines, scored, strict=True):
        expected = -forced_nll(task, task.text.read(line)) if line else 0.0
        assert found.log_prob == pytest.approx(expected, abs=1e-3)
        assert found.log_prob == pytest.approx(task.score([Example(line)])[0].log_prob, abs=1e-4)
        assert len(found.token_log_probs) == len(found.tokens) == len(line)


def test_perplexity_of_a_short_text_is_that_of_one_pass(task):
    lines = to_lines("the cat sat\n")
    results = task.evaluate(lines).results
    nll = forced_nll(task, task.text.read("the cat sat\n"))
    assert results["perplexity"].value == pytest.approx(math.exp(nll / 12), rel=1e-4)
    assert results["nats_per_character"].value == pytest.approx(nll / 12, rel=1e-4)
    assert results["word_perplexity"].value == pytest.approx(math.exp(nll / 4), rel=1e-4)


def test_signature_has_the_context():
    assert "context:16|stride:8" in build().evaluate(to_lines(TEXT)).results["perplexity"].signature
    carried = build(kind="rnn").evaluate(to_lines(TEXT)).results["perplexity"]
    assert "context:all|state:carried" in carried.signature


def test_unknown_words_are_counted():
    task = build(tokenizer="whitespace")
    found = task.evaluate(to_lines("the zebra\n")).results["perplexity"]
    assert found.signature.endswith("|unknown:1")
    assert found.detail["units"] == 3


def test_validation_value_is_the_negative_loss(task):
    with torch.no_grad():
        found = task.validation(to_lines(TEXT))()
    assert found.value == -found.metrics["loss"]
    assert 4 < found.metrics["loss"] < 8


def test_loss_is_the_cross_entropy_of_the_windows(task):
    batch = next(task.training_batches(to_lines(TEXT)).epoch(0))
    loss = task.loss(batch)
    assert int(loss.count) == batch.num_target_tokens
    logits = task.model(batch.tokens[:, :-1]).logits
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.tokens[:, 1:].flatten(), reduction="sum"
    )
    assert torch.allclose(loss.total, expected, rtol=1e-4)


@pytest.mark.parametrize("tokenizer", ["byte", "whitespace"])
@pytest.mark.parametrize("temperature", [0.0, 0.9], ids=["greedy", "sampled"])
def test_continuations_begin_with_their_prompt_and_depend_only_on_it(tokenizer, temperature):
    task = build(tokenizer=tokenizer)
    search = SearchConfig(beams=1, max_extra=6, temperature=temperature)
    prompts = ["the cat", "", "the dog sat on"]
    together = task.predict(prompts, search=search)
    for prompt, (found,) in zip(prompts, together, strict=True):
        assert found.text.startswith(prompt)
        assert len(found.tokens) > len(task.text.read(prompt))
        ((alone,),) = task.predict([prompt], search=search)
        assert alone.text == found.text


def test_prefix_follows_the_prompt(task):
    ((found,),) = task.predict(["the cat"], prefix=" sat on")
    assert found.text.startswith("the cat sat on")


def test_several_continuations_are_returned(task):
    (found,) = task.predict(["the"], num_best=3)
    assert len(found) == 3
    assert len({one.text for one in found}) > 1


def test_next_tokens_are_a_sorted_distribution(task):
    found = task.next_tokens("the ca", num=260)
    probs = [prob for _, prob in found]
    assert sum(probs) == pytest.approx(1, abs=1e-4)
    assert probs == sorted(probs, reverse=True)
    best, prob = task.next_tokens("the ca", num=1)[0]
    scored = task.score([Example(f"the ca{best}")])[0]
    if len(best) == 1 and best != "▁":
        assert scored.token_log_probs[-1] == pytest.approx(math.log(prob), abs=1e-3)


def test_map_has_every_layer_and_head():
    (found,) = build().attend([Example("the cat")])
    assert found.weights.shape == (2, 2, 8, 8)
    assert found.source == found.target == ("<0A>", *"the▁cat")
    assert torch.allclose(found.weights.sum(-1), torch.ones(2, 2, 8), atol=1e-5)


def test_recurrent_model_has_no_map():
    assert build(kind="rnn").attend([Example("the")])[0].weights.shape[0] == 0


def test_text_beside_the_plot_has_the_most_probable_next_tokens():
    example, text = build().example_to_show("the ca")
    assert example == Example("the ca")
    assert text.startswith("Next: ") and len(text.split("  ")) == 10


def test_target_in_show_is_refused():
    with pytest.raises(ConfigError, match="`--target` is for models with a source and a target"):
        build().example_to_show("the", "cat")


def test_saved_task_opens_to_the_same_vocabulary(task, tmp_path):
    task.save(tmp_path)
    opened = LanguageModelingTask.open_untrained(task.recipe, tmp_path, device=torch.device("cpu"))
    assert opened.text.read("the cat\n") == task.text.read("the cat\n")
    assert opened.num_parameters == task.num_parameters


def test_language_model_is_fine_tuned_from_another(task):
    recipe = load_recipe("gpt-laptop", [*SMALL, "seed=9"])
    tuned = LanguageModelingTask.prepare(recipe, to_lines(TEXT), device=task.device, init_from=task)
    assert tuned.recipe.model == task.recipe.model
    weights = tuned.model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in task.model.state_dict().items())


def test_fine_tuning_a_run_of_another_task_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="`init_from` must be a run of a lang.*generation"):
        LanguageModelingTask.prepare(
            load_recipe("gpt-laptop"),
            to_lines(TEXT),
            device=torch.device("cpu"),
            init_from=tiny_run.predictor,
        )


def test_continuations_stay_within_learned_positions():
    task = build("model.positions=learned", "model.max_length=20")
    ((found,),) = task.predict(["the cat"], search=SearchConfig(beams=1, max_extra=500))
    assert len(found.tokens) == 20


def test_line_longer_than_learned_positions_is_refused():
    task = build("model.positions=learned", "model.max_length=20")
    with pytest.raises(ConfigError, match="length of the text \\(30 tokens\\)"):
        task.score([Example("a" * 30)])


def test_empty_test_text_is_refused(task):
    with pytest.raises(DataError, match="nothing to evaluate: the text has no token"):
        task.evaluate([])


class TestReading:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "text.txt"
        path.write_text(TEXT, encoding="utf-8")
        return str(path)

    def test_text_is_split_in_its_order(self, path):
        splits = read_texts((path,), (), (), config=BaseDataConfig())
        lines = [*splits.train, *splits.valid, *splits.test]
        assert "".join(line.source for line in lines) == TEXT

    def test_given_splits_are_used_unchanged(self, path):
        splits = read_texts((path,), (path,), (path,), config=BaseDataConfig())
        assert splits.train == splits.valid == splits.test

    def test_split_of_a_file_is_the_whole_file(self, path):
        assert TextSize.of(
            [line.source for line in read_text_split((path,), "test", config=BaseDataConfig())],
            num_tokens=0,
        ).num_characters == len(TEXT)

    def test_pairs_are_refused(self):
        with pytest.raises(DataError, match="'copy:50' is a data set of pairs"):
            read_texts(("copy:50",), (), (), config=BaseDataConfig())

    def test_two_files_are_refused(self, path):
        with pytest.raises(ConfigError, match="A text must be one file, but `data` has 2"):
            read_texts((path, path), (), (), config=BaseDataConfig())
