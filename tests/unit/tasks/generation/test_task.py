import math
from dataclasses import replace

import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.batching import BatchConfig
from regard.data.example import Example
from regard.data.text.field import both_sides
from regard.runs.recipes import load_recipe
from regard.search.settings import SearchConfig
from regard.tasks.generation.task import Predictor
from regard.tasks.recipe import BaseRecipe
from regard.tasks.search import search_with

SOURCES = ["a b c d e", "", "e d", "b b a", "   ", "c a", "d d c a"]
BEAM = SearchConfig(beams=4)
SAMPLED = SearchConfig(temperature=1.5, seed=3)


@pytest.fixture(scope="module")
def predictor(tiny_run):
    return tiny_run.predictor


def assert_same(found, expected):
    assert [one.text for one in found] == [one.text for one in expected]
    assert [one.log_prob for one in found] == pytest.approx(
        [one.log_prob for one in expected], abs=1e-5
    )


def test_predictions_are_in_the_order_of_the_sources(predictor):
    nonempty = [source for source in SOURCES if source.strip()]
    forwards = dict(zip(nonempty, predictor.translate(nonempty), strict=True))
    backwards = dict(zip(nonempty[::-1], predictor.translate(nonempty[::-1]), strict=True))
    assert forwards == backwards
    assert len(set(forwards.values())) == len(nonempty)


def test_empty_source_has_an_empty_prediction(predictor):
    texts = predictor.translate(SOURCES)
    assert [not text for text in texts] == [not source.strip() for source in SOURCES]


@pytest.mark.parametrize("sources", [[], ["", " "]])
def test_empty_sources_alone_need_no_search(predictor, sources):
    assert predictor.translate(sources) == [""] * len(sources)


@pytest.mark.parametrize("search", [SearchConfig(beams=1), BEAM, SAMPLED])
def test_batched_equals_alone(predictor, search):
    together = predictor.predict(SOURCES, search=search)
    for source, found in zip(SOURCES, together, strict=True):
        assert_same(predictor.predict([source], search=search)[0], found)


def test_one_beam_equals_greedy(predictor):
    sources = [source for source in SOURCES if source.strip()]
    greedy = predictor.predict(sources, search=SearchConfig(beams=1))
    (batch,) = predictor.batches([Example(source) for source in sources])
    config = SearchConfig(beams=1)
    lengths = predictor.max_lengths(batch.source_mask, config)
    beam = predictor.generate(predictor.encode_batch(batch), config, max_lengths=lengths)
    for row, found in zip(batch.rows, beam, strict=True):
        assert predictor.target.write(found[0].tokens) == greedy[row][0].text


def test_several_predictions_are_sorted_and_distinct(predictor):
    for found in predictor.predict(["a b c d e", "e d"], search=BEAM, num_best=4):
        values = [one.log_prob / len(one.tokens) for one in found]
        assert values == sorted(values, reverse=True)
        assert len({one.tokens for one in found}) == 4


def test_there_may_be_more_samples_than_beams(predictor):
    (found,) = predictor.predict(["a b c d e"], search=SAMPLED, num_best=9)
    log_probs = [one.log_prob for one in found]
    assert len(found) == 9
    assert log_probs == sorted(log_probs, reverse=True)
    scored = predictor.score([Example("a b c d e", one.text) for one in found])
    for one, again in zip(found, scored, strict=True):
        if one.tokens == again.tokens:
            assert one.log_prob == pytest.approx(again.log_prob, abs=1e-4)
    assert any(one.tokens == again.tokens for one, again in zip(found, scored, strict=True))


@pytest.mark.parametrize("search", [SearchConfig(beams=1), BEAM, SAMPLED])
def test_prefix_begins_every_prediction_but_the_empty_one(predictor, search):
    for source, found in zip(
        SOURCES, predictor.predict(SOURCES, search=search, prefix="c c"), strict=True
    ):
        assert found[0].text.startswith("c c") == bool(source.strip())


def test_prefix_of_unknown_tokens_is_refused(predictor):
    with pytest.raises(
        ConfigError, match=r"^`prefix` must consist of tokens of the target vocabulary, but"
    ):
        predictor.predict(["a b"], prefix="Ж")


def test_search_overrides_are_refused_without_a_search():
    class Sorter:
        recipe = BaseRecipe(task="sorting")

    with pytest.raises(
        ConfigError,
        match=r"^`search\.beams=2` is for models that search for their output, but the task of "
        r"this run is 'sorting'\. Leave it out\.$",
    ):
        search_with(Sorter(), beams=None, overrides=["search.beams=2"])


def test_more_predictions_than_beams_are_refused(predictor):
    with pytest.raises(
        ConfigError, match=r"`nbest` must be at most the number of beams \(4\), but is 5\."
    ):
        predictor.predict(["a b"], search=BEAM, num_best=5)


def test_zero_predictions_are_refused(predictor):
    with pytest.raises(ConfigError, match=r"`nbest` must be at least 1, but is 0\."):
        predictor.predict(["a b"], num_best=0)


def test_log_prob_is_the_sum_over_the_tokens(predictor):
    (found,) = predictor.predict(["a b c"])[0]
    assert found.log_prob == pytest.approx(math.fsum(found.token_log_probs), abs=1e-5)
    assert len(found.tokens) == len(found.token_log_probs)
    assert found.tokens[-1] == "<eos>"


