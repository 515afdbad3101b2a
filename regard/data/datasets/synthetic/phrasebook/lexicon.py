"""Lexicon of the phrasebook: words and their forms, read from `lexicon.toml`."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.core.config import read_toml

GENDERS = {"der": "masculine", "die": "feminine", "das": "neuter"}
OPTIONAL = ("object_case", "location", "has_recipient", "needs_location", "is_stative", "is_copula")
"""Optional properties of verbs."""


@dataclass(frozen=True, slots=True)
class Preposition:
    """A preposition in both languages."""

    english: tuple[str, ...]
    german: str


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun; mass nouns and names have no plural."""

    kind: str
    english: str
    english_plural: str
    german: str
    german_plural: str
    german_oblique: str
    """Singular in accusative and dative."""
    gender: str
    at: Preposition | None = None
    """Preposition for being there."""
    to: Preposition | None = None
    """Preposition for going there."""

    @property
    def is_proper(self) -> bool:
        """Whether it is a name, which takes no article."""
        return self.kind in {"name", "town"}


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective; German endings are appended to the stem."""

    english: str
    german: str
    german_stem: str


@dataclass(frozen=True, slots=True)
class Determiner:
    """An article, a possessive, a demonstrative or a number."""

    name: str
    english: str
    english_plural: str
    german: str
    declension: str
    """Declension of the determiner itself."""
    adjectives: str
    """Declension of adjectives after it."""

    @property
    def is_open(self) -> bool:
        """Whether a relative clause may follow the noun."""
        return self.name in {"the", "a", "many"} or self.declension == "number"


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun."""

    name: str
    english: str
    english_object: str
    german: Mapping[str, str]
    """Forms by case."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A full verb: its forms and the dependents that it allows."""

    english: tuple[str, ...]
    """Base form; only its first word is inflected."""
    english_third: str
    english_past: str
    """Empty if the verb is used in the present only."""
    prefix: str
    """Separable prefix; may be empty."""
    infinitive: str
    """Infinitive without the prefix."""
    present: tuple[str, ...]
    """Forms for ich, du, er, wir, without the prefix."""
    preterite: tuple[str, ...]
    """Forms for ich, du, er, wir; empty if the verb uses the perfect for the past."""
    participle: str
    auxiliary: str
    """Auxiliary of the perfect, haben or sein."""
    subject: tuple[str, ...]
    """Kinds of nouns that can be its subject, with groups resolved (also below)."""
    object: tuple[str, ...]
    about: tuple[str, ...]
    """Kinds of nouns after its preposition."""
    preposition: Preposition | None
    manner: tuple[str, ...]
    complements: tuple[str, ...]
    """Names of the conjunctions of its object clauses."""
    object_case: str = "accusative"
    location: str = ""
    has_recipient: bool = False
    needs_location: bool = False
    is_stative: bool = False
    """Whether it describes a state, which has no time and no frequency."""
    is_copula: bool = False


@dataclass(frozen=True, slots=True)
class Modal:
    """A verb that takes an infinitive."""

    english: tuple[str, str]
    """Base form and third person."""
    english_past: str
    rest: tuple[str, ...]
    """English words between the modal and the infinitive."""
    present: tuple[str, ...]
    preterite: tuple[str, ...]
    needs_do: bool


@dataclass(frozen=True, slots=True)
class Conjunction:
    """A subordinating conjunction."""

    name: str
    english: tuple[str, ...]
    german: str
    german_past: str
    """Form before a clause in the past: "when" is "wenn" in the present and "als" in the past."""


@dataclass(frozen=True, slots=True)
class FixedPhrase:
    """A phrase without inflection, as groups of words that are translations of each other."""

    english: tuple[tuple[str, ...], ...]
    german: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Lexicon:
    """All words of the phrasebook."""

    nouns: Mapping[str, Sequence[Noun]]
    adjectives: Mapping[str, Sequence[Adjective]]
    determiners: Mapping[str, Determiner]
    pronouns: Mapping[str, Pronoun]
    verbs: Mapping[str, Verb]
    """By German infinitive, prefix joined."""
    modals: Mapping[str, Modal]
    conjunctions: Mapping[str, Conjunction]
    prepositions: Mapping[str, Preposition]
    surfaces: Sequence[Preposition]
    phrases: Mapping[str, Sequence[FixedPhrase]]


