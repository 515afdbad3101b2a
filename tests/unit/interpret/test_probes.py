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
def found(tiny_run, texts):
    return probe(tiny_run.predictor, texts)


def test_every_layer_is_measured_beside_a_fresh_encoder(found):
    assert found.names == ["embeddings", "layer 1"]
    for numbers in (*found.layers, *found.control):
        assert list(numbers) == [LENGTH, ORDER, POSITION]
        assert numbers[LENGTH] <= 1 and 0 <= numbers[ORDER] <= 100 and numbers[POSITION] <= 1
    assert found.layers != found.control


def test_embeddings_know_neither_order_nor_position(found):
    for numbers in (found.layers[0], found.control[0]):
        assert numbers[ORDER] == pytest.approx(50, abs=2)
        # Only the end token tells where it stands: it is the last.
        assert numbers[POSITION] < 0.5


def test_reading_in_order_tells_positions(found):
    assert found.layers[1][POSITION] > found.layers[0][POSITION] + 0.2


def test_same_texts_give_the_same_numbers(tiny_run, texts, found):
    assert probe(tiny_run.predictor, texts) == found


def test_texts_are_counted_once_and_spread_evenly(tiny_run, texts):
    found = probe(tiny_run.predictor, [*texts, *texts, ""], max_texts=40)
    assert found.num_learned == found.num_tested == 20


def test_what_could_not_be_measured_is_none_in_json(tiny_run):
    texts = [f"{a} {b}" for a in "abcde" for b in "abcde"]
    found = probe(tiny_run.predictor, texts)
    assert math.isnan(found.layers[0][ORDER]) and math.isnan(found.layers[0][LENGTH])
    assert json.loads(json.dumps(found.to_dict()))["layers"][0][ORDER] is None


def test_neighbours_inside_a_text_are_swapped():
    texts = ["One two three four five.", "Too short here.", "a b b c"]
    swapped = swap_neighbours(texts)
    assert list(swapped) == [0]
    assert swapped[0] in ("One three two four five.", "One two four three five.")


def test_blanks_and_columns_stay_where_they_are():
    assert swap_neighbours(["One  two three\u3000four."]) == {0: "One  three two\u3000four."}
    # Neither across a tab, nor the first or last word of a column.
    assert swap_neighbours(["a b c\td e f g"]) == {0: "a b c\td f e g"}
    assert swap_neighbours(["a b c\td e f"]) == {}


def test_several_texts_are_probed_as_their_line(tiny_run, texts):
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    lines = ["\t".join(pair) for pair in pairs]
    assert probe(tiny_run.predictor, pairs) == probe(tiny_run.predictor, lines)


def test_fresh_encoder_has_the_same_parts_and_other_weights(tiny_run):
    before = torch.get_rng_state()
    fresh = untrained_copy(tiny_run.predictor)
    assert torch.equal(torch.get_rng_state(), before)
    assert fresh.source.read("a b c") == tiny_run.predictor.source.read("a b c")
    own, other = tiny_run.predictor.model.state_dict(), fresh.model.state_dict()
    assert own.keys() == other.keys()
    assert not torch.equal(own["encoder.embedding.weight"], other["encoder.embedding.weight"])


def test_words_that_are_both_unknown_are_left_out(tiny_run):
    texts = [f"a {x}x {x}y b {' c' * n}" for n, x in enumerate("pqrstuvwxyz" * 3)]
    assert math.isnan(probe(tiny_run.predictor, texts).layers[1][ORDER])


def test_too_few_texts_are_refused(tiny_run):
    with pytest.raises(DataError, match="at least 20 distinct texts, .* but there are 1"):
        probe(tiny_run.predictor, ["a b"] * 50)


def test_run_that_reads_no_text_is_refused(tiny_run, monkeypatch):
    monkeypatch.setattr(Predictor, "reads_text", property(lambda _self: False))
    with pytest.raises(ConfigError, match="Probes need a run that reads text"):
        probe(tiny_run.predictor, ["a b"] * 50)
