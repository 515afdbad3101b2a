import gzip
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.interpret.alignment import (
    PUNCTUATION,
    WHITESPACE,
    Alignments,
    Gold,
    Head,
    align,
    check_task,
    fit_gold,
    gold_of,
    head_weights,
    swap_gold,
    swap_sides,
    with_means,
)
from regard.interpret.alignment_data import read_gold, read_separated

EXAMPLES = [Example("a b c", "c b a", alignment=((0, 2), (1, 1), (2, 0))), Example("d e", "e d")]


@pytest.fixture(scope="module")
def task(tiny_run):
    return tiny_run.predictor


def test_trained_attention_aligns_reversed_letters(task):
    aligned = align(task, EXAMPLES, split=WHITESPACE)
    gold = Gold([{(0, 2), (1, 1), (2, 0)}, {(0, 1), (1, 0)}], [set(), set()])
    assert gold.error_rate(aligned.links[Head(1, 1)]).value < 0.5


def test_pairs_of_different_lengths_keep_their_order(task):
    examples = [Example(" ".join("abcdef"[:n]), " ".join("fedcba"[:n])) for n in (5, 1, 6, 2, 4, 3)]
    together = align(task, examples, split=WHITESPACE).links[Head(1, 1)]
    alone = [align(task, [one], split=WHITESPACE).links[Head(1, 1)][0] for one in examples]
    assert together == alone


@pytest.mark.parametrize("kind", ["word", "char", "bpe"])
def test_weights_between_tokens_become_links_between_words(kind):
    example = Example("足利 義満 （ 在位 1368 年 ） 。", "yoshimitsu ashikaga ( reigned to1394 ) .")
    links = {(1, 0), (0, 1), (2, 2), (3, 3), (4, 4), (6, 5), (7, 6)}
    config = TokenizerConfig(kind=kind, vocab_size=80)
    sides = [train_tokenizer(config, [text]) for text in (example.source, example.target)]
    task = SimpleNamespace(
        source=SimpleNamespace(text=SimpleNamespace(tokenizer=sides[0])),
        target=SimpleNamespace(tokenizer=sides[1]),
        attend=lambda pairs: [_linked(*sides, pair, links) for pair in pairs],
    )
    assert align(task, [example], split=WHITESPACE).links[Head(1, 1)] == [links]


def _linked(source_tokenizer, target_tokenizer, example, links):
    """Return weights 1 between all tokens of linked words, found by the spans of the tokens."""
    weights = []
    for row in _words_of_tokens(target_tokenizer, example.target):
        weights.append(
            [
                float((column, row) in links)
                for column in _words_of_tokens(source_tokenizer, example.source)
            ]
            + [0.5]
        )
    weights.append([1.0] * len(weights[0]))  # the row of the end token
    return SimpleNamespace(weights=torch.tensor(weights)[None, None])


def _words_of_tokens(tokenizer, text):
    """Return the number of the word of each token: the spaces up to its end."""
    return [text[:end].count(" ") for _, end in tokenizer.spans(text)]


def test_input_step_is_the_next_row_of_weights(task):
    output = align(task, EXAMPLES[:1], split=WHITESPACE).links[Head(1, 1)][0]
    shifted = align(task, EXAMPLES[:1], split=WHITESPACE, step="input").links[Head(1, 1)][0]
    by_target = {j: i for i, j in output}
    assert {(by_target[j + 1], j) for j in (0, 1)} <= shifted


def test_unknown_words_are_counted_per_side(task):
    aligned = align(task, [Example("a xyz b c", "q a")], split=WHITESPACE)
    assert aligned.num_words == (4, 2)
    assert aligned.unknown_shares == (0.25, 0.5)


def test_unknown_step_is_refused(task):
    with pytest.raises(ConfigError, match="`--step`"):
        align(task, EXAMPLES, split=WHITESPACE, step="both")


def test_model_without_attention_is_refused(tiny_run_without_attention):
    with pytest.raises(ConfigError, match="needs a model with attention.*'cho'"):
        align(tiny_run_without_attention.predictor, EXAMPLES, split=WHITESPACE)


