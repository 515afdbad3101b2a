import io

import pytest

from regard.core.terminal import CleanStream, clean, clean_lines, filtered, unfiltered


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("code", [*range(9), *range(11, 32), *range(127, 160), 0xD800, 0xDFFF])
def test_control_characters_and_surrogates_are_replaced(code):
    cleaned = clean_lines(f"a{chr(code)}b")
    assert cleaned == ("a b" if code == 13 else "a\N{REPLACEMENT CHARACTER}b")
    assert clean(f"a{chr(code)}b") == cleaned


def test_line_ends_and_tabs_of_lines_are_kept():
    text = "für\t猫 👩‍👩‍👧\n\n은 é"
    assert clean_lines(text) == text
    assert clean(text) == "für 猫 👩‍👩‍👧  은 é"


def test_terminal_gets_clean_text_from_every_way_to_write():
    stream = Terminal()
    terminal = filtered(stream)
    print("a\x1b[2J", "b", file=terminal, flush=True)
    terminal.writelines(["c\x07\n", "d"])
    assert stream.getvalue() == "a\N{REPLACEMENT CHARACTER}[2J b\nc\N{REPLACEMENT CHARACTER}\nd"
    assert terminal.isatty()
    assert unfiltered(terminal) is stream


def test_files_and_pipes_are_left_as_they_are():
    stream = io.StringIO()
    assert filtered(stream) is stream
    assert unfiltered(stream) is stream


def test_write_returns_the_number_of_characters_that_it_was_given():
    assert CleanStream(Terminal()).write("a\x1bb") == 3
