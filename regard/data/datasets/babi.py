"""bAbI: twenty tasks of questions about short stories (Weston et al. 2015)."""

import random
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.loading import Parts, find_folder, with_sizes
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.tokenizers import split_words

ARCHIVE = "babi_en_1k.zip"
ALL_TASKS = [str(number) for number in range(1, 21)]
VALID_SHARE = 0.1
"""Share of the training stories that is held out to validate."""

Story = list[Example]
"""The questions about one story, in their order."""


def load_babi(argument: str, seed: int) -> Splits:
    """Return the questions of all tasks in their official split, or of some (`babi:3`, `babi:1,4`).

    A source is the story up to the question, sentence by sentence, and the question. The gold
    alignment links the sentences that justify an answer, counted from 0, with its words. A tenth
    of the training stories, task by task, is held out to validate.
    """
    numbers = argument.split(",") if argument else ALL_TASKS
    if not set(numbers) <= set(ALL_TASKS) or len(set(numbers)) < len(numbers):
        raise DataError(
            f"What follows 'babi:' must be the number of a task, 1 to {len(ALL_TASKS)}, or several "
            f"as in 'babi:1,4,6', but is '{argument}'."
        )
    path = find_folder("babi", ARCHIVE) / ARCHIVE
    parts: Parts = ([], [], [])
    for number in map(int, numbers):
        learned, test = (_read_task(path, number, side) for side in ("train", "test"))
        random.Random(f"{seed} {number}").shuffle(learned)
        num_valid = max(1, round(VALID_SHARE * len(learned)))
        sides = learned[num_valid:], learned[:num_valid], test
        for part, stories in zip(parts, sides, strict=True):
            part += [question for story in stories for question in story]
    return with_sizes(parts, f"official test set of {path}, seed {seed}")


def _read_task(path: Path, number: int, side: str) -> list[Story]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if found := re.fullmatch(rf"en/qa{number}_(.+)_{side}\.txt", name):
                tag = f"{number:02} {found[1].replace('-', ' ')}"
                return list(read_stories(archive.read(name).decode("utf-8"), tag=tag))
    raise DataError(f"{path} must hold a file en/qa{number}_…_{side}.txt, but has none.")


def read_stories(text: str, *, tag: str) -> Iterator[Story]:
    """Read stories whose lines are numbered from 1; a question has its answer behind a tab.

    Args:
        text: A file as it is published.
        tag: What every question is tagged with.
    """
    sentences: dict[int, str] = {}
    story: Story = []
    for line in text.splitlines():
        number, _, content = line.partition(" ")
        if number == "1" and story:
            yield story
            sentences, story = {}, []
        question, *answer = (part.strip() for part in content.split("\t"))
        if answer:
            story.append(_ask(question, answer, sentences, tag=tag))
        else:
            sentences[int(number)] = question
    yield story


def _ask(question: str, answer: list[str], sentences: dict[int, str], *, tag: str) -> Example:
    # A list has no spaces, 'apple,milk', and would be one long word.
    target = answer[0].replace(",", ", ")
    order = {number: position for position, number in enumerate(sentences)}
    facts = sorted(order[int(number)] for number in answer[1].split())
    num_words = len(split_words(target))
    return Example(
        (*sentences.values(), question),
        target,
        alignment=tuple((fact, word) for fact in facts for word in range(num_words)),
        tags=(tag,),
    )
