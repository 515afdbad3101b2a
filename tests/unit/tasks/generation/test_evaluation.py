import json
import math
from dataclasses import dataclass, replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.text.field import TextField, as_text
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.search.settings import SearchConfig
from regard.tasks.generation.evaluation import evaluate, measure_alignment, measure_perplexity
from regard.tasks.generation.recipe import Recipe
from regard.tasks.prediction import AttentionMap, Prediction

WORDS = "one two three four five six seven eight nine ten".split()
FIELD = TextField(
    train_tokenizer(TokenizerConfig(kind="char", vocab_size=100), [" ".join(WORDS)]),
    has_start=False,
)


def example(*words, shift=0):
    """Return a sentence to copy, whose gold links point `shift` words to the right."""
    links = tuple(((index + shift) % len(words), index) for index in range(len(words)))
    return Example(" ".join(words), " ".join(words), alignment=links, tags=("copy",))


@dataclass
class Copier:
    """Copies the source; each token attends to its copy."""

    has_attention: bool = True
    source: TextField = FIELD
    target: TextField = FIELD
    recipe: Recipe = Recipe()
    reads_text = True

    def predict(self, sources, *, search=None, num_best=1):
        """Return the source as the best prediction, then the source and a number."""
        endings = ["", *(f" {number}" for number in range(1, num_best))]
        return [
            [Prediction(source + end, -1.0, tuple(source + end), ()) for end in endings]
            for source in sources
        ]

    def attend(self, examples):
        maps = []
        tokenizer = self.source.tokenizer
        for one in examples:
            tokens = (*tokenizer.tokens(tokenizer.encode(one.source)), "<eos>")
            weights = torch.eye(len(tokens)).expand(int(self.has_attention), 1, -1, -1)
            maps.append(AttentionMap(tokens, tokens, weights))
        return maps


EXAMPLES = [example(*WORDS[:5]), example(*WORDS[5:]), example(*(WORDS + WORDS))]


def test_perfect_predictions_have_perfect_scores():
    results = evaluate(Copier(), EXAMPLES).results
    values = {name: round(result.value, 6) for name, result in results.items()}
    assert values == {
        "bleu": 100.0,
        "chrf": 100.0,
        "accuracy": 100.0,
        "lecture_bleu": 1.0,
        "aer": 0.0,
    }


def test_attention_beside_the_gold_links_has_an_error_rate_of_one():
    assert measure_alignment(Copier(), [example(*WORDS, shift=1)]).value == 1.0


def test_error_rate_is_the_share_of_wrong_links():
    pairs = [example(*WORDS), example(*WORDS, shift=1)]
    assert measure_alignment(Copier(), pairs).value == pytest.approx(0.5)


def test_examples_without_gold_links_are_ignored():
    pairs = [Example("one two", "two one"), example("one", "two")]
    assert measure_alignment(Copier(), pairs).value == 0.0


def test_without_gold_links_there_is_no_alignment_error():
    assert "aer" not in evaluate(Copier(), [Example("one two", "one two")]).results


def test_without_attention_there_is_no_alignment_error():
    assert "aer" not in evaluate(Copier(has_attention=False), EXAMPLES).results


def test_any_reference_is_correct():
    pairs = [Example("one two", "two one", references=("one two",))]
    assert evaluate(Copier(), pairs).results["accuracy"].value == 100.0


def test_sentences_are_grouped_by_length_and_by_tag():
    evaluation = evaluate(Copier(), EXAMPLES)
    assert [(g.name, g.count) for g in evaluation.by_length] == [("≤ 10", 2), ("11–20", 1)]
    assert [(g.name, g.count) for g in evaluation.by_tag] == [("copy", 3)]


def test_without_tags_there_are_no_groups_by_tag():
    assert evaluate(Copier(), [Example("one", "one")]).by_tag == []


def test_intervals_need_bootstrap_samples():
    results = [evaluate(Copier(), EXAMPLES, num_bootstrap=num).results for num in (0, 10)]
    assert [result["bleu"].interval is None for result in results] == [True, False]


def test_metrics_of_the_recipe_are_measured():
    copier = Copier(recipe=Recipe(metrics=("per", "accuracy@2"), search=SearchConfig(beams=2)))
    pairs = [Example("one two", "one two 1"), Example("six", "seven")]
    evaluation = evaluate(copier, pairs)
    assert {name: r.value for name, r in evaluation.results.items()} == {
        "per": 50,
        "accuracy@2": 50,
    }
    assert [list(group.results) for group in evaluation.by_length] == [["per"]]


def test_name_of_the_metric_has_the_actual_number_of_candidates():
    copier = Copier(recipe=Recipe(metrics=("accuracy@4",), search=SearchConfig(beams=3)))
    assert evaluate(copier, EXAMPLES).results["accuracy@4"].name == "accuracy@3"


