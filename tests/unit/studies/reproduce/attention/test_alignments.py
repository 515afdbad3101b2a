from regard.data.example import Example
from regard.interpret.alignment import Alignments, Gold, Head
from regard.studies.reproduce.attention.alignments import (
    MAX_WORDS,
    NUM_TEST,
    diagonal,
    em_links,
    far_links,
    share_found,
    write_pairs,
)
from regard.studies.reproduce.attention.guided_alignment import AER, describe, read_curve

PAIR = Example("one two three four", "vier drei zwei eins", alignment=((0, 3), (1, 2), (3, 0)))


def test_pairs_are_short_and_have_links(tmp_path):
    _, test = write_pairs(tmp_path)
    assert len(test) == NUM_TEST
    assert max(len(one.source.split()) for one in test) <= MAX_WORDS
    assert all(one.alignment for one in test)


def test_diagonal_links_words_at_equal_relative_positions():
    assert diagonal([Example("a b c d", "x y")]) == [{(0, 0), (2, 1)}]


def test_far_links_are_two_words_from_the_diagonal():
    assert far_links([PAIR]) == [{(0, 3), (3, 0)}]


def test_share_of_found_links():
    assert share_found([{(0, 0)}], [{(0, 0), (1, 1)}]) == 0.5


def test_model_1_aligns_a_lexicon():
    train = [Example("a b", "A B"), Example("b a", "B A"), Example("a c", "A C")] * 5
    assert em_links(train, train[:1]) == [{(0, 0), (1, 1)}]


def test_selected_head_is_reported_on_the_other_half():
    links = {Head(1, 1): [{(0, 0)}, {(1, 0)}], Head(1, 2): [{(1, 0)}, {(0, 0)}]}
    gold = Gold([{(0, 0)}] * 2, [{(0, 0)}] * 2)
    row = describe(Alignments(links, (2, 2), (0, 0)), gold)
    assert row["head"] == "layer 1, head 1" and row[AER] == 1.0


def test_curve_is_validation_bleu_by_step(tmp_path):
    lines = '{"kind": "train", "step": 1}\n{"kind": "valid", "step": 2, "bleu": 30.0}\n'
    (tmp_path / "journal.jsonl").write_text(lines)
    assert read_curve(tmp_path) == [(2, 30.0)]
