import numpy as np
import pytest

from regard.core.errors import DataError
from regard.metrics.text.alignment import (
    alignment_error_rate,
    format_links,
    links_from_weights,
    merge_to_words,
    parse_links,
    read_pharaoh,
    write_pharaoh,
)


def test_sure_links_are_possible_too():
    assert parse_links("0-0 1p2") == ({(0, 0)}, {(0, 0), (1, 2)})


def test_offset_is_subtracted_from_indices():
    assert parse_links("1-1 2p3", offset=1) == ({(0, 0)}, {(0, 0), (1, 2)})


def test_empty_line_has_no_links():
    assert parse_links("\n") == (set(), set())


def test_malformed_link_is_refused():
    with pytest.raises(DataError, match="'3-4' or '3p4'.* but is '3:4'"):
        parse_links("0-0 3:4")


def test_link_below_the_offset_is_refused():
    with pytest.raises(DataError, match="'0-1' is below the first word, which is 1"):
        parse_links("0-1", offset=1)


def test_links_are_written_in_order():
    assert format_links({(10, 0), (2, 1), (2, 0)}) == "2-0 2-1 10-0"


def test_written_file_reads_back(tmp_path):
    links = [{(0, 0), (1, 2)}, set(), {(3, 1)}]
    write_pharaoh(tmp_path / "links", links)
    assert read_pharaoh(tmp_path / "links") == (links, links)


def test_error_in_a_file_names_path_and_line(tmp_path):
    (tmp_path / "links").write_text("0-0\nx\n")
    with pytest.raises(DataError, match=r"links, line 2: A link must"):
        read_pharaoh(tmp_path / "links")


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="gone does not exist"):
        read_pharaoh(tmp_path / "gone")


def test_file_of_another_encoding_is_refused(tmp_path):
    (tmp_path / "links").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="links is not UTF-8 text"):
        read_pharaoh(tmp_path / "links")


def test_source_tokens_are_summed_and_target_tokens_averaged():
    weights = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.0, 0.4, 0.6]]
    merged = merge_to_words(weights, [0, 0, 1], [0, 0, 1])
    np.testing.assert_allclose(merged, [[0.5, 0.5], [0.4, 0.6]])


def test_tokens_of_no_word_are_ignored():
    merged = merge_to_words([[0.7, 0.3], [0.2, 0.8]], [0, -1], [0, -1])
    np.testing.assert_allclose(merged, [[0.7]])


def test_word_without_tokens_has_a_row_of_zeros():
    np.testing.assert_allclose(merge_to_words([[1.0]], [1], [0]), [[0.0], [1.0]])


def test_weights_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"\(2, 1\), but has the shape \(1, 1\)"):
        merge_to_words([[1.0]], [0, 1], [0])


def test_each_target_word_links_to_its_largest_weight():
    assert links_from_weights([[0.1, 0.9], [0.6, 0.4]]) == {(1, 0), (0, 1)}


def test_words_below_the_threshold_have_no_link():
    assert links_from_weights([[0.1, 0.9], [0.6, 0.4]], threshold=0.7) == {(1, 0)}


def test_row_of_zeros_has_no_link():
    assert links_from_weights([[0.0, 0.0]]) == set()


def test_empty_weights_have_no_links():
    assert links_from_weights(np.zeros((0, 3))) == set()


def test_aer_equals_a_value_by_hand():
    # A = {00, 11, 22}, S = {00, 12}, P = S and {11}: |A∩S| = 1, |A∩P| = 2, so 1 - 3/5.
    predicted, sure = [{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (1, 2)}]
    result = alignment_error_rate(predicted, sure, [{(1, 1)}])
    assert result.value == pytest.approx(0.4)


def test_aer_detail_has_precision_and_recall():
    predicted, sure = [{(0, 0), (1, 1), (2, 2)}], [{(0, 0), (1, 2)}]
    detail = alignment_error_rate(predicted, sure, [{(1, 1)}]).detail
    assert detail == pytest.approx({"precision": 2 / 3, "recall": 1 / 2})


def test_aer_sums_over_the_corpus():
    # Without possible links: 1 - 2 (0 + 2) / (1 + 2 + 1 + 2).
    predicted, sure = [{(0, 0)}, {(0, 0), (1, 1)}], [{(0, 1)}, {(0, 0), (1, 1)}]
    assert alignment_error_rate(predicted, sure).value == pytest.approx(1 - 4 / 6)


def test_perfect_links_have_an_aer_of_0():
    assert alignment_error_rate([{(0, 0)}], [{(0, 0)}]).value == 0.0


def test_no_predicted_links_have_an_aer_of_1():
    assert alignment_error_rate([set()], [{(0, 0)}]).value == 1.0


def test_aer_needs_sure_links():
    with pytest.raises(DataError, match="`sure` must hold at least one link"):
        alignment_error_rate([{(0, 0)}], [set()])


def test_aer_reports_unequal_lengths():
    with pytest.raises(DataError, match="equal length, but there are 2, 1 and 1"):
        alignment_error_rate([set(), set()], [{(0, 0)}])