def test_edits_of_error_rates_are_counted():
    copier = Copier(recipe=Recipe(metrics=("per",)))
    evaluation = evaluate(
        copier, [Example("one two", "one three"), Example("six two", "six three")]
    )
    (edit,) = evaluation.edits
    assert (edit.right, edit.written, edit.count) == ("three", "two", 2)
    assert evaluation.by_unit[0].name == "three"
    assert evaluation.to_dict()["edits"] == [{"right": "three", "written": "two", "count": 2}]


def test_single_words_are_grouped_by_characters():
    groups = evaluate(Copier(), [Example("six", "six"), Example("seven", "seven")]).by_length
    assert [group.name for group in groups] == ["≤ 4", "5–6"]


def test_several_texts_of_a_source_are_joined_by_tabs():
    pairs = [Example(("one", "two"), "one")]
    assert as_text(pairs[0].source) == "one\ttwo"


def test_empty_test_set_is_refused():
    with pytest.raises(
        DataError, match=r"There is nothing to evaluate: the test set has no example\."
    ):
        evaluate(Copier(), [])


def test_evaluation_is_serialisable_as_json():
    values = json.loads(json.dumps(evaluate(Copier(), EXAMPLES).to_dict()))
    assert values["scores"]["bleu"]["signature"].startswith("nrefs:1|")
    assert values["by_tag"] == [{"name": "copy", "count": 3, "bleu": 100.0, "accuracy": 100.0}]
    assert values["num_examples"] == 3


def test_trained_model_has_every_metric(tiny_run):
    assert set(tiny_run.evaluation.results) == {"bleu", "chrf", "accuracy", "lecture_bleu", "aer"}
    assert [group.name for group in tiny_run.evaluation.by_tag] == ["long", "short"]


PAIRS = [
    Example("a b c d", "d c b a", references=("e", "e e")),
    Example("e d", "d e"),
    Example("b", "a a a"),
]


def with_metrics(tiny_run, monkeypatch, *metrics):
    """Return the predictor of the tiny run with other metrics in its recipe."""
    predictor = tiny_run.predictor
    monkeypatch.setattr(predictor, "recipe", replace(predictor.recipe, metrics=metrics))
    return predictor


def test_perplexity_is_over_the_targets_and_their_end_tokens(tiny_run):
    forced = tiny_run.predictor.score(PAIRS)
    nll = -sum(target.log_prob for target in forced)
    found = measure_perplexity(tiny_run.predictor, PAIRS)
    assert found.value == pytest.approx(math.exp(nll / (5 + 3 + 4)))
    size = tiny_run.predictor.target.tokenizer.vocab_size
    assert found.signature == (
        f"unit:token|units:12|vocab:{size}|ends:counted|targets:first|teacher-forced"
    )


def test_perplexity_is_the_exponential_of_the_cross_entropy(tiny_run):
    predictor = tiny_run.predictor
    (batch,) = predictor.batches(PAIRS)
    with torch.inference_mode():
        logits = predictor.model(batch.source, batch.source_mask, batch.target[:, :-1]).logits
    labels = batch.target[:, 1:].masked_fill(~batch.target_mask[:, 1:], -100)
    expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten()).exp()
    assert measure_perplexity(predictor, PAIRS).value == pytest.approx(float(expected), rel=1e-5)


def test_perplexity_is_in_the_order_of_the_recipe_and_sources_are_predicted_once(
    tiny_run, monkeypatch
):
    predictor = with_metrics(tiny_run, monkeypatch, "perplexity", "bleu")
    predicted = []
    predict = predictor.predict

    def count(sources, **options):
        predicted.extend(sources)
        return predict(sources, **options)

    monkeypatch.setattr(predictor, "predict", count)
    evaluation = evaluate(predictor, PAIRS, num_bootstrap=20)
    assert list(evaluation.results) == ["perplexity", "bleu"]
    assert predicted == [pair.source for pair in PAIRS]
    assert evaluation.results["perplexity"].interval is not None
    assert [list(group.results) for group in evaluation.by_length][0] == ["bleu"]


def test_perplexity_can_be_the_only_metric(tiny_run, monkeypatch):
    predictor = with_metrics(tiny_run, monkeypatch, "perplexity")
    assert list(evaluate(predictor, PAIRS).results) == ["perplexity"]


def test_unknown_tokens_of_targets_are_counted_with_one_warning(tiny_run, monkeypatch, caplog):
    predictor = with_metrics(tiny_run, monkeypatch, "perplexity")
    results = evaluate(predictor, [Example("a b", "b Ж Ж")]).results
    assert results["perplexity"].signature.endswith("|unknown:2")
    assert ["targets" in message and "Ж" in message for message in caplog.messages] == [True]
