"""First sentences of texts."""

import re

ABBREVIATIONS = frozenset(
    "al approx bzw ca cf dr e.g eg etc i.e ie mr mrs ms prof resp st viz vs".split()
)
"""Abbreviations with a full stop within a sentence."""

NUMBERED = frozenset("art ch eq fig figs no nos p pp sec tab ver vol".split())
"""Abbreviations with a full stop before a number only."""

OPENERS = frozenset(
    "a additionally all also an and as at both but by each for from he here however if in is it "
    "its note on one our she since some such that the then there therefore these they this those "
    "to unlike using we when while with you your".split()
)
"""First words of sentences that are no names: before them, 'C.' and 'etc.' end a sentence."""

_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s+(\S+))")
_QUOTES = "\"'“‘„«(["


def first_sentence(text: str) -> str:
    """Return a text's first sentence, or all of it if it has no more.

    A sentence ends in an end mark before a blank and then a capital, a digit or a quotation mark.
    Full stops of abbreviations and initials are none.
    """
    text = text.strip()
    for end in _END.finditer(text):
        sentence = text[: end.end()]
        if _can_open(end[1]) and _can_close(sentence, end[0], end[1]):
            return sentence
    return text


def _can_open(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit() or word[0] in _QUOTES


def _can_close(sentence: str, marks: str, following: str) -> bool:
    if not any(character.isalpha() for character in sentence):
        return False  # the number of a list's item
    if marks != ".":
        return True
    word = sentence.split()[-1].strip(_QUOTES + ".")
    if word.lower() in NUMBERED:
        return not following[0].isdigit()
    is_initial = bool(re.fullmatch(r"[^\W\d_](\.[^\W\d_])*", word)) and word[0].isupper()
    if is_initial or word.lower() == "etc":
        return following.strip(_QUOTES + ",").lower() in OPENERS
    return word.lower() not in ABBREVIATIONS
