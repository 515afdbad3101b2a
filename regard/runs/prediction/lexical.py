"""Lexical control of predictions from the command line: glossaries, forbidden and unknown words."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.core.errors import ConfigError
from regard.tasks.base import Task
from regard.tasks.generation.lexical import LexicalOptions
from regard.tasks.generation.task import Predictor
from regard.tasks.generation.term_matching import Glossary, read_glossary


def read_lexical_options(
    *,
    glossary: Path | None = None,
    keep: Sequence[str] = (),
    forbid: Sequence[str] = (),
    replace_unknown: bool = False,
) -> LexicalOptions | None:
    """Return the options of lexical control; None if there are none.

    Args:
        glossary: File with a source term, a tab and a target term per line.
        keep: Names of patterns, or regular expressions, of parts of a source to keep.
        forbid: Words and phrases that no prediction contains.
        replace_unknown: Whether unknown tokens are replaced by source words.
    """
    if glossary is None and not keep and not forbid and not replace_unknown:
        return None
    return LexicalOptions(
        glossary=None if glossary is None else read_glossary(glossary),
        keep=tuple(keep),
        forbid=tuple(forbid),
        replace_unknown=replace_unknown,
    )


def describe_lexical(options: LexicalOptions) -> dict[str, Any]:
    """Return command-line options of lexical control by name; of a glossary, a checksum."""
    glossary = options.glossary
    terms = glossary.terms if isinstance(glossary, Glossary) else glossary
    checksum = None
    if terms is not None:
        checksum = hashlib.sha256(json.dumps(sorted(terms.items())).encode()).hexdigest()[:12]
    return {
        "--glossary": checksum,
        "--keep": [*options.keep],
        "--forbid": [*options.forbid],
        "--replace-unknown": options.replace_unknown,
    }


def control_words(task: Task[Any], options: LexicalOptions) -> Task[Any]:
    """Return a run with lexical control; raise `ConfigError` if its task has none.

    Args:
        task: The run.
        options: The options.
    """
    if type(task) is not Predictor:
        raise ConfigError(
            "`--glossary`, `--keep`, `--forbid` and `--replace-unknown` are for runs for the task "
            f"'generation', an encoder–decoder, but this run is one for '{task.recipe.task}'. "
            "Leave them out."
        )
    return task.with_lexical(options)
