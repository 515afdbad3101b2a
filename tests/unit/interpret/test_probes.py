import json
import math
import random

import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.interpret.probes import LENGTH, ORDER, POSITION, probe, swap_neighbours, untrained_copy
from regard.tasks.generation.task import Predictor


@pytest.fixture(scope="module")
def texts():
    generator = random.Random(1)
    return [" ".join(generator.choices("abcde", k=generator.randint(2, 9))) for _ in range(120)]


@pytest.fixture(scope="module")
def results(tiny_run, texts):
    return probe(tiny_run.predictor, texts)


def test_every_layer_is_probed_in_the_trained_and_the_untrained_encoder(results):
    assert results.names == ["embeddings", "layer 1"]
    for scores in (*results.layers, *results.control):
        assert list(scores) == [LENGTH, ORDER, POSITION]
        assert scores[LENGTH] <= 1 and 0 <= scores[ORDER] <= 100 and scores[POSITION] <= 1
    assert results.layers != results.control


def test_embeddings_have_neither_order_nor_position(results):
    for scores in (results.layers[0], results.control[0]):
        assert scores[ORDER] == pytest.approx(50, abs=2)
        # Only the end token has a predictable position, the last one.
        assert scores[POSITION] < 0.5


def test_recurrent_states_have_positions(results):
    assert results.layers[1][POSITION] > results.layers[0][POSITION] + 0.2


def test_probes_are_deterministic(tiny_run, texts, results):
    assert probe(tiny_run.predictor, texts) == results


def test_duplicates_are_dropped_and_texts_are_limited(tiny_run, texts):
    results = probe(tiny_run.predictor, [*texts, *texts, ""], max_texts=40)
    assert results.num_learned == results.num_tested == 20


def test_missing_scores_are_none_in_json(tiny_run):
    texts = [f"{a} {b}" for a in "abcde" for b in "abcde"]
    results = probe(tiny_run.predictor, texts)
    assert math.isnan(results.layers[0][ORDER]) and math.isnan(results.layers[0][LENGTH])
    assert json.loads(json.dumps(results.to_dict()))["layers"][0][ORDER] is None


def test_neighbours_inside_a_text_are_swapped():
    texts = ["One two three four five.", "Too short here.", "a b b c"]
    swapped = swap_neighbours(texts)
    assert list(swapped) == [0]
    assert swapped[0] in ("One three two four five.", "One two four three five.")


def test_swaps_keep_whitespace_and_columns():
    assert swap_neighbours(["One  two three\u3000four."]) == {0: "One  three two\u3000four."}
    # Neither across a tab, nor the first or last word of a column.
    assert swap_neighbours(["a b c\td e f g"]) == {0: "a b c\td f e g"}
    assert swap_neighbours(["a b c\td e f"]) == {}


def test_several_texts_are_probed_as_one_line(tiny_run, texts):
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    lines = ["\t".join(pair) for pair in pairs]
    assert probe(tiny_run.predictor, pairs) == probe(tiny_run.predictor, lines)


def test_untrained_copy_has_the_same_parts_and_other_weights(tiny_run):
    before = torch.get_rng_state()
    copied = untrained_copy(tiny_run.predictor)
    assert torch.equal(torch.get_rng_state(), before)
    assert copied.source.read("a b c") == tiny_run.predictor.source.read("a b c")
    trained, untrained = tiny_run.predictor.model.state_dict(), copied.model.state_dict()
    assert trained.keys() == untrained.keys()
    name = "encoder.embedding.weight"
    assert not torch.equal(trained[name], untrained[name])


def test_pairs_of_unknown_words_are_skipped(tiny_run):
    texts = [f"a {x}x {x}y b {' c' * n}" for n, x in enumerate("pqrstuvwxyz" * 3)]
    assert math.isnan(probe(tiny_run.predictor, texts).layers[1][ORDER])


def test_too_few_texts_are_refused(tiny_run):
    with pytest.raises(DataError, match="at least 20 distinct texts, .* but there are 1"):
        probe(tiny_run.predictor, ["a b"] * 50)


def test_run_that_reads_no_text_is_refused(tiny_run, monkeypatch):
    monkeypatch.setattr(Predictor, "reads_text", property(lambda _self: False))
    with pytest.raises(ConfigError, match="Probes need a run that reads text"):
        probe(tiny_run.predictor, ["a b"] * 50)
