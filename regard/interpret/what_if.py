"""Effects of edits (what-if analysis): a changed source, a forced word, an edited attention weight.

Each function returns the output before and after an edit, and the probability of each token of both
outputs without and with the edit.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.text.tokenizers import Tokenizer
from regard.interpret.editing import WeightEdit, attention_layers, edit_weights
from regard.interpret.forced import ForcedPass
from regard.interpret.passes import force, predict
from regard.search.settings import SearchConfig
from regard.tasks.base import Task
from regard.tasks.generation.task import Predictor
from regard.tasks.language_modeling import LanguageModelingTask

_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class EditedOutput:
    """An output, and the probability of its tokens without and with an edit."""

    text: str
    """The output as text."""
    tokens: tuple[str, ...]
    """Its tokens, the end token included."""
    log_probs_before: tuple[float, ...]
    """Log-probability of each token without the edit."""
    log_probs_after: tuple[float, ...]
    """Log-probability of each token with the edit."""


@dataclass(frozen=True)
class WhatIf:
    """Effect of an edit on the output for one source."""

    kind: Literal["source", "target", "attention"]
    """The edited part."""
    source: str
    """The source."""
    edited_source: str
    """The source with the edit; that of `source` if something else was edited."""
    before: EditedOutput
    """The output without the edit."""
    after: EditedOutput
    """The output with the edit."""

    @property
    def is_changed(self) -> bool:
        """Whether the edit changes the output."""
        return self.before.tokens != self.after.tokens

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "is_changed": self.is_changed}


def change_source(
    task: Task[Any], source: str, *, changed: str, search: SearchConfig | None = None
) -> WhatIf:
    """Predict for a source and for a changed one.

    Args:
        task: A run of a model that generates text or predicts labels.
        source: The raw source.
        changed: The changed source.
        search: The search settings; those of the recipe if not given.
    """
    before, after = (force(task, one, search=search) for one in (source, changed))
    return WhatIf(
        "source",
        source,
        changed,
        before=EditedOutput(
            before.text,
            before.target_names,
            _values(before),
            _values(force(task, changed, before.ids)),
        ),
        after=EditedOutput(
            after.text,
            after.target_names,
            _values(force(task, source, after.ids)),
            _values(after),
        ),
    )


def replace_source_word(
    task: Task[Any], source: str, *, position: int, word: str, search: SearchConfig | None = None
) -> WhatIf:
    """Replace a word of the source and predict again.

    Args:
        task: As of `change_source`.
        source: The raw source, a text.
        position: Index of the word, from 0; words are separated by whitespace.
        word: Text that replaces it; if empty, the word is deleted.
        search: The search settings; those of the recipe if not given.
    """
    words = list(_WORD.finditer(source))
    _check_position("position", position, len(words), noun="words of the source")
    start, end = words[position].span()
    changed = source[:start] + word + source[end:]
    if not word:
        changed = " ".join(changed.split())
    return change_source(task, source, changed=changed, search=search)


def force_word(
    task: Task[Any], source: str, *, position: int, word: str, search: SearchConfig | None = None
) -> WhatIf:
    """Force a word of the target: search continues after the words before it and this word.

    Args:
        task: A run of a model that generates text.
        source: The raw source.
        position: Index of the word in the prediction, from 0; words are separated by whitespace.
            It may be one beyond the last word.
        word: The word that replaces it.
        search: The search settings; those of the recipe if not given.
    """
    generator = _generator(task)
    before = predict(generator, source, search)
    text = force(task, source, before).text
    words = list(_WORD.finditer(text))
    _check_position("position", position, len(words) + 1, noun="words of the prediction, plus one")
    start = words[position].start() if position < len(words) else len(text)
    kept = text[:start]
    if position == len(words) and words:
        kept += " "
    prefix = generator.output_tokenizer.encode(kept + word)
    return _force(generator, source, before, prefix=prefix, search=search)


def force_token(
    task: Task[Any], source: str, *, position: int, token: str, search: SearchConfig | None = None
) -> WhatIf:
    """Force a token of the target: search continues after the tokens before it and this token.

    Args:
        task: A run of a model that generates text.
        source: The raw source.
        position: Index of the token in the prediction, from 0.
        token: A token of the vocabulary in its printable form, such as one of the alternatives.
        search: The search settings; those of the recipe if not given.
    """
    generator = _generator(task)
    before = predict(generator, source, search)
    _check_position("position", position, len(before), noun="tokens of the prediction")
    forced = _find_token(generator.output_tokenizer, token)
    return _force(generator, source, before, prefix=[*before[:position], forced], search=search)


def set_attention_weight(
    task: Task[Any],
    source: str,
    *,
    edit: WeightEdit,
    target: str | None = None,
    search: SearchConfig | None = None,
) -> WhatIf:
    """Set an attention weight by hand; the context of the step is computed from the edited weights.

    The tokens before the edited step are kept. From this step on, the new output is found by greedy
    search, and so is the output before the edit.

    Args:
        task: A run of an encoder–decoder with attention, or of a decoder-only model with a source.
        source: The raw source.
        edit: Positions of the target and the source, and the weight.
        target: A target in place of the prediction.
        search: The search settings; those of the recipe if not given.
    """
    if not isinstance(task, Predictor):
        raise ConfigError(
            "Attention weights can be set in models with a source and a target, but the task of "
            f"this run is '{task.recipe.task}'."
        )
    config = (search or task.search).greedy()
    attention_layers(task.model.decoder)
    before = force(task, source, target, search=config)
    _check_position(
        "target_position", edit.target_position, before.num_outputs, noun="tokens of the output"
    )
    num_source = _num_positions(task, source)
    _check_position("source_position", edit.source_position, num_source, noun="source positions")

    def editing() -> AbstractContextManager[None]:
        return edit_weights(task.model.decoder, edit, num_source=num_source)

    with editing():
        before_after = _values(before)
    prefix = before.ids[: edit.target_position]
    with editing():
        ids = predict(task, source, config, prefix=prefix)
    after = force(task, source, ids)
    with editing():
        after_after = _values(after)
    return WhatIf(
        "attention",
        source,
        source,
        before=EditedOutput(before.text, before.target_names, _values(before), before_after),
        after=EditedOutput(after.text, after.target_names, _values(after), after_after),
    )


def _force(
    task: Predictor | LanguageModelingTask,
    source: str,
    ids: Sequence[int],
    *,
    prefix: Sequence[int],
    search: SearchConfig | None,
) -> WhatIf:
    """Return the outputs before and after the first tokens of the target are given."""
    after = predict(task, source, search, prefix=prefix)
    outputs = []
    for forced in (force(task, source, ids), force(task, source, after)):
        # Given tokens do not change the model: each token is as probable as before.
        values = _values(forced)
        outputs.append(EditedOutput(forced.text, forced.target_names, values, values))
    return WhatIf("target", source, source, *outputs)


def _generator(task: Task[Any]) -> Predictor | LanguageModelingTask:
    if isinstance(task, Predictor | LanguageModelingTask):
        return task
    raise ConfigError(
        "A word can be forced in models that generate texts, but the task of this run is "
        f"'{task.recipe.task}'."
    )


def _values(forced: ForcedPass) -> tuple[float, ...]:
    return tuple(forced.log_probs().tolist())


def _num_positions(task: Predictor, source: str) -> int:
    """Return the number of positions that the decoder attends to."""
    (batch,) = task.batches([Example(task.parse_source(source))])
    with torch.inference_mode():
        return task.encode_batch(batch).states.shape[1]


def _find_token(tokenizer: Tokenizer, token: str) -> int:
    """Return the id of a token by its printable form."""
    for index in range(tokenizer.vocab_size):
        if tokenizer.token(index) == token:
            return index
    raise ConfigError(
        f"`token` must be in the vocabulary of the target, but '{token}' is not. "
        "Take one of the alternatives, or force a word."
    )


def _check_position(name: str, position: int, num: int, *, noun: str) -> None:
    if not 0 <= position < num:
        raise ConfigError(
            f"`{name}` must be from 0 to {num - 1}, since there are {num} {noun}, but is "
            f"{position}."
        )
