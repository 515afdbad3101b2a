"""Trees drawn at random.

Every rule here serves one of two ends: that people could say the sentence, and that its English
has one reading only. The second is why, for instance, nothing follows an object with a relative
clause, and why the first of two joined verbs has no modal: English would not show where the
clause or the modal ends, and German must.
"""

from collections.abc import Callable
from random import Random

from regard.data.phrasebook.lexicon import (
    Adjective,
    Determiner,
    FixedPhrase,
    Lexicon,
    Modal,
    Noun,
    Verb,
)
from regard.data.phrasebook.trees import (
    Clause,
    Nominal,
    NounPair,
    NounPhrase,
    PrepositionalPhrase,
    PronounPhrase,
    Question,
    Sentence,
    Statement,
    Subordinate,
    Text,
)

HUMAN = ("person", "profession", "relative", "name")
ANYONE = (*HUMAN, "pronoun")
BARE = {"name", "town", "language", "game"}
COLOURED = {"clothing", "vehicle", "thing"}
MOTION = {"goal", "journey"}

PRONOUNS = ("I", "you", "he", "she", "we", "they")
SPEAKERS = {"I", "we"}
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
NUMBERS = ("two", "three", "four", "five", "six", "ten")

ASKED = ("", "", "", "", "", "", "who", "whom", "what", "where", "when", "why")
BEFORE_MAIN = ("if", "if", "when", "because", "although", "while")
AFTER_MAIN = ("because", "because", "although", "when", "if", "before", "while")
WITHOUT_MODAL = {"if", "when", "before", "while"}
WITHOUT_NEGATION = {"before", "while"}

VERB_POOLS: dict[str, Callable[[Verb], bool]] = {
    "any": lambda verb: True,
    "what": lambda verb: verb.object_case == "accusative" and not set(verb.object) <= set(ANYONE),
    "where": lambda verb: verb.is_copula or verb.place != "",
    "when": lambda verb: not verb.is_stative,
}
"""Which verbs a question word can be asked about."""


