"""bAbI: twenty tasks of questions about short stories (Weston et al. 2015)."""

import random
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from regard.core.errors import DataError
from regard.data.datasets.loading import Parts, build_splits, find_folder
from regard.data.example import Example
from regard.data.expansion import check_member
from regard.data.splits import Splits
from regard.data.text.tokenizers import split_words

ARCHIVE = "babi_en_1k.zip"
ALL_TASKS = [str(number) for number in range(1, 21)]
VALID_SHARE = 0.1
"""Share of the training stories held out for validation."""

Story = list[Example]
"""Questions about one story, in order."""


def load_babi(argument: str, seed: int) -> Splits:
    """Load the questions of all tasks in their official split, or of some (`babi:3`, `babi:1,4`).

    A source is a tuple of the sentences of the story up to the question, and the question. The
    gold alignment links the supporting sentences, counted from 0, to the words of the answer. A
    tenth of the training stories of each task is held out for validation.
    """
    numbers = argument.split(",") if argument else ALL_TASKS
    if not set(numbers) <= set(ALL_TASKS) or len(set(numbers)) < len(numbers):
        raise DataError(
            f"The argument of 'babi:' must be the number of a task, 1 to {len(ALL_TASKS)}, or "
            f"several as in 'babi:1,4,6', but is '{argument}'."
        )
    path = find_folder("babi", ARCHIVE) / ARCHIVE
    parts: Parts = ([], [], [])
    for number in map(int, numbers):
        train, test = (_read_task(path, number, split) for split in ("train", "test"))
        random.Random(f"{seed} {number}").shuffle(train)
        num_valid = max(1, round(VALID_SHARE * len(train)))
        splits = train[num_valid:], train[:num_valid], test
        for part, stories in zip(parts, splits, strict=True):
            part += [question for story in stories for question in story]
    return build_splits(parts, f"official test set of {path}, seed {seed}")


def _read_task(path: Path, number: int, split: str) -> list[Story]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if match := re.fullmatch(rf"en/qa{number}_(.+)_{split}\.txt", name):
                tag = f"{number:02} {match[1].replace('-', ' ')}"
                check_member(f"{path}/{name}", archive.getinfo(name))
                return list(read_stories(archive.read(name).decode("utf-8"), tag=tag))
    raise DataError(f"{path} must contain a file en/qa{number}_…_{split}.txt, but has none.")


def read_stories(text: str, *, tag: str) -> Iterator[Story]:
    """Read stories whose lines are numbered from 1; a tab separates a question from its answer.

    Args:
        text: Content of a published file.
        tag: Tag of every question.
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
            story.append(_example(question, answer, sentences, tag=tag))
        else:
            sentences[int(number)] = question
    yield story


def _example(question: str, answer: list[str], sentences: dict[int, str], *, tag: str) -> Example:
    # Lists have no spaces ('apple,milk') and would be tokenised as one word.
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
