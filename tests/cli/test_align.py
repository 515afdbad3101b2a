import json

import pytest


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("a b c ||| c b a\nd e ||| e d\n", encoding="utf-8")
    gold = tmp_path / "gold.txt"
    gold.write_text("1-3 2-2 3-1\n1-2 2p1 7-7\n", encoding="utf-8")
    return path, gold


def test_links_are_printed_in_pharaoh_format(regard, tiny_run, pairs):
    result = regard("align", tiny_run.folder, pairs[0])
    assert len(result.lines) == 2
    assert all("-" in word for line in result.lines for word in line.split())


def test_gold_links_give_error_rates_and_name_dropped_links(regard, tiny_run, pairs, tmp_path):
    out = tmp_path / "links.txt"
    result = regard("align", tiny_run.folder, pairs[0], "--gold", pairs[1], "--out", out)
    assert "layer 1, head 1" in result.out and "recall" in result.out
    assert "counted from 1" in result.err
    assert "dropped 1 links outside their pair" in result.err
    assert len(out.read_text().splitlines()) == 2


def test_data_with_alignments_needs_no_gold_file(regard, tiny_run):
    assert "AER" in regard("align", tiny_run.folder).out


def test_json_holds_rates_links_and_unknown_words(regard, tiny_run, pairs):
    result = regard("align", tiny_run.folder, pairs[0], "--gold", pairs[1], "--json", "--swap")
    value = json.loads(result.out)
    assert value["heads"][0].keys() == {"layer", "head", "pairs", "aer", "precision", "recall"}
    assert value["unknown_share"] == {"source": 0, "target": 0}
    assert len(value["links"]) == 2 and value["best"]["selected_on"]["pairs"] == 1


def test_run_without_attention_is_refused(regard, tiny_run_without_attention, pairs):
    result = regard("align", tiny_run_without_attention.folder, pairs[0])
    assert result.code == 2 and "needs a model with attention" in result.err


def test_unequal_numbers_of_lines_are_refused(regard, tiny_run, pairs, tmp_path):
    short = tmp_path / "short"
    short.write_text("0-0\n", encoding="utf-8")
    result = regard("align", tiny_run.folder, pairs[0], "--gold", short)
    assert result.code == 2 and "1 lines of links, but there are 2 pairs" in result.err


def test_pairs_are_aligned_without_a_model(regard, pairs, tmp_path):
    out = tmp_path / "links.txt"
    result = regard("data", "links", pairs[0], "--gold", pairs[1], "--out", out)
    assert result.out.startswith("AER ") and len(out.read_text().splitlines()) == 2


def test_pairs_are_aligned_in_the_other_direction(regard, pairs):
    assert len(regard("data", "links", pairs[0], "--reverse").lines) == 2
