"""A grammar that writes English-German sentence pairs with gold word alignments.

It is the data set that needs no download. A seed gives always the same pairs; an English
sentence has always the same translation; and a sentence belongs to the training, the validation
or the test part by its own text, so that no seed and no size ever moves it.
"""

import re
import zlib
from collections.abc import Iterator
from random import Random

from regard.core.errors import DataError
from regard.data.examples import Example
from regard.data.phrasebook.english import write_english
from regard.data.phrasebook.german import GermanWriter
from regard.data.phrasebook.grammar import Grammar
from regard.data.phrasebook.lexicon import load_lexicon
from regard.data.phrasebook.trees import Sentence, align, write_sentence

MAX_WORDS = 60
"""No English sentence has more words, punctuation not counted."""

TAGS: dict[str, str] = {}
