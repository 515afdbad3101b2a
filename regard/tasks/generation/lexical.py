"""Lexical control of predictions: glossaries, kept parts, forbidden words, unknown words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from regard.core.errors import ConfigError
from regard.core.logging import logger
from regard.data.text.field import Text, as_text
from regard.search.lexical.constraints import LexicalConstraints, LexicalScorer, Phrase
from regard.search.lexical.dynamic_beam import check_required_search
from regard.search.scorer import Scorer
from regard.search.settings import SearchConfig
from regard.tasks.generation.phrases import PhraseEncoder
from regard.tasks.generation.term_matching import (
    Glossary,
    compile_patterns,
    count_phrase,
    find_matches,
)
from regard.tasks.generation.unknown_words import check_attention, replace_unknown
from regard.tasks.prediction import PhraseResult, Prediction

if TYPE_CHECKING:
    from regard.tasks.generation.task import Predictor

PredictSources = Callable[[list[Text], list[LexicalConstraints]], list[list[Prediction]]]
"""Sources with their constraints → predictions."""


@dataclass(frozen=True, kw_only=True)
class LexicalOptions:
    """Words that predictions must contain, and words that they must not contain."""

    glossary: Glossary | Mapping[str, str] | None = None
    """Terms with their translations. If a term occurs in a source, the target contains its
    translation."""
    keep: tuple[str, ...] = ()
    """Parts of a source that the target contains unchanged: `url`, `email`, `number`,
    `placeholder`, or regular expressions."""
    require: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Phrases that the target of a source must contain, by source."""
    forbid: tuple[str, ...] = ()
    """Words and phrases that no target contains."""
    replace_unknown: bool = False
    """Whether unknown tokens are replaced by the source word with the largest attention weight, or
    by its translation in the glossary."""


@dataclass(frozen=True, slots=True)
class _Requirement:
    """Phrase that the target of a source must contain."""

    text: str
    kind: str
    source: str | None
    count: int