class Grammar:
    """Draws sentences as trees."""

    def __init__(self, lexicon: Lexicon, random: Random) -> None:
        self._lexicon = lexicon
        self._random = random
        self._pools: dict[tuple[str, str, bool], list[Verb]] = {}

    def draw(self) -> Sentence:
        """Draw a sentence: most are short, some are long, a few are very long."""
        is_past = self._chance(0.35)
        lot = self._random.random()
        if lot < 0.16:
            return self._question(is_past)
        if lot < 0.6:
            return Text((Statement(self._main(is_past)),))
        if lot < 0.82:
            return Text((self._statement(is_past),))
        return self._text(is_past)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    # Sentences

    def _text(self, is_past: bool) -> Text:
        statements = [self._statement(is_past)]
        connectives = []
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 2, 3, 4))):
            connective = self._random.choice(("and", "and", "but", "so"))
            connectives.append(connective)
            # "so" takes the first place of its clause in German.
            statements.append(self._statement(is_past, is_first_free=connective != "so"))
        return Text(tuple(statements), tuple(connectives))

    def _statement(self, is_past: bool, *, is_first_free: bool = True) -> Statement:
        lot = self._random.random()
        if lot < 0.3 and is_first_free:
            before = self._adverbial(BEFORE_MAIN, is_past)
            return Statement(self._main(is_past, is_first_free=False), before=before)
        clause = self._main(is_past, is_first_free=is_first_free)
        if clause.verb.place in MOTION and not clause.is_negated and lot < 0.6:
            return Statement(clause, after=self._infinitive("in_order_to"))
        if self._can_go_on(clause) and lot < 0.5:
            return Statement(clause, also=self._also(clause, is_past))
        if lot < 0.85:
            return Statement(clause, after=self._adverbial(AFTER_MAIN, is_past))
        return Statement(clause)

    def _can_go_on(self, clause: Clause) -> bool:
        return not (
            clause.modal
            or clause.is_negated
            or clause.complement
            or clause.verb.subject == ("weather",)
            or isinstance(clause.subject, NounPair)
            or (isinstance(clause.object, NounPhrase) and clause.object.relative)
        )

    def _also(self, clause: Clause, is_past: bool) -> Clause:
        kind = clause.subject.noun.kind if isinstance(clause.subject, NounPhrase) else "pronoun"
        verb = self._verb("subject", is_past, kind)
        also = self._clause(verb, clause.subject, is_past=is_past, is_small=True)
        also.subject = None
        return also

    def _question(self, is_past: bool) -> Question:
        asks = self._random.choice(ASKED)
        if asks == "who":
            verb = self._verb("subject", is_past, "person")
        elif asks == "whom":
            verb = self._verb("object", is_past, "person")
        else:
            verb = self._verb(asks if asks in VERB_POOLS else "any", is_past)
        subject = None if asks == "who" else self._subject(verb, is_past)
        clause = self._clause(
            verb,
            subject,
            is_past=is_past,
            has_negation=False,
            is_small=asks != "",
            has_object=asks not in {"whom", "what"},
        )
        if asks == "where":
            clause.place = clause.predicate = None
        elif asks == "when":
            clause.time = clause.frequency = None
        return Question(clause, asks)

    # Clauses

    def _main(self, is_past: bool, *, is_first_free: bool = True) -> Clause:
        if self._chance(0.14):
            return self._report(is_past)
        clause = self._full_clause(is_past)
        clause.has_time_first = clause.time is not None and is_first_free and self._chance(0.45)
        return clause

    def _full_clause(
        self, is_past: bool, *, has_modal: bool = True, has_negation: bool = True
    ) -> Clause:
        verb = self._verb("any", is_past)
        return self._clause(
            verb,
            self._subject(verb, is_past),
            is_past=is_past,
            has_modal=has_modal,
            has_negation=has_negation,
        )

    def _report(self, is_past: bool) -> Clause:
        verb = self._verb("complement", is_past)
        subject = self._nominal(ANYONE)
        clause = Clause(verb, subject.person, subject, is_past=is_past)
        name = self._random.choice(verb.complements)
        clause.is_negated = self._chance(0.15)
        clause.complement = self._complement(name, is_past)
        return clause

    def _complement(self, name: str, is_past: bool) -> Subordinate:
        if name == "to":
            return self._infinitive(name)
        is_past = is_past or self._chance(0.25)
        if name == "where":
            verb = self._verb(name, is_past)
            clause = self._clause(
                verb, self._subject(verb, is_past), is_past=is_past, is_small=True
            )
            clause.place = clause.predicate = None
            return Subordinate(name, clause)
        conjunction = name if name == "why" else self._lexicon.conjunctions[name]
        return Subordinate(conjunction, self._full_clause(is_past))

    def _adverbial(self, names: tuple[str, ...], is_past: bool) -> Subordinate:
        name = self._random.choice(names)
        if is_past and name == "if":
            name = "because"
        clause = self._full_clause(
            is_past,
            has_modal=name not in WITHOUT_MODAL,
            has_negation=name not in WITHOUT_NEGATION,
        )
        return Subordinate(self._lexicon.conjunctions[name], clause)

    def _infinitive(self, name: str) -> Subordinate:
        verb = self._verb("subject", False, "pronoun")
        clause = self._clause(
            verb, None, is_past=False, has_modal=False, has_negation=False, is_small=True
        )
        clause.frequency = None
        return Subordinate(self._lexicon.conjunctions[name], clause)

    def _relative(self, noun: Noun, is_plural: bool, is_past: bool) -> Clause | None:
        doing = self._verbs("subject", is_past, noun.kind)
        done = self._verbs("object", is_past, noun.kind)
        if not doing and not done:
            return None
        is_subject = bool(doing) and (not done or self._chance(0.5))
        clause = self._clause(
            self._random.choice(doing if is_subject else done),
            NounPhrase(noun, is_plural=is_plural) if is_subject else self._nominal(ANYONE),
            is_past=is_past,
            is_small=True,
            has_object=is_subject,
        )
        if is_subject:
            clause.subject = None
        # Time at its end could belong to the clause around it.
        clause.time = None
        return clause

    def _clause(
        self,
        verb: Verb,
        subject: Nominal | None,
        *,
        is_past: bool,
        has_modal: bool = True,
        has_negation: bool = True,
        is_small: bool = False,
        has_object: bool = True,
    ) -> Clause:
        """Draw all that goes with a verb; a small clause has no clauses inside."""
        clause = Clause(verb, subject.person if subject else "he", subject, is_past=is_past)
        clause.is_negated = has_negation and self._chance(0.12)
        if has_modal and self._chance(0.25):
            clause.modal = self._modal(verb, is_past)
        if verb.is_copula:
            self._fill_copula(clause)
            return clause
        self._fill_objects(clause, is_small=is_small, has_object=has_object)
        if not (isinstance(clause.object, NounPhrase) and clause.object.relative):
            self._fill_circumstances(clause)
        return clause

    def _fill_copula(self, clause: Clause) -> None:
        subject = clause.subject
        lot = self._random.random()
        if lot < 0.2 and _can_be_profession(subject):
            is_plural = clause.person in {"we", "they"}
            noun = self._random.choice(self._lexicon.nouns["profession"])
            article = None if is_plural else self._lexicon.determiners["a"]
            adjectives = (self._adjective("profession"),) if self._chance(0.35) else ()
            clause.predicate = NounPhrase(noun, article, is_plural, adjectives)
        elif lot < 0.4 and _kind(subject) in {*ANYONE, "animal"}:
            clause.place = self._place("rest")
        else:
            clause.predicate = self._predicate_adjective(subject)
            if not clause.is_negated and self._chance(0.15):
                clause.frequency = self._random.choice(self._lexicon.phrases["frequency"])

    def _predicate_adjective(self, subject: Nominal | None) -> Adjective:
        kind = _kind(subject)
        adjective = self._adjective("person" if kind in ANYONE else kind)
        if isinstance(subject, NounPhrase) and adjective in subject.adjectives:
            return self._predicate_adjective(subject)
        return adjective

    def _fill_objects(self, clause: Clause, *, is_small: bool, has_object: bool) -> None:
        verb, subject = clause.verb, clause.subject
        if verb.has_recipient:
            clause.recipient = self._nominal(ANYONE, beside=subject, is_plain=True)
        if verb.object and has_object:
            clause.object = self._nominal(
                verb.object,
                beside=subject,
                is_plain=clause.is_negated or _says_her(clause.recipient),
                relative_past=None if is_small or clause.is_negated else clause.is_past,
            )
        if verb.preposition:
            nominal = self._nominal(verb.about, beside=subject, is_plain=True)
            clause.about = PrepositionalPhrase(verb.preposition, nominal, is_goal=True)

    def _fill_circumstances(self, clause: Clause) -> None:
        verb = clause.verb
        if verb.place and (verb.place != "rest" or verb.needs_place or self._chance(0.3)):
            clause.place = self._place(verb.place)
        if verb.manner and self._chance(0.2):
            clause.manner = self._manner(self._random.choice(verb.manner), clause.subject)
        if verb.is_stative:
            return
        if self._chance(0.4):
            clause.time = self._time(clause.is_past)
        elif not clause.is_negated and self._chance(0.12):
            clause.frequency = self._random.choice(self._lexicon.phrases["frequency"])

    def _place(self, way: str) -> PrepositionalPhrase | FixedPhrase:
        if way in {"surface", "surface_rest"}:
            noun = self._random.choice(self._lexicon.nouns["furniture"])
            preposition = self._random.choice(self._lexicon.surfaces)
            phrase = self._noun_phrase(noun, is_plain=True)
            return PrepositionalPhrase(preposition, phrase, is_goal=way == "surface")
        if way in self._lexicon.phrases and self._chance(0.3):
            return self._random.choice(self._lexicon.phrases[way])
        if way == "rest":
            noun = self._random.choice(self._nouns(("place", "room", "sight", "town")))
            assert noun.at is not None
            return PrepositionalPhrase(noun.at, self._place_phrase(noun))
        kinds = ("town",) if way == "journey" else ("place", "sight")
        noun = self._random.choice(self._nouns(kinds))
        assert noun.to is not None
        return PrepositionalPhrase(noun.to, self._place_phrase(noun), is_goal=True)

    def _place_phrase(self, noun: Noun) -> NounPhrase:
        if noun.kind in BARE:
            return NounPhrase(noun)
        name = self._random.choice(("the", "the", "the", "the", "the", "a", "this"))
        adjectives = (self._adjective(noun.kind),) if self._chance(0.25) else ()
        return NounPhrase(noun, self._lexicon.determiners[name], adjectives=adjectives)

    def _manner(self, name: str, subject: Nominal | None) -> PrepositionalPhrase | FixedPhrase:
        if name == "by":
            return self._random.choice(self._lexicon.phrases["by"])
        nominal = self._nominal(ANYONE, beside=subject, is_plain=True)
        return PrepositionalPhrase(self._lexicon.prepositions[name], nominal)

    def _time(self, is_past: bool) -> FixedPhrase:
        phrases = self._lexicon.phrases
        own = "past_time" if is_past else "present_time"
        return self._random.choice(phrases[own if self._chance(0.5) else "time"])

    def _modal(self, verb: Verb, is_past: bool) -> Modal | None:
        modals = self._lexicon.modals
        if "pronoun" not in verb.subject:
            return None if is_past else modals["will"]
        names = [name for name, modal in modals.items() if modal.english_past or not is_past]
        return modals[self._random.choice(names)]

    # Noun phrases

    def _subject(self, verb: Verb, is_past: bool) -> Nominal:
        if verb.subject == ("weather",):
            return PronounPhrase(self._lexicon.pronouns["it"])
        return self._nominal(verb.subject, relative_past=is_past)

    def _nominal(
        self,
        kinds: tuple[str, ...],
        *,
        beside: Nominal | None = None,
        is_plain: bool = False,
        relative_past: bool | None = None,
    ) -> Nominal:
        """Draw a noun phrase or a pronoun.

        Args:
            kinds: The kinds of nouns to draw from.
            beside: Who takes part already and should not come in twice.
            is_plain: Leave out numbers, "every" and pairs, which do not go with "not".
            relative_past: The tense of a possible relative clause; None for no such clause.
        """
        if "pronoun" in kinds and self._chance(0.4):
            return self._pronoun(beside)
        nouns = self._nouns(kinds)
        noun = self._random.choice(nouns)
        while len(nouns) > 1 and isinstance(beside, NounPhrase) and noun is beside.noun:
            noun = self._random.choice(nouns)
        if not is_plain and self._chance(0.06):
            other = self._random.choice(nouns)
            if other is not noun:
                return NounPair(
                    self._noun_phrase(noun, is_plain=True), self._noun_phrase(other, is_plain=True)
                )
        return self._noun_phrase(noun, is_plain=is_plain, relative_past=relative_past)

    def _pronoun(self, beside: Nominal | None) -> PronounPhrase:
        name = self._random.choice(PRONOUNS)
        if isinstance(beside, PronounPhrase):
            other = beside.pronoun.name
            while name == other or {name, other} <= SPEAKERS:
                name = self._random.choice(PRONOUNS)
        return PronounPhrase(self._lexicon.pronouns[name])

    def _noun_phrase(
        self, noun: Noun, *, is_plain: bool, relative_past: bool | None = None
    ) -> NounPhrase:
        if noun.kind in BARE:
            return NounPhrase(noun)
        is_plural = noun.english_plural != "" and self._chance(0.25)
        determiner = self._determiner(noun, is_plural, is_plain)
        adjectives: tuple[Adjective, ...] = ()
        if self._chance(0.25):
            adjectives = (self._adjective(noun.kind),)
            if noun.kind in COLOURED and self._chance(0.3):
                adjectives += (self._adjective("colour"),)
        relative = None
        if relative_past is not None and determiner and self._chance(0.12):
            relative = self._relative(noun, is_plural, relative_past)
        return NounPhrase(noun, determiner, is_plural, adjectives, relative)

    def _determiner(self, noun: Noun, is_plural: bool, is_plain: bool) -> Determiner | None:
        determiners = self._lexicon.determiners
        lot = self._random.random()
        if noun.kind == "relative" or lot < 0.15:
            return determiners[self._random.choice(POSSESSIVES)]
        if noun.english_plural == "":
            return None if lot < 0.7 else determiners["the"]
        if lot < 0.5:
            return determiners["the"]
        if lot < 0.58:
            return determiners["this"]
        if not is_plural:
            return determiners["a" if is_plain or lot < 0.96 else "every"]
        if is_plain or lot < 0.7:
            return None
        return determiners["many" if lot < 0.8 else self._random.choice(NUMBERS)]

    def _adjective(self, kind: str) -> Adjective:
        return self._random.choice(self._lexicon.adjectives[kind])

    def _nouns(self, kinds: tuple[str, ...]) -> list[Noun]:
        return self._lexicon.nouns_of(kinds)

    def _verb(self, pool: str, is_past: bool, kind: str = "") -> Verb:
        return self._random.choice(self._verbs(pool, is_past, kind))

    def _verbs(self, pool: str, is_past: bool, kind: str = "") -> list[Verb]:
        """All verbs that answer a question word, or have subjects or objects of a kind."""
        key = pool, kind, is_past
        if key not in self._pools:
            self._pools[key] = [
                verb
                for verb in self._lexicon.verbs
                if _belongs(verb, pool, kind) and (verb.english_past or not is_past)
                # "To be" is one verb of many here, but not in life.
                for _ in range(6 if verb.is_copula else 1)
            ]
        return self._pools[key]


def _belongs(verb: Verb, pool: str, kind: str) -> bool:
    if pool == "complement" or verb.complements:
        return pool == "complement" and bool(verb.complements)
    if pool in {"subject", "object"}:
        return kind in (verb.subject if pool == "subject" else verb.object)
    return VERB_POOLS[pool](verb)


def _kind(nominal: Nominal | None) -> str:
    phrase = nominal.first if isinstance(nominal, NounPair) else nominal
    return phrase.noun.kind if isinstance(phrase, NounPhrase) else "pronoun"


def _can_be_profession(subject: Nominal | None) -> bool:
    """Whether the masculine noun is right for the subject."""
    if isinstance(subject, PronounPhrase):
        return subject.pronoun.name != "she"
    if not isinstance(subject, NounPhrase):
        return False
    noun = subject.noun
    return noun.kind in {"person", "relative", "name"} and noun.gender == "masculine"


def _says_her(nominal: Nominal | None) -> bool:
    """Whether a noun without article after it would read as hers: "I give her books"."""
    return isinstance(nominal, PronounPhrase) and nominal.pronoun.name == "she"
