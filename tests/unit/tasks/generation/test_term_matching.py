import gzip

import pytest

from regard.core.errors import ConfigError, DataError
from regard.tasks.generation import term_matching
from regard.tasks.generation.term_matching import (
    Glossary,
    compile_patterns,
    count_phrase,
    find_matches,
    read_glossary,
)

GLOSSARY = Glossary(
    {
        "dog": "Hund",
        "hot dog": "Wurst",
        "Bank": "Bank AG",
        "e-mail": "E-Mail",
        "狗": "dog",
        "café": "Kaffeehaus",
    }
)


def found(text, *patterns, glossary=GLOSSARY):
    """Sources and targets of the matches of a text."""
    return [
        (one.source, one.target) for one in find_matches(text, glossary, compile_patterns(patterns))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a dog runs", [("dog", "Hund")]),
        ("A DOG, a Dog.", [("DOG", "Hund"), ("Dog", "Hund")]),
        ("dogs and underdog", []),
        ("a hot dog and a dog", [("hot dog", "Wurst"), ("dog", "Hund")]),
        ("a hot  dog", [("hot  dog", "Wurst")]),
        ("the bank, the Bank, the BANK", [("Bank", "Bank AG")]),
        ("by e-mail: (dog)", [("e-mail", "E-Mail"), ("dog", "Hund")]),
        ("我有狗", [("狗", "dog")]),
        ("a cafe\u0301", [("café", "Kaffeehaus")]),
        ("", []),
    ],
)
def test_terms_are_found_as_whole_words(text, expected):
    assert found(text) == expected


def test_whole_words_are_translated():
    assert [GLOSSARY.translate(word) for word in ("Dog", "dogs", "bank")] == ["Hund", None, None]


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("see https://a.org/b?c=1, or (www.b.de).", "url", ["https://a.org/b?c=1", "www.b.de"]),
        ("write to a.b+c@d-e.co.uk.", "email", ["a.b+c@d-e.co.uk"]),
        ("1,000.50 and 3 of 12:30, no b2", "number", ["1,000.50", "3", "12:30"]),
        ("{name} has %d of <b> ${x} $y", "placeholder", ["{name}", "%d", "<b>", "{x}", "$y"]),
        ("Model X-200 and Y-3", r"[A-Z]-\d+", ["X-200", "Y-3"]),
        ("abc", "x*", []),
    ],
)
def test_parts_to_keep_are_found(text, pattern, expected):
    assert found(text, pattern, glossary=None) == [(part, part) for part in expected]


def test_longest_of_overlapping_matches_is_kept():
    assert found("see www.dog.de/42 dog", "url", "number") == [
        ("www.dog.de/42", "www.dog.de/42"),
        ("dog", "Hund"),
    ]


def test_pattern_that_is_no_regular_expression_is_refused():
    with pytest.raises(ConfigError, match=r"`keep` must be .* but is '\(' \("):
        compile_patterns(["("])


def write(folder, content, name="terms.tsv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_glossary_is_read_from_a_file(tmp_path):
    text = "\ufeffdog\tHund\n\n hot dog \t Wurst \r\ndog\tHund\n"
    assert read_glossary(write(tmp_path, text)).terms == {"dog": "Hund", "hot dog": "Wurst"}
    packed = write(tmp_path, gzip.compress(b"cat\tKatze"), "terms.tsv.gz")
    assert read_glossary(packed).terms == {"cat": "Katze"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog\tHund\ncat\n", "line 2, must have two columns, .* but has 1"),
        ("dog\tHund\tx\n", "line 1, must have two columns, .* but has 3"),
        ("dog\t\n", "line 1, must have a target term, but it is empty"),
        ("\tHund\n", "line 1, must have a source term, but it is empty"),
        ("dog\t" + "x" * 201, "line 1, .* target term of at most 200 characters, .* has 201"),
        ("dog\tHund\ncat\tKatze\ndog\tRüde\n", "line 3, .* 'dog' as 'Rüde', but line 1 as 'Hund'"),
        ("dog\tR\xfcde\n".encode("latin-1"), "line 1, is not UTF-8"),
        ("\n\n", "must have at least one term, but is empty"),
    ],
)
def test_wrong_glossaries_are_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_glossary(write(tmp_path, content))


def test_too_many_terms_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(term_matching, "MAX_TERMS", 2)
    path = write(tmp_path, "a\tb\nc\td\ne\tf\n")
    with pytest.raises(DataError, match="has more than 2 terms"):
        read_glossary(path)


def test_empty_terms_of_a_dictionary_are_refused():
    with pytest.raises(DataError, match="must have a target term"):
        Glossary({"dog": " "})


@pytest.mark.parametrize(
    ("text", "phrase", "number"),
    [
        ("Hund und Hunde, (Hund)", "Hund", 2),
        ("Schäferhund", "hund", 0),
        ("New  York", "New York", 1),
        ("x{name}y {name}", "{name}", 2),
        ("我有狗", "狗", 1),
        ("a a a", "a a", 1),
        ("", "a", 0),
    ],
)
def test_phrases_are_counted_as_whole_words(text, phrase, number):
    assert count_phrase(text, phrase) == number
