"""Random clauses and sentences.

The rules make sentences natural and their English unambiguous. For example, nothing follows an
object with a relative clause, and the first of two coordinated verbs has no modal: English does
not mark the end of the clause or of the modal, but German must.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from regard.data.datasets.synthetic.phrasebook import trees
from regard.data.datasets.synthetic.phrasebook.lexicon import Lexicon, Modal, Verb
from regard.data.datasets.synthetic.phrasebook.phrases import ANYONE, Phrases, kind_of

QUESTION_WORDS = ("", "", "", "", "", "", "who", "whom", "what", "where", "when", "why")
BEFORE_MAIN = ("if", "if", "when", "because", "although", "while")
AFTER_MAIN = ("because", "because", "although", "when", "if", "before", "while")
CIRCUMSTANTIAL = {"if", "when", "before", "while"}
"""Conjunctions of clauses without adverbials of time and frequency."""

VERB_POOLS: dict[str, Callable[[Verb], bool]] = {
    "any": lambda verb: True,
    "main": lambda verb: verb.subject != ("weather",),
    "deed": lambda verb: "pronoun" in verb.subject and not verb.is_stative,
    "what": lambda verb: verb.object_case == "accusative" and not set(verb.object) <= set(ANYONE),
    "where": lambda verb: verb.is_copula or verb.location != "",
    "when": lambda verb: not verb.is_stative,
}
"""Predicates that select the verbs of a clause, by question word or role of the clause."""


class Grammar(Phrases):
    """Sampler of sentence trees."""

    def __init__(self, lexicon: Lexicon, random: Random) -> None:
        super().__init__(lexicon, random)
        self._pools: dict[tuple[str, str, bool], list[Verb]] = {}

    def sample(self) -> trees.Sentence:
        """Sample a sentence; most are short and few are very long."""
        is_past = self.chance(0.35)
        roll = self.random.random()
        if roll < 0.16:
            return self._question(is_past)
        if roll < 0.58:
            return trees.Text((trees.Statement(self._main(is_past)),))
        if roll < 0.8:
            return trees.Text((self._statement(is_past),))
        return self._text(is_past)

    def _text(self, is_past: bool) -> trees.Text:
        statements = [self._statement(is_past)]
        connectives = []
        for _ in range(self.random.choice((1, 1, 1, 1, 1, 2, 2, 2, 3, 4))):
            connective = self.random.choice(("and", "and", "but", "so"))
            connectives.append(connective)
            # "deshalb" ("so") is in the first position of its clause in German.
            statements.append(self._statement(is_past, is_first_free=connective != "so"))
        return trees.Text(tuple(statements), tuple(connectives))

    def _statement(self, is_past: bool, *, is_first_free: bool = True) -> trees.Statement:
        roll = self.random.random()
        if roll < 0.3 and is_first_free:
            before = self._adverbial(BEFORE_MAIN, is_past)
            return trees.Statement(self._main(is_past, is_first_free=False), before=before)
        clause = self._main(is_past, is_first_free=is_first_free)
        if clause.verb.location in {"goal", "journey"} and not clause.is_negated and roll < 0.6:
            return trees.Statement(clause, after=self._infinitive("in_order_to"))
        if roll < 0.55 and self._can_coordinate(clause):
            verb = self._verb("subject", is_past, kind_of(clause.subject))
            if verb is not clause.verb and not verb.is_copula:
                also = self._clause(
                    verb, clause.subject, is_past=is_past, is_small=True, has_negation=False
                )
                also.subject = None
                return trees.Statement(clause, also=also)
        if roll < 0.85:
            return trees.Statement(clause, after=self._adverbial(AFTER_MAIN, is_past))
        return trees.Statement(clause)

    def _can_coordinate(self, clause: trees.Clause) -> bool:
        return not (
            clause.modal
            or clause.is_negated
            or clause.complement
            or clause.verb.is_copula
            or clause.verb.subject == ("weather",)
            or isinstance(clause.subject, trees.NounPair)
            or _has_relative(clause.object)
        )

    def _question(self, is_past: bool) -> trees.Question:
        asks = self.random.choice(QUESTION_WORDS)
        if asks in {"who", "whom"}:
            verb = self._verb("subject" if asks == "who" else "object", is_past, "person")
        else:
            verb = self._verb(asks if asks in VERB_POOLS else "any", is_past)
        clause = self._clause(
            verb,
            None if asks == "who" else self._subject(verb, is_past),
            is_past=is_past,
            is_small=asks != "",
            has_negation=False,
            has_object=asks not in {"whom", "what"},
        )
        if asks == "where":
            clause.location = clause.predicate = None
        elif asks == "when":
            clause.time = clause.frequency = None
        return trees.Question(clause, asks)

    def _main(self, is_past: bool, *, is_first_free: bool = True) -> trees.Clause:
        if self.chance(0.14):
            return self._report(is_past)
        clause = self._full_clause(is_past, "any" if is_first_free else "main")
        clause.has_time_first = clause.time is not None and is_first_free and self.chance(0.45)
        return clause

    def _report(self, is_past: bool) -> trees.Clause:
        verb = self._verb("complement", is_past)
        subject = self.nominal(ANYONE)
        clause = trees.Clause(verb, subject.person, subject, is_past=is_past)
        clause.is_negated = self.chance(0.15)
        name = self.random.choice(verb.complements)
        if name == "to":
            clause.complement = self._infinitive(name)
        else:
            clause.complement = self._reported(name, is_past or self.chance(0.25))
        return clause

    def _reported(self, name: str, is_past: bool) -> trees.Subordinate:
        if name != "where":
            conjunction = name if name == "why" else self.lexicon.conjunctions[name]
            return trees.Subordinate(conjunction, self._full_clause(is_past))
        verb = self._verb(name, is_past)
        subject = self.nominal(verb.subject, "known")
        clause = self._clause(verb, subject, is_past=is_past, is_small=True, has_negation=False)
        clause.location = clause.predicate = clause.frequency = None
        return trees.Subordinate(name, clause)

    def _adverbial(self, names: tuple[str, ...], is_past: bool) -> trees.Subordinate:
        name = self.random.choice(names)
        if is_past and name == "if":
            name = "because"
        is_plain = name in CIRCUMSTANTIAL
        clause = self._full_clause(is_past, has_modal=not is_plain, has_negation=not is_plain)
        if is_plain:
            clause.time = clause.frequency = None
        return trees.Subordinate(self.lexicon.conjunctions[name], clause)

    def _infinitive(self, name: str) -> trees.Subordinate:
        clause = self._clause(
            self._verb("deed", is_past=False),
            None,
            is_past=False,
            has_modal=False,
            has_negation=False,
            is_small=True,
        )
        clause.frequency = None
        return trees.Subordinate(self.lexicon.conjunctions[name], clause)

    def _relative(self, phrase: trees.NounPhrase, is_past: bool) -> trees.Clause | None:
        as_subject = self._verbs("subject", is_past, phrase.noun.kind)
        as_object = self._verbs("object", is_past, phrase.noun.kind)
        if not as_subject and not as_object:
            return None
        is_subject = bool(as_subject) and (not as_object or self.chance(0.5))
        verb = self.random.choice(as_subject if is_subject else as_object)
        clause = self._clause(
            verb,
            phrase if is_subject else self.nominal(verb.subject, "known"),
            is_past=is_past,
            is_small=True,
            has_object=is_subject,
        )
        if is_subject:
            clause.subject = None
        # Time at its end would be ambiguous: it could belong to the main clause.
        clause.time = None
        return clause

    def _full_clause(
        self,
        is_past: bool,
        pool: str = "any",
        *,
        has_modal: bool = True,
        has_negation: bool = True,
    ) -> trees.Clause:
        verb = self._verb(pool, is_past)
        subject = self._subject(verb, is_past)
        return self._clause(
            verb, subject, is_past=is_past, has_modal=has_modal, has_negation=has_negation
        )

    def _subject(self, verb: Verb, is_past: bool) -> trees.Nominal:
        determiners = "known" if verb.is_copula else "any"
        return self._with_relative(self.nominal(verb.subject, determiners), is_past)

    def _with_relative(self, nominal: trees.Nominal, is_past: bool) -> trees.Nominal:
        if (
            isinstance(nominal, trees.NounPhrase)
            and nominal.determiner
            and nominal.determiner.is_open
            and self.chance(0.15)
        ):
            return replace(nominal, relative=self._relative(nominal, is_past))
        return nominal

    def _clause(
        self,
        verb: Verb,
        subject: trees.Nominal | None,
        *,
        is_past: bool,
        is_small: bool = False,
        has_modal: bool = True,
        has_negation: bool = True,
        has_object: bool = True,
    ) -> trees.Clause:
        """Sample the dependents of a verb; a small clause has no embedded clauses."""
        clause = trees.Clause(verb, subject.person if subject else "he", subject, is_past=is_past)
        clause.is_negated = has_negation and self.chance(0.12)
        if has_modal and self.chance(0.25):
            clause.modal = self._modal(verb, is_past)
        if verb.is_copula:
            self._fill_copula(clause)
            return clause
        self._fill_objects(clause, has_object=has_object)
        if not is_small and not clause.is_negated and clause.object and verb.location != "surface":
            clause.object = self._with_relative(clause.object, is_past)
        if not _has_relative(clause.object):
            self._fill_circumstances(clause)
        return clause

    def _fill_copula(self, clause: trees.Clause) -> None:
        roll = self.random.random()
        if roll < 0.2 and _can_be_profession(clause.subject):
            clause.predicate = self.profession(clause.person in {"we", "they"})
        elif roll < 0.4 and kind_of(clause.subject) in {*ANYONE, "animal"}:
            clause.location = self.location("rest")
        else:
            clause.predicate = self.quality(clause.subject)
            if not clause.is_negated and self.chance(0.15):
                clause.frequency = self.frequency()

    def _fill_objects(self, clause: trees.Clause, *, has_object: bool) -> None:
        verb, subject = clause.verb, clause.subject
        if verb.has_recipient:
            clause.recipient = self.nominal(ANYONE, "known", beside=subject)
        if verb.object and has_object:
            determiners = "plain" if clause.is_negated else "any"
            if _is_her(clause.recipient):
                determiners = "known"
            clause.object = self.nominal(verb.object, determiners, beside=subject)
        if verb.preposition:
            nominal = self.nominal(verb.about, "plain", beside=subject)
            clause.about = trees.PrepositionalPhrase(verb.preposition, nominal, is_goal=True)

    def _fill_circumstances(self, clause: trees.Clause) -> None:
        verb = clause.verb
        if verb.location and (verb.location != "rest" or verb.needs_location or self.chance(0.3)):
            clause.location = self.location(verb.location)
        if verb.manner and self.chance(0.2):
            clause.manner = self.manner(self.random.choice(verb.manner), clause.subject)
        if verb.is_stative:
            return
        if self.chance(0.4):
            clause.time = self.time(clause.is_past)
        elif not clause.is_negated and self.chance(0.12):
            clause.frequency = self.frequency()

    def _modal(self, verb: Verb, is_past: bool) -> Modal | None:
        modals = self.lexicon.modals
        names = tuple(modals)
        if verb.is_copula:
            names = ("will", "should", "would_like", "want")
        elif "pronoun" not in verb.subject or (verb.is_stative and not verb.needs_location):
            names = ("will",)
        names = tuple(name for name in names if modals[name].english_past or not is_past)
        return modals[self.random.choice(names)] if names else None

    def _verb(self, pool: str, is_past: bool, kind: str = "") -> Verb:
        return self.random.choice(self._verbs(pool, is_past, kind))

    def _verbs(self, pool: str, is_past: bool, kind: str) -> list[Verb]:
        key = pool, kind, is_past
        if key not in self._pools:
            self._pools[key] = [
                verb
                for verb in self.lexicon.verbs.values()
                if _belongs(verb, pool, kind) and (verb.english_past or not is_past)
                # "To be" is sampled more often than other verbs, as in natural text.
                for _ in range(6 if verb.is_copula else 1)
            ]
        return self._pools[key]


def _belongs(verb: Verb, pool: str, kind: str) -> bool:
    if pool == "complement" or verb.complements:
        return pool == "complement" and verb.complements != ()
    if pool in {"subject", "object"}:
        return kind in (verb.subject if pool == "subject" else verb.object)
    return VERB_POOLS[pool](verb)


def _has_relative(nominal: trees.Nominal | None) -> bool:
    return isinstance(nominal, trees.NounPhrase) and nominal.relative is not None


def _can_be_profession(subject: trees.Nominal | None) -> bool:
    """Return whether the masculine noun of a profession fits the subject."""
    if isinstance(subject, trees.PronounPhrase):
        return subject.pronoun.name != "she"
    if not isinstance(subject, trees.NounPhrase):
        return False
    return kind_of(subject) in {*ANYONE} - {"profession"} and subject.noun.gender == "masculine"


def _is_her(nominal: trees.Nominal | None) -> bool:
    """Return whether it is "her", which reads as a possessive before a noun without article."""
    return isinstance(nominal, trees.PronounPhrase) and nominal.pronoun.name == "she"
