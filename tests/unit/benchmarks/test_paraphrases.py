import sys
from pathlib import Path

import pytest

from benchmarks.results.paraphrases import FIGURE, write
from regard.data.example import Example

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
PAIRS = [
    Example(f"english {number}", f"deutsch {number} {word}")
    for number in range(40)
    for word in ("so", "anders", "auch")
]


@pytest.fixture
def script(monkeypatch):
    """The script, imported as it is started: beside its neighbours."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(BENCHMARKS)
    import paraphrases

    monkeypatch.setattr(paraphrases, "NUM_BOOTSTRAP", 20)
    yield paraphrases
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == BENCHMARKS:
            del sys.modules[name]


def test_nothing_that_is_held_out_is_trained_on_in_either_language(script):
    doubled = [*PAIRS, *(Example(f"another {number}", "deutsch 3 so") for number in range(30))]
    splits = script.split_pairs(doubled, most=9)
    held_out = [*splits.valid, *splits.test]
    assert held_out
    for side in ("source", "target"):
        known = {getattr(example, side) for example in splits.train}
        assert not known & {getattr(example, side) for example in held_out}


def test_translations_of_one_sentence_are_a_group(script):
    splits = script.split_pairs(PAIRS, most=12)
    found = script.find_paraphrases(splits.test)
    assert len(found.sentences) == 6 and len(found.asking) == 2
    for own in found.members.values():
        assert len({found.sentences[row].split()[1] for row in own}) == 1


def test_sentences_that_share_few_words_are_found(script):
    test = [
        Example("Tom hat das mit Absicht getan.", "a"),
        Example("Tom hat das absichtlich getan.", "a"),
        Example("Geh weg!", "b"),
        Example("Hau ab!", "b"),
        Example("Allein.", "c"),
    ]
    assert script.find_paraphrases(test).unlike == [2, 3]


def test_run_is_measured_and_its_page_is_written(script, tiny_run, tmp_path):
    letters = ["a b c d", "b c d e", "c d e a", "d e a b"]
    test = [
        Example(text, group)
        for group in letters
        for text in (group, " ".join(reversed(group.split())), f"e {group}")
    ]
    found = script.find_paraphrases(test)
    # So that some sentences of these few letters count as unlike.
    vars(found)["unlike"] = [0, 4]
    row = script.measure_run("sutskever2014", tiny_run.folder, found)
    assert row["found"]["summary"]["all"]["accuracy"]["detail"]["queries"] == 12
    assert row["found"] != row["fresh"] and len(row["samples"]) == 4
    value = {
        "command": "python x.py",
        "data": "made up",
        "note": "A note.",
        "bag": row["fresh"]["mean"],
        "bag_samples": row["samples"],
        "runs": [row],
        "drawn": [{"text": found.sentences[r], "group": found.groups[r]} for r in found.drawn()],
        "asked": [{"text": found.sentences[r], "group": found.groups[r]} for r in found.asking],
    }
    page = write(value, tmp_path)
    assert "12 German sentences in 4 groups" in page and "A note." in page
    assert f"{row['found']['summary']['all']['accuracy']['value']:.1f} ±" in page
    assert "bag of words (tf-idf)" in page
    assert (tmp_path / FIGURE).read_text(encoding="utf-8").startswith("<svg")