class LexicalControl:
    """Lexical control of the predictions of a run.

    Args:
        task: The run.
        options: The options; they are checked.
    """

    def __init__(self, task: "Predictor", options: LexicalOptions) -> None:
        self.task = task
        self.options = options
        self.encoder = PhraseEncoder(task.target.tokenizer)
        terms = options.glossary
        self.glossary = Glossary(terms) if isinstance(terms, Mapping) else terms
        self._patterns = compile_patterns(options.keep)
        self._required = cache(self.encoder.required)
        self._check_sources()
        self.forbidden = self._check_forbidden()
        self._check_required()

    def _check_sources(self) -> None:
        """Raise if the run has no text sources, or no attention, and an option needs them."""
        for name in ("glossary", "keep", "replace_unknown"):
            if getattr(self.options, name) and not self.task.reads_text:
                raise ConfigError(
                    f"`{name}` is for runs with text sources, but the sources of this run are not. "
                    "Leave it out."
                )
        if self.options.replace_unknown:
            check_attention(self.task)

    def _check_forbidden(self) -> LexicalConstraints:
        forbidden = []
        for text in self.options.forbid:
            if not text.strip():
                raise ConfigError("`forbid` must be a word or phrase, but is empty.")
            phrase = self.encoder.forbidden(text)
            if phrase is None:
                logger.warning(
                    "`forbid` is '%s', but has no effect: the target vocabulary cannot spell it.",
                    text,
                )
            else:
                forbidden.append(phrase)
        return LexicalConstraints(forbidden=tuple(forbidden))

    def _check_required(self) -> None:
        """Raise if phrases have unknown tokens, unless these are replaced, or are forbidden."""
        required = [(text, "require") for group in self.options.require.values() for text in group]
        for text, _ in required:
            if not text.strip():
                raise ConfigError("`require` must have words or phrases, but one is empty.")
        if self.glossary is not None and not self.options.replace_unknown:
            required += [(text, "glossary") for text in self.glossary.terms.values()]
        tokenizer = self.task.target.tokenizer
        for (text, name), ids in zip(
            required, tokenizer.encode_batch([text for text, _ in required]), strict=True
        ):
            if tokenizer.unk in ids:
                raise ConfigError(
                    f"`{name}` must have targets of tokens of the target vocabulary, but '{text}' "
                    f"is tokenised as '{tokenizer.decode(ids)}'. Leave it out."
                )
            self._check_allowed(text, f"`{name}`")

    def _check_allowed(self, text: str, subject: str) -> None:
        """Raise if a text contains a forbidden phrase."""
        normalize = self.task.target.tokenizer.normalize
        for forbidden in self.options.forbid:
            if count_phrase(normalize(text), normalize(forbidden)):
                raise ConfigError(
                    f"{subject} must not contain forbidden phrases, but '{text}' contains "
                    f"'{forbidden}' (`forbid`). Leave one of them out."
                )

    def check_search(self, config: SearchConfig) -> None:
        """Raise if phrases may be required, and the search for them lacks a setting."""
        if self.glossary is not None or self._patterns or any(self.options.require.values()):
            check_required_search(config)

    def check_prefix(self, prefix: str) -> None:
        """Raise if the beginning of all targets contains a forbidden phrase."""
        self._check_allowed(prefix, "`prefix`")

    def predict(self, predict: PredictSources, sources: list[Text]) -> list[list[Prediction]]:
        """Predict for sources, in batches with similar numbers of required tokens.

        Args:
            predict: Predicts for sources with constraints.
            sources: The sources.
        """
        found = [self._find(as_text(source)) for source in sources]
        constraints = self._encode(found)
        # All sentences of a batch have as many beams as the one with the most required tokens.
        groups: dict[int, list[int]] = {}
        for row, one in enumerate(constraints):
            groups.setdefault(one.num_tokens.bit_length(), []).append(row)
        results: dict[int, list[Prediction]] = {}
        for _, rows in sorted(groups.items()):
            given = [sources[row] for row in rows], [constraints[row] for row in rows]
            results.update(zip(rows, predict(*given), strict=True))
        predictions = [results[row] for row in range(len(sources))]
        if self.options.replace_unknown:
            predictions = replace_unknown(self.task, sources, predictions, glossary=self.glossary)
        return [
            [replace(one, phrases=self._measure(one.text, group)) for one in best]
            for best, group in zip(predictions, found, strict=True)
        ]

    def _find(self, source: str) -> list[_Requirement]:
        """Return the phrases that the target of a source must contain.

        A kept part must occur in the target as often as in the source; other phrases once.
        """
        found: dict[tuple[str, str], _Requirement] = {}
        for text in self.options.require.get(source, ()):
            found["require", text] = _Requirement(text, "require", None, 1)
        if self.glossary is None and not self._patterns:
            return [*found.values()]
        for match in find_matches(source, self.glossary, self._patterns):
            kind = "keep" if match.is_kept else "glossary"
            key = (kind, match.target)
            count = found[key].count + 1 if match.is_kept and key in found else 1
            found[key] = _Requirement(match.target, kind, match.source, count)
        return [*found.values()]

    def _encode(self, found: Sequence[Sequence[_Requirement]]) -> list[LexicalConstraints]:
        """Return the constraints of each source; log the kept parts that cannot be spelled."""
        constraints, missing = [], []
        for number, group in enumerate(found, start=1):
            phrases = []
            for one in group:
                phrase = self._spell(one)
                if phrase is not None:
                    self._check_allowed(one.text, f"`{one.kind}`")
                    phrases.append(phrase)
                elif one.kind == "keep":
                    missing.append((one.text, number))
            constraints.append(replace(self.forbidden, required=tuple(phrases)))
        if missing:
            logger.warning(
                "%s parts of sources cannot be kept, since the target vocabulary cannot spell them "
                "(first: '%s', in number %s).",
                f"{len(missing):,}",
                missing[0][0],
                f"{missing[0][1]:,}",
            )
        return constraints

    def _spell(self, one: _Requirement) -> Phrase | None:
        """Return a phrase for search; None if the vocabulary cannot spell it."""
        phrase = self._required(one.text, count=one.count)
        if phrase is None or one.kind != "keep":
            return phrase
        tokenizer = self.task.target.tokenizer
        is_verbatim = tokenizer.decode(tokenizer.encode(one.text)).strip() == one.text
        return phrase if is_verbatim else None

    def _measure(self, text: str, found: Sequence[_Requirement]) -> tuple[PhraseResult, ...]:
        """Return which constraints a prediction satisfies."""
        normalize = self.task.target.tokenizer.normalize
        required = [
            PhraseResult(
                one.text, one.kind, one.source, count_phrase(text, normalize(one.text)) >= one.count
            )
            for one in found
        ]
        forbidden = [
            PhraseResult(one, "forbid", None, not count_phrase(text, normalize(one)))
            for one in self.options.forbid
        ]
        return (*required, *forbidden)


def with_constraints(
    scorer: Scorer, constraints: Sequence[LexicalConstraints], control: LexicalControl | None
) -> Scorer:
    """Return a scorer with lexical constraints, or the scorer itself if there are none.

    Args:
        scorer: The scorer.
        constraints: The constraints of each sentence.
        control: Lexical control of the run, which encoded the constraints.
    """
    if control is None or not any(one.required or one.forbidden for one in constraints):
        return scorer
    return LexicalScorer(scorer, constraints, control.encoder.vocabulary)