def test_score_is_the_sum_over_the_tokens(predictor):
    (scored,) = predictor.score([Example("a b c", "c b a")])
    assert scored.tokens == ("▁c", "▁b", "▁a", "<eos>")
    assert scored.log_prob == pytest.approx(math.fsum(scored.token_log_probs))
    assert scored.text == "c b a"


def test_score_of_a_prediction_is_its_log_prob(predictor):
    sources = [source for source in SOURCES if source.strip()]
    found = [best[0] for best in predictor.predict(sources, search=BEAM)]
    pairs = [Example(source, one.text) for source, one in zip(sources, found, strict=True)]
    assert_same(predictor.score(pairs), found)


def test_score_keeps_the_order_of_the_examples(predictor):
    pairs = [Example("a b", "b a"), Example("a b c d e", "e d c b a"), Example("c", "c")]
    together = predictor.score(pairs)
    assert_same(together, [predictor.score([pair])[0] for pair in pairs])


def test_word_is_correct_if_it_is_the_most_probable_after_the_true_ones(predictor):
    (found,) = predictor.predict(["a b c d"], search=SearchConfig(beams=1))[0]
    words = found.text.split()
    wrong = ["e" if words[1] != "e" else "d", *words[2:]]
    correct, changed = predictor.correct_words(
        [Example("a b c d", found.text), Example("a b c d", " ".join([words[0], *wrong]))]
    )
    assert correct == (True,) * len(words)
    assert changed[:2] == (True, False)


def test_unknown_word_is_never_correct(predictor):
    (correct,) = predictor.correct_words([Example("a b", "qqq")])
    assert correct == (False,)


def test_correct_words_are_in_the_order_of_the_examples(predictor):
    pairs = [Example("a b", "b a"), Example("a b c d e", "e d c b a"), Example("c", "")]
    assert [len(words) for words in predictor.correct_words(pairs)] == [2, 5, 0]


def test_attention_has_a_row_per_target_token_and_a_column_per_source_token(predictor):
    long, short = predictor.attend([Example("a b c d", "d c b a"), Example("e d", "d")])
    assert long.weights.shape == (1, 1, 5, 5)
    assert short.weights.shape == (1, 1, 2, 3)
    assert (short.target, short.source) == (("▁d", "<eos>"), ("▁e", "▁d", "<eos>"))


def test_attention_weights_sum_to_one(predictor):
    for found in predictor.attend([Example("a b c d", "d c b a"), Example("e d", "d")]):
        assert torch.allclose(found.mean().sum(1), torch.ones(len(found.target)), atol=1e-5)


def test_no_examples_have_no_maps(predictor):
    assert predictor.attend([]) == []


def test_maps_of_a_model_without_attention_have_no_layers(tiny_run_without_attention):
    (found,) = tiny_run_without_attention.predictor.attend([Example("a b c", "c b")])
    assert found.weights.shape == (0, 1, 3, 4)


def test_batches_hold_every_example_once(predictor):
    examples = [Example("a " * length) for length in range(1, 30)]
    batches = predictor.batches(examples, BatchConfig(max_tokens=60, max_length=40))
    assert len(batches) > 1
    assert sorted(row for batch in batches for row in batch.rows) == list(range(29))


def test_shared_parameters_count_once(predictor, tiny_settings):
    sides = both_sides(predictor.source.tokenizer)
    recipe = load_recipe(
        "bahdanau2015-laptop", [*tiny_settings, "data.is_joint=true", "model.ties=all"]
    )
    tied = Predictor.from_scratch(recipe, {**sides}, device=predictor.device)
    with_names = sum(weight.numel() for weight in tied.model.state_dict().values())
    assert tied.num_parameters == with_names - 2 * tied.model.encoder.embedding.weight.numel()


def test_auxiliary_losses_are_added_to_the_loss(predictor, monkeypatch):
    (batch,) = predictor.batches([Example("a b", "b a"), Example("c", "c")])
    plain = predictor.loss(batch)
    forward = predictor.model.forward

    def with_terms(*args, **kwargs):
        output = forward(*args, **kwargs)
        return replace(output, losses={"one": torch.tensor(0.5), "two": torch.tensor(0.25)})

    monkeypatch.setattr(predictor.model, "forward", with_terms)
    loss = predictor.loss(batch)
    assert torch.allclose(loss.total, plain.total + 0.75 * plain.count)
    assert torch.equal(loss.nll, plain.nll)


def test_auxiliary_losses_per_token_ignore_padding(predictor, monkeypatch):
    (batch,) = predictor.batches([Example("a b c", "c b a"), Example("a", "a")])
    plain = predictor.loss(batch)
    forward = predictor.model.forward

    def with_terms(*args, **kwargs):
        output = forward(*args, **kwargs)
        return replace(output, losses={"each": torch.full(output.logits.shape[:2], 0.5)})

    monkeypatch.setattr(predictor.model, "forward", with_terms)
    loss = predictor.loss(batch)
    assert plain.count == 4 + 2
    assert torch.allclose(loss.total, plain.total + 0.5 * 6)


def test_validation_is_greedy_with_any_search_settings(predictor, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("validation must not search with beams")

    monkeypatch.setattr("regard.search.search.beam_search", refuse)
    recipe = predictor.recipe
    changed = replace(recipe, validation=replace(recipe.validation, metric="bleu"))
    changed = replace(changed, search=SearchConfig(beams=4, consensus=4))
    monkeypatch.setattr(predictor, "recipe", changed)
    examples = [Example("a b c", "c b a"), Example("e d", "d e")]
    assert "bleu" in predictor.validation(examples)().metrics
