import pytest

from regard.plots.labels import clean, escape, shorten


def test_terminal_codes_are_made_harmless():
    assert "\x1b" not in clean("\x1b[2Jgone")


def test_line_breaks_become_blanks():
    assert clean("a\nb\tc") == "a b c"


def test_lone_surrogates_can_be_saved():
    assert clean("a\ud800").encode("utf-8").startswith(b"a")


@pytest.mark.parametrize("word", ["Grüße", "青い", "البيت", "👩‍🚀", "▁the"])
def test_ordinary_words_stay_as_they_are(word):
    assert clean(word) == word


def test_markup_is_escaped_with_its_quotes():
    assert escape('<a href="x">&\'') == "&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"


def test_numbers_are_escaped_as_text():
    assert escape(3) == "3"


def test_short_words_are_not_cut():
    assert shorten("Haus", 4) == "Haus"


def test_long_words_end_in_an_ellipsis():
    assert shorten("Donaudampfschiff", 6) == "Donau…"


def test_wide_letters_count_twice():
    assert shorten("青い家です", 5) == "青い…"
