"""Reading of tokenizer files, which strangers may have written, in the library's JSON format."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tokenizers as library
from tokenizers import models

from regard.core.errors import CheckpointError
from regard.core.records import read_text

MAX_BYTES = 256 * 2**20
"""Maximum size of a tokenizer file, in bytes; that of a million tokens is smaller."""

MAX_STEPS = 100
"""Maximum number of steps of a normalizer, a pre-tokenizer or a decoder."""

MAX_GROWTH = 64
"""Maximum factor by which a normalizer or a decoder may lengthen a text."""

# Letters, a digit, marks, spaces of two kinds, other scripts, a control and a private character.
_PROBE = "a Bc 1.\u00a0é 中 \u0001\t\ue000 <eos> ▁"


def read_tokenizer(path: Path) -> library.Tokenizer:
    """Read a tokenizer; raise `CheckpointError` if it is damaged or could exhaust the memory.

    Truncation, padding, dropout and templates of special tokens are removed: fields do that.
    """
    text = read_text(path, max_bytes=MAX_BYTES)
    with library_errors(path):
        trained = library.Tokenizer.from_str(text)
        if fault := _fault(trained):
            raise CheckpointError(f"{path} is not a tokenizer: {fault}. It is damaged.")
        trained.no_truncation()
        trained.no_padding()
        trained.post_processor = None
        if isinstance(trained.model, models.BPE):
            trained.model.dropout = None
        try_out(trained)
    return trained


@contextmanager
def library_errors(path: Path) -> Iterator[None]:
    """Turn errors of the library in the block into `CheckpointError`; it raises no specific one.

    Args:
        path: File or folder of the tokenizer, for the message.
    """
    try:
        yield
    except (CheckpointError, KeyboardInterrupt, SystemExit):
        raise
    # If the library's own code is at fault, the exception is not even an `Exception`.
    except BaseException as error:
        fault = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise CheckpointError(f"{path} is not a tokenizer: {fault}. It is damaged.") from None


def try_out(trained: library.Tokenizer) -> None:
    """Encode and decode a text, so that a tokenizer that cannot fails at once."""
    ids = trained.encode(_PROBE, add_special_tokens=False).ids
    tokens = [str(trained.id_to_token(index)) for index in ids]
    assert trained.decoder is not None
    for some in (tokens, tokens[:1], []):
        trained.decoder.decode(some)


def _fault(trained: library.Tokenizer) -> str:
    """Return why a tokenizer may not be used, or an empty string."""
    ids = trained.get_vocab(with_added_tokens=True)
    if sorted(ids.values()) != list(range(len(ids))):
        return f"its {len(ids):,} token ids must be consecutive from 0, but are not"
    if trained.decoder is None:
        return "it must have a `decoder`, which joins tokens, but has none"
    for name in ("normalizer", "pre_tokenizer", "decoder"):
        steps = list(_steps(getattr(trained, name)))
        growth = math.prod(max(1, len(str(step.get("content", "")))) for step in steps)
        growth += sum(len(str(step.get("prepend", ""))) for step in steps)
        if len(steps) > MAX_STEPS or growth > MAX_GROWTH:
            return (
                f"its `{name}` must have at most {MAX_STEPS} steps and lengthen a text at most "
                f"{MAX_GROWTH} times, but has {len(steps):,} steps and lengthens it {growth:,.0f} "
                "times"
            )
        if any(step.get("start", 0) > 1 or step.get("stop", 0) > 1 for step in steps):
            return f"its `{name}` must strip at most one character, but strips more"
    return ""


def _steps(component: Any) -> Iterator[dict[str, Any]]:
    """Yield the settings of a component of a tokenizer, step by step."""
    if component is None:
        return
    waiting = [json.loads(component.__getstate__())]
    while waiting:
        step = waiting.pop()
        inner = [one for value in step.values() if isinstance(value, list) for one in value]
        waiting += [one for one in inner if isinstance(one, dict)]
        yield step
