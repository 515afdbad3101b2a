import os
from pathlib import Path

import pytest

from benchmarks.sentences import first_sentence
from regard.core.files import read_json_lines
from regard.data.text.lines import read_lines

SCITLDR = Path(os.environ.get("REGARD_DATA", "")) / "scitldr" / "test.jsonl.gz"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One is here. Two is there.", "One is here."),
        ("Is it? Yes.", "Is it?"),
        ("Stop! Go on.", "Stop!"),
        ("Well … Then it went.", "Well …"),
        ("It has parts. 3 of them move.", "It has parts."),
        ('He left. "Good," she said.', "He left."),
        ('She said "Good." He left.', 'She said "Good."'),
        ("It reads files (and writes them.) Then it ends.", "It reads files (and writes them.)"),
        ("Ein Satz. Über den Rest.", "Ein Satz."),
        ("It is written in C. It has tests.", "It is written in C."),
        ("It handles lists, trees etc. The rest is yours.", "It handles lists, trees etc."),
        ("The answer is no. We go on.", "The answer is no."),
        ("One.\n Two.", "One."),
    ],
)
def test_a_sentence_ends_where_it_ends(text, first):
    assert first_sentence(text) == first


@pytest.mark.parametrize(
    "opening",
    [
        "It reads formats, e.g. XML and JSON,",
        "It reads one format, i.e. XML,",
        "It reads XML, JSON, etc. Files",
        "It compares Emacs vs. Vim",
        "The work of Dr. Miller and Mr. Smith",
        "The work of Knuth et al. (1977)",
        "A solver by J. R. Smith, W. V. O. Quine",
        "The U.S. Army",
        "It draws Fig. 3 and eq. 4 of vol. 2",
        "Version 2.5 of lib.so and node.js",
        "It waits ... and waits",
        "1. A list",
    ],
)
def test_a_mark_within_a_sentence_does_not_end_it(opening):
    text = f"{opening} goes on. Then comes more."
    assert first_sentence(text) == f"{opening} goes on."


@pytest.mark.parametrize("text", ["", "No end mark at all", "Only one.", "a. b. c. d."])
def test_a_text_without_a_second_sentence_is_whole(text):
    assert first_sentence(f" {text}\n") == text


@pytest.mark.skipif(not SCITLDR.is_file(), reason="REGARD_DATA has no folder scitldr")
def test_sentences_end_where_others_cut_them(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text("".join(f"{line}\n" for line in read_lines(SCITLDR)), encoding="utf-8")
    sources = [row["source"] for row in read_json_lines(path)]
    same = [first_sentence(" ".join(source)) == source[0].strip() for source in sources]
    # The others' cuts break some sentences at the end of a line.
    assert sum(same) >= 0.92 * len(same)
