import math

import pytest
import torch

from regard.data.example import Example
from regard.models.language_model import build_language_model
from regard.studies.reproduce.encoder_decoders import language_model as experiment
from regard.studies.reproduce.encoder_decoders.short_training import Vocabularies, seeded

PAIRS = [Example("a b c d", "d c b a"), Example("a b", "b a")]
VOCABULARIES = Vocabularies.fit(PAIRS)
TEST = list(VOCABULARIES.batches(PAIRS).epoch(0))


def test_rows_are_in_order_and_without_padding():
    expected = VOCABULARIES.target.read_all([pair.target for pair in PAIRS])
    assert experiment._rows(TEST) == expected


def test_perplexity_of_a_uniform_distribution_is_its_size():
    steps = experiment._count_log_probs(TEST, lambda _, token: 1 / 7)
    assert [len(row) for row in steps] == [5, 3]
    assert experiment._perplexity(steps) == pytest.approx(7)


def test_steps_sum_to_the_log_probability_in_one_pass():
    with seeded(1):
        model = build_language_model(
            experiment._rnn_config(), vocab_size=VOCABULARIES.target.size
        ).eval()
    at_once, steps = experiment._chain_error(model, TEST)
    assert at_once == pytest.approx(steps, abs=1e-4)
    with torch.no_grad():
        rows = experiment._rnn_log_probs(model, TEST)
    loss = experiment._language_loss(model, TEST[0])
    assert -sum(map(sum, rows)) == pytest.approx(float(loss.total.detach()), rel=1e-4)


def test_final_mark_fits_the_first_word():
    rows = [[0, 5, 6, 8, 1], [0, 5, 7, 8, 1], [0, 6, 5, 9, 1]]
    assert experiment.final_mark_share(rows, [[5, 7, 8, 1], [5, 7, 9, 1], [1]]) == pytest.approx(
        100 / 3
    )


def test_share_of_seen_triples():
    # Of (5, 6, 7), (6, 7, 1) and (6, 7, 8), two are seen.
    assert experiment.seen_triples_share(
        [[0, 5, 6, 7, 1]], [[5, 6, 7, 1], [6, 7, 8], [1]]
    ) == pytest.approx(200 / 3)


def test_share_of_copies():
    assert experiment.copied_share([[0, 5, 6, 1]], [[5, 6, 1], [5, 1]]) == 50


def test_table_ends_with_the_product():
    sentence = experiment._Sentence(["x", "y"], {"model": [math.log(0.5), math.log(0.25)]})
    table = experiment._step_table(sentence)
    assert list(table.values())[-1]["model"] == pytest.approx(0.125)
