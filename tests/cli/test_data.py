from regard.data.datasets.catalog import DATASETS


def test_every_data_set_is_listed(regard):
    result = regard("data", "list")
    first = [line.split() for line in result.lines if not line.startswith(" ")]
    assert [(name, access) for name, access, *_ in first] == [
        (name, dataset.access) for name, dataset in DATASETS.items()
    ]
    assert {access for _, access, *_ in first} == {
        "generated",
        "package",
        "download",
        "REGARD_DATA",
    }
    assert max(map(len, result.lines)) <= 100


def test_pairs_are_shown_with_their_alignment(regard):
    result = regard("data", "show", "phrasebook:20", "--num", 2)
    assert result.lines[0].startswith("# generated with seed 0: 20 train")
    assert sum("\t" in line for line in result.lines) == 2
    assert any(line.startswith("#   0-0") for line in result.lines)


def test_pairs_of_two_files_are_shown(regard, tmp_path):
    for name, text in (("source", "a b\n"), ("target", "b a\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    result = regard("data", "show", tmp_path / "source", tmp_path / "target")
    assert result.out == "a b\tb a\n"


def test_get_prints_the_sizes_of_a_data_set(regard):
    result = regard("data", "get", "copy:30")
    assert result.out.startswith("copy:30: 30 train, 500 valid, 500 test. generated")


def test_get_prints_the_range_of_lengths(regard):
    result = regard("data", "get", "reverse:30,3-5")
    assert "generated with seed 0, tokens 3 to 5: 30 train, 500 valid, 500 test" in result.out


def test_numbers_are_shown_with_their_words(regard):
    result = regard("data", "show", "numbers:5,4-4", "--num", 2)
    pairs = [line.split("\t") for line in result.lines if not line.startswith("#")]
    assert all(len(digits.split()) == 4 and " thousand" in words for digits, words in pairs)
    assert len(pairs) == 2


def test_get_refuses_files(refused, pairs):
    message = refused("data", "get", pairs)
    assert message.endswith("is a file, not a data set's name; there is nothing to download.")


def test_further_references_are_shown(regard, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"source": "read", "target": ["r iː d", "r ɛ d"]}\n', encoding="utf-8")
    assert regard("data", "show", path).lines == ["read\tr iː d", "#   or: r ɛ d"]
