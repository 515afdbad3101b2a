"""First sentences of texts."""

import re

ABBREVIATIONS = frozenset(
    "al approx bzw ca cf dr e.g eg etc i.e ie mr mrs ms prof resp st viz vs "
    "art ch eq fig figs no nos p pp sec tab ver vol".split()
)
"""Words with a full stop within a sentence; single letters, such as initials, are others."""

_END = re.compile(r"(\S*?)([.!?…]+)[\"'”’»)\]]*(?=\s+[\"'“‘„«(\[]*[A-Z0-9À-ÖØ-Þ])")


def first_sentence(text: str) -> str:
    """Return a text's first sentence, or all of it if it has no more.

    A sentence ends in an end mark before whitespace and then a capital or a digit, except for the
    full stops of abbreviations, initials and numbers of list items.
    """
    text = text.strip()
    for end in _END.finditer(text):
        word = end[1].lstrip("\"'“‘„«([").lower()
        is_initial = len(word) == 1 and word.isalpha()
        is_abbreviation = end[2] == "." and (is_initial or word in ABBREVIATIONS)
        if not is_abbreviation and re.search(r"[^\W\d]", text[: end.end()]):
            return text[: end.end()]
    return text