@functools.cache
def load_lexicon() -> Lexicon:
    """Read the lexicon of the package."""
    raw = read_toml(Path(__file__).with_name("lexicon.toml"))
    verbs = [_read_verb(row, raw["groups"]) for row in raw["verbs"]]
    return Lexicon(
        nouns={
            kind: [_read_noun(kind, row) for row in rows] for kind, rows in raw["nouns"].items()
        },
        adjectives={
            kind: [_read_adjective(*row) for row in table["words"]]
            for table in raw["adjectives"]
            for kind in table["kinds"]
        },
        determiners={
            name: Determiner(name, *_forms(row.pop("english")), **row)
            for name, row in raw["determiners"].items()
        },
        pronouns={name: _read_pronoun(name, *row) for name, row in raw["pronouns"].items()},
        verbs={verb.prefix + verb.infinitive: verb for verb in verbs},
        modals={name: _read_modal(row) for name, row in raw["modals"].items()},
        conjunctions={
            name: Conjunction(name, tuple(row[0].split()), row[1], row[-1])
            for name, row in raw["conjunctions"].items()
        },
        prepositions={
            name: _read_preposition(row)
            for name, row in raw["prepositions"].items()
            if name != "surface"
        },
        surfaces=[_read_preposition(row) for row in raw["prepositions"]["surface"]],
        phrases={
            name: [FixedPhrase(_groups(row[0]), _groups(row[1])) for row in rows]
            for name, rows in raw["phrases"].items()
        },
    )


def _forms(text: str) -> list[str]:
    return ["" if form == "-" else form for form in text.split(", ")]


def _groups(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group.split()) for group in text.split("|"))


def _resolve(kinds: Iterable[str], groups: Mapping[str, list[str]]) -> tuple[str, ...]:
    resolved: list[str] = []
    for kind in kinds:
        resolved += _resolve(groups[kind], groups) if kind in groups else [kind]
    return tuple(resolved)


def _read_preposition(text: str) -> Preposition:
    english, german = _forms(text)
    return Preposition(tuple(english.split()), german)


def _read_noun(kind: str, row: list[str]) -> Noun:
    english, english_plural, *_ = [*_forms(row[0]), ""]
    article, singular = _forms(row[1])[0].split()
    plural, oblique, *_ = [*_forms(row[1])[1:], "", ""]
    english_forms, german_forms = (english, english_plural), (singular, plural, oblique or singular)
    prepositions = map(_read_preposition, row[2:])
    return Noun(kind, *english_forms, *german_forms, GENDERS[article], *prepositions)


def _read_adjective(english: str, german: str) -> Adjective:
    forms = _forms(german)
    return Adjective(english, forms[0], forms[-1])


def _read_pronoun(name: str, english: str, german: str) -> Pronoun:
    subject, other = _forms(english)
    cases = zip(("nominative", "accusative", "dative"), _forms(german), strict=True)
    return Pronoun(name, subject, other, dict(cases))


def _read_verb(row: Mapping[str, Any], groups: Mapping[str, list[str]]) -> Verb:
    base, third, past, *_ = [*_forms(row["english"]), ""]
    full_infinitive, er, perfect = _forms(row["german"])
    prefix, _, infinitive = full_infinitive.rpartition("|")
    auxiliary, participle = perfect.split()
    about: Mapping[str, Any] = row.get("about", {})
    return Verb(
        english=tuple(base.split()),
        english_third=third.split()[0],
        english_past=past.split()[0] if past else "",
        prefix=prefix,
        infinitive=infinitive,
        present=tuple(_forms(row["present"])) if "present" in row else _present(infinitive, er),
        preterite=tuple(_forms(row["preterite"])) if "preterite" in row else (),
        participle=participle,
        auxiliary={"hat": "haben", "ist": "sein"}[auxiliary],
        subject=_resolve(row.get("subject", ["anyone"]), groups),
        object=_resolve(row.get("object", []), groups),
        about=_resolve(about.get("kinds", []), groups),
        preposition=_read_preposition(about["preposition"]) if about else None,
        manner=tuple(row.get("manner", [])),
        complements=tuple(row.get("complements", [])),
        **{name: row[name] for name in OPTIONAL if name in row},
    )


def _present(infinitive: str, er: str) -> tuple[str, ...]:
    stem = er.removesuffix("t")
    du = er if stem.endswith(("s", "ß", "z")) else stem + "st"
    return infinitive.removesuffix("n"), du, er, infinitive


def _read_modal(row: Mapping[str, Any]) -> Modal:
    base, third, past, *_ = [*_forms(row["english"]), ""]
    return Modal(
        english=(base, third),
        english_past=past,
        rest=tuple(row.get("rest", "").split()),
        present=tuple(_forms(row["german"])),
        preterite=tuple(_forms(row.get("preterite", ""))) if "preterite" in row else (),
        needs_do=row.get("needs_do", False),
    )
