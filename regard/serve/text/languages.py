"""Languages of runs, their names, and detection of the language of a text."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "th": "Thai",
    "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""English names of languages by their codes; others are shown by their code."""

DATA_SETS = {
    "phrasebook": ("en", "de"),
    "multi30k": ("en", "de"),
    "tatoeba": ("en", "de"),
    "small_enja": ("en", "ja"),
}
"""Languages of source and target of built-in data sets."""

_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")


def find_pair(name: str, data: Iterable[str]) -> tuple[str, str] | None:
    """Return the languages of source and target of a run; None if they are not known.

    Args:
        name: Name of the run, such as `en-de`.
        data: Data of its training; built-in data sets have known languages.
    """
    if match := _PAIR.fullmatch(name):
        return match[1], match[2]
    return next((DATA_SETS[one] for one in data if one in DATA_SETS), None)


def language_name(code: str) -> str:
    """Return the English name of a language."""
    return NAMES.get(code, code)


class LanguageDetector:
    """Naive Bayes over character trigrams (Cavnar and Trenkle 1994 compare their ranks).

    Args:
        samples: Texts of each language by its code.
    """

    def __init__(self, samples: Mapping[str, Iterable[str]]) -> None:
        counts = {code: Counter(_trigrams(texts)) for code, texts in samples.items()}
        self._num_types = len(set().union(*counts.values())) + 1
        self._counts = {code: (count, count.total()) for code, count in counts.items()}

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the languages."""
        return tuple(self._counts)

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Return all languages with their probabilities, the most likely one first.

        A language without samples has trigrams of equal probability.
        """
        found = list(_trigrams([text]))
        scores = {
            code: sum(
                math.log((count[trigram] + 0.5) / (total + 0.5 * self._num_types))
                for trigram in found
            )
            for code, (count, total) in self._counts.items()
        }
        highest = max(scores.values(), default=0.0)
        weights = {code: math.exp(score - highest) for code, score in scores.items()}
        total_weight = sum(weights.values())
        ranked = sorted(weights.items(), key=lambda one: -one[1])
        return [(code, weight / total_weight) for code, weight in ranked]


def _trigrams(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        padded = f" {' '.join(text.lower().split())} "
        for start in range(len(padded) - 2):
            yield padded[start : start + 3]
