from regard.data.datasets.catalog import DATASETS


def test_every_data_set_is_listed(regard):
    answer = regard("data", "list")
    assert [line.split()[0] for line in answer.lines] == list(DATASETS)


def test_pairs_are_shown_with_what_is_known_about_them(regard):
    answer = regard("data", "show", "phrasebook:20", "--num", 2)
    assert answer.lines[0].startswith("# generated with seed 0: 20 train")
    assert sum("\t" in line for line in answer.lines) == 2
    assert any(line.startswith("#   0-0") for line in answer.lines)


def test_pairs_of_two_files_are_shown(regard, tmp_path):
    for name, text in (("source", "a b\n"), ("target", "b a\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    answer = regard("data", "show", tmp_path / "source", tmp_path / "target")
    assert answer.out == "a b\tb a\n"


def test_sizes_are_told_when_a_data_set_is_fetched(regard):
    answer = regard("data", "get", "copy:30")
    assert answer.out.startswith("copy:30: 30 train, 500 valid, 500 test. generated")


def test_lengths_are_told_when_they_are_chosen(regard):
    answer = regard("data", "get", "reverse:30,3-5")
    assert "generated with seed 0, tokens 3 to 5: 30 train, 500 valid, 500 test" in answer.out


def test_numbers_are_shown_with_their_words(regard):
    answer = regard("data", "show", "numbers:5,4-4", "--num", 2)
    pairs = [line.split("\t") for line in answer.lines if not line.startswith("#")]
    assert all(len(digits.split()) == 4 and " thousand" in words for digits, words in pairs)
    assert len(pairs) == 2


def test_file_needs_no_fetching(refused, pairs):
    message = refused("data", "get", pairs)
    assert message.endswith("is a file, not a data set's name; there is nothing to fetch.")


def test_further_references_are_shown(regard, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"source": "read", "target": ["r iː d", "r ɛ d"]}\n', encoding="utf-8")
    assert regard("data", "show", path).lines == ["read\tr iː d", "#   or: r ɛ d"]