def test_other_tasks_are_refused(sorting_run):
    with pytest.raises(ConfigError, match="the task of this run is 'sorting'"):
        check_task(sorting_run)


def test_weights_of_a_pair_have_words_as_rows_and_columns(task):
    weights = head_weights(task, EXAMPLES[1], split=PUNCTUATION)
    assert weights.shape == (2, 2)


def test_means_of_layers_and_of_all_are_included():
    weights = np.arange(8.0).reshape(2, 2, 1, 2)
    found = dict(with_means(weights))
    assert list(found) == [Head(0, 0), Head(1, 0), Head(1, 1), Head(1, 2), *_second()]
    assert found[Head(1, 0)].tolist() == [[1.0, 2.0]]
    assert found[Head(0, 0)].tolist() == [[3.0, 4.0]]


def _second():
    return [Head(2, 0), Head(2, 1), Head(2, 2)]


def test_head_is_selected_on_the_given_pairs_only():
    right, wrong = {(0, 0)}, {(1, 0)}
    links = {Head(1, 1): [right, wrong], Head(1, 2): [wrong, right]}
    aligned = Alignments(links, (1, 1), (0, 0))
    gold = Gold([right, right], [right, right])
    assert aligned.select(gold, slice(0, 1)) == Head(1, 1)
    assert aligned.select(gold, slice(1, 2)) == Head(1, 2)


def test_head_that_does_not_exist_is_refused():
    aligned = Alignments({Head(1, 1): []}, (0, 0), (0, 0))
    assert aligned.find(None, 1) == Head(1, 1)
    with pytest.raises(ConfigError, match="`--layer` must be 1 to 1"):
        aligned.find(2, 1)


def test_gold_links_outside_their_pair_are_dropped_and_named():
    gold = Gold([{(0, 0), (2, 1)}], [{(0, 0), (2, 1), (1, 1)}])
    fitted, dropped = fit_gold(gold, EXAMPLES[1:], split=WHITESPACE, name="gold")
    assert (fitted.sure, fitted.possible) == ([{(0, 0)}], [{(0, 0), (1, 1)}])
    assert dropped == ["line 1: 2-1 in a pair of 2 and 2 words"]


def test_another_number_of_gold_lines_is_refused():
    with pytest.raises(DataError, match="1 lines of links, but there are 2 pairs"):
        fit_gold(Gold([set()], [set()]), EXAMPLES, split=WHITESPACE, name="gold")


def test_gold_of_examples_needs_alignments_of_all():
    assert gold_of(EXAMPLES) is None
    assert gold_of(EXAMPLES[:1]).sure == [{(0, 2), (1, 1), (2, 0)}]


def test_sides_and_links_are_swapped():
    (swapped,) = swap_sides([Example("a", "b c", alignment=((0, 1),))])
    assert (swapped.source, swapped.target, swapped.alignment) == ("b c", "a", ((1, 0),))
    assert swap_gold(Gold([{(0, 1)}], [{(0, 1)}])).sure == [{(1, 0)}]


def test_separated_lines_are_read_with_empty_sides(tmp_path):
    path = tmp_path / "pairs.txt.gz"
    path.write_bytes(gzip.compress(b"a b  ||| c \n ||| d\n"))
    examples = read_separated((str(path),))
    assert [(one.source, one.target) for one in examples] == [("a b", "c"), ("", "d")]


def test_other_files_are_not_separated_lines(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("a\tb\n", encoding="utf-8")
    assert read_separated((str(path),)) is None


def test_line_without_separator_is_refused(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("a ||| b\nc d\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2, must be 'source \|\|\| target'"):
        read_separated((str(path),))


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [
        ("1-1 2p3\n", None, {(0, 0), (1, 2)}),
        ("0-0 2-1\n", None, {(0, 0), (2, 1)}),
        ("1-1\n", 0, {(1, 1)}),
    ],
)
def test_index_of_the_first_gold_word(tmp_path, text, offset, expected):
    path = tmp_path / "gold"
    path.write_text(text, encoding="utf-8")
    assert read_gold(str(path), offset).possible == [expected]
