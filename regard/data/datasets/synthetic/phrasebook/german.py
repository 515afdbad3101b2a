"""German realisation of sentence trees."""

from collections.abc import Mapping
from pathlib import Path

from regard.core.config import read_toml
from regard.data.datasets.synthetic.phrasebook import trees
from regard.data.datasets.synthetic.phrasebook.lexicon import Adjective, FixedPhrase
from regard.data.datasets.synthetic.phrasebook.trees import Marks, Word, fixed_words, head_of

Endings = dict[str, dict[str, str]]


GENDERS = ("masculine", "feminine", "neuter", "plural")
FORMS = read_toml(Path(__file__).with_name("german.toml"))


def _table(rows: Mapping[str, str]) -> Endings:
    """Return the forms by case and gender."""
    return {
        case: {gender: form.strip("-") for gender, form in zip(GENDERS, row.split(), strict=True)}
        for case, row in rows.items()
    }


DETERMINERS = {name: _table(rows) for name, rows in FORMS["determiners"].items()}
ADJECTIVES = {name: _table(rows) for name, rows in FORMS["adjectives"].items()}
RELATIVE_PRONOUNS = _table(FORMS["relative_pronouns"])

PERSON_INDEX = {"I": 0, "you": 1, "he": 2, "we": 3, "they": 3}

COMMA = Word(",")


class GermanWriter:
    """German realisation of one sentence; collects its phenomena in `tags`."""

    def __init__(self) -> None:
        self.tags: set[str] = set()

    def write(self, sentence: trees.Sentence) -> list[Word]:
        """Return the words of a sentence."""
        end = Word("?" if isinstance(sentence, trees.Question) else ".", ((sentence, "end"),))
        if isinstance(sentence, trees.Question):
            words = self._question(sentence)
        else:
            words = self._statement(sentence.statements[0])
            for connective, statement in zip(
                sentence.connectives, sentence.statements[1:], strict=True
            ):
                self.tags.add("coordination")
                words.append(Word(",", ((statement, "join comma"),)))
                joint = Word(FORMS["connectives"][connective], ((statement, "connective"),))
                words += self._statement(statement, joint)
        return _merge_commas([*words, end])

    def _question(self, question: trees.Question) -> list[Word]:
        self.tags.add("question")
        clause = question.clause
        opening = []
        if question.asks:
            opening = [Word(_question_word(question.asks, clause), ((question, "asks"),))]
        return self._verb_first(clause, opening) + self._subordinate(question.after)

    def _statement(self, statement: trees.Statement, connective: Word | None = None) -> list[Word]:
        clause = statement.clause
        words = [connective] if connective else []
        if statement.before:
            opening = self._subordinate(statement.before)[1:]
            opening[-1] = Word(",", ((statement, "comma"),))
            self.tags.add("inversion")
            words += self._verb_first(clause, opening)
        elif connective and connective.text == "deshalb":
            self.tags.add("inversion")
            words = self._verb_first(clause, words)
        else:
            words += self._verb_second(clause)
        if statement.also:
            self.tags.add("coordination")
            joint = Word("und", ((statement, "and"),))
            words += self._verb_first(statement.also, [joint])
        return words + self._subordinate(statement.after)

    def _subordinate(self, subordinate: trees.Subordinate | None) -> list[Word]:
        """Return the words of a dependent clause between commas."""
        if subordinate is None:
            return []
        clause, conjunction = subordinate.clause, subordinate.conjunction
        if isinstance(conjunction, str):
            text = _question_word(conjunction, clause)
        else:
            text = conjunction.german_past if clause.is_past else conjunction.german
        opening = [Word(text, ((subordinate, "conjunction"),))] if text else []
        write = self._infinitive if subordinate.is_infinitive else self._verb_last
        return [COMMA, *write(clause, opening), COMMA]

    def _verb_second(self, clause: trees.Clause) -> list[Word]:
        if clause.has_time_first:
            self.tags.add("inversion")
            return self._verb_first(clause, self._phrase(clause, "time"))
        subject = self._nominal(clause.subject, "nominative")
        finite, bracket = self._verb(clause)
        return [*subject, finite, *self._middle(clause), *bracket, *self._tail(clause)]

    def _verb_first(self, clause: trees.Clause, opening: list[Word]) -> list[Word]:
        finite, bracket = self._verb(clause)
        subject = self._nominal(clause.subject, "nominative")
        middle = self._middle(clause)
        return [*opening, finite, *subject, *middle, *bracket, *self._tail(clause)]

    def _verb_last(self, clause: trees.Clause, opening: list[Word]) -> list[Word]:
        self.tags.add("verb_last")
        finite, bracket = self._verb(clause)
        if bracket and bracket[0].text == clause.verb.prefix:
            finite, bracket = Word(clause.verb.prefix + finite.text, finite.marks), []
        subject = self._nominal(clause.subject, "nominative")
        middle = self._middle(clause)
        return [*opening, *subject, *middle, *bracket, finite, *self._tail(clause)]

    def _infinitive(self, clause: trees.Clause, opening: list[Word]) -> list[Word]:
        self.tags.add("infinitive")
        verb, lexical, to = clause.verb, (clause, "verb"), (clause, "to")
        bracket = [Word("zu", (to,)), Word(verb.infinitive, (lexical,))]
        if verb.prefix:
            self.tags.add("separable")
            bracket = [Word(f"{verb.prefix}zu{verb.infinitive}", (to, lexical))]
        return [*opening, *self._middle(clause), *bracket, *self._tail(clause)]

    def _verb(self, clause: trees.Clause) -> tuple[Word, list[Word]]:
        """Return the finite verb and the words at the end of the clause."""
        verb, modal = clause.verb, clause.modal
        person = PERSON_INDEX[clause.person]
        finite, lexical = (clause, "finite"), (clause, "verb")
        if verb.prefix:
            self.tags.add("separable")
        if modal:
            self.tags.add("modal")
            form = (modal.preterite if clause.is_past else modal.present)[person]
            return Word(form, (finite,)), [Word(verb.prefix + verb.infinitive, (lexical,))]
        if clause.is_past and not verb.preterite:
            self.tags.add("perfect")
            auxiliary = FORMS["perfect"][verb.auxiliary][person]
            return Word(auxiliary, (finite,)), [Word(verb.participle, (lexical,))]
        form = (verb.preterite if clause.is_past else verb.present)[person]
        prefix = [Word(verb.prefix, (lexical,))] if verb.prefix else []
        return Word(form, (finite, lexical)), prefix

    def _middle(self, clause: trees.Clause) -> list[Word]:
        """Return the words between both parts of the verb; definite objects come first."""
        negation: Marks = ((clause, "not"),) if clause.is_negated else ()
        has_kein = _takes_kein(clause.object) or _takes_kein(clause.predicate)
        nicht, kein = ((), negation) if has_kein else (negation, ())
        if negation:
            self.tags.add("negation")
        objects = (clause.object, clause.verb.object_case), (clause.recipient, "dative")
        pronouns = [item for item in objects if isinstance(item[0], trees.PronounPhrase)]
        heads = [(head_of(item[0]), item) for item in reversed(objects)]
        known = [item for head, item in heads if head and head.is_definite]
        others = [item for item in objects if item not in pronouns and item not in known]
        time = [] if clause.has_time_first else self._phrase(clause, "time")
        known_words = [word for item in known for word in self._core(*item)]
        location = self._phrase(clause, "location")
        is_goal = isinstance(clause.location, trees.PrepositionalPhrase) and clause.location.is_goal
        return [
            *(word for item in pronouns for word in self._core(*item)),
            *(known_words + time if nicht else time + known_words),
            *self._phrase(clause, "frequency"),
            *([Word("nicht", nicht)] if nicht else ()),
            *self._phrase(clause, "manner"),
            *(() if is_goal else location),
            *(word for item in others for word in self._core(*item, kein)),
            *self._phrase(clause, "about"),
            *(location if is_goal else ()),
            *self._predicate(clause, kein),
        ]

    def _tail(self, clause: trees.Clause) -> list[Word]:
        """Return the clauses that follow a clause-final verb."""
        words = self._subordinate(clause.complement)
        if isinstance(clause.object, trees.NounPhrase) and clause.object.relative:
            words += self._relative(clause.object)
        return words

    def _relative(self, phrase: trees.NounPhrase) -> list[Word]:
        clause = phrase.relative
        assert clause is not None
        self.tags.add("relative")
        case = clause.verb.object_case if clause.subject else "nominative"
        text = RELATIVE_PRONOUNS[case][_column(phrase)]
        pronoun = Word(text, ((clause, "relative"),))
        return [COMMA, *self._verb_last(clause, [pronoun]), COMMA]

    def _predicate(self, clause: trees.Clause, negation: Marks) -> list[Word]:
        predicate = clause.predicate
        if isinstance(predicate, Adjective):
            return [Word(predicate.german, ((clause, "predicate"),))]
        if predicate is None:
            return []
        if predicate.is_plural or predicate.adjectives or negation:
            return self._core(predicate, "nominative", negation)
        # A bare profession takes no article: "Er ist Lehrer."
        return [Word(predicate.noun.german, ((predicate, "determiner"), (predicate, "noun")))]

    def _phrase(self, clause: trees.Clause, role: str) -> list[Word]:
        phrase: trees.PrepositionalPhrase | FixedPhrase | None = getattr(clause, role)
        if phrase is None:
            return []
        if isinstance(phrase, FixedPhrase):
            return fixed_words(phrase.german, clause, role)
        preposition = phrase.preposition.german
        case = "accusative" if preposition in FORMS["accusative"] else "dative"
        if phrase.is_goal and preposition in FORMS["two_way"]:
            case = "accusative"
        marks = ((phrase, "preposition"),)
        first, *rest = self._nominal(phrase.nominal, case)
        contraction = FORMS["contractions"].get(f"{preposition} {first.text}")
        head = head_of(phrase.nominal)
        if contraction and head and head.determiner and head.determiner.declension == "article":
            return [Word(contraction, marks + first.marks), *rest]
        return [Word(preposition, marks), first, *rest]

    def _nominal(self, nominal: trees.Nominal | None, case: str) -> list[Word]:
        words = self._core(nominal, case)
        if isinstance(nominal, trees.NounPhrase) and nominal.relative:
            words += self._relative(nominal)
        return words

    def _core(self, nominal: trees.Nominal | None, case: str, negation: Marks = ()) -> list[Word]:
        """Return the words of a noun phrase without its relative clause."""
        if nominal is None:
            return []
        if case != "nominative":
            self.tags.add(case)
        if isinstance(nominal, trees.PronounPhrase):
            self.tags.add("pronoun")
            return [Word(nominal.pronoun.german[case], ((nominal, "pronoun"),))]
        if isinstance(nominal, trees.NounPair):
            self.tags.add("coordination")
            joint = Word("und", ((nominal, "and"),))
            return [*self._core(nominal.first, case), joint, *self._core(nominal.second, case)]
        return self._noun_phrase(nominal, case, negation)

    def _noun_phrase(self, phrase: trees.NounPhrase, case: str, negation: Marks) -> list[Word]:
        column = _column(phrase)
        determiner = phrase.determiner
        words: list[Word] = []
        declension = "strong"
        if negation:
            marks = (*negation, (phrase, "determiner"))
            words.append(Word("kein" + DETERMINERS["ein"][case][column], marks))
            declension = "mixed"
        elif determiner:
            text = determiner.german + DETERMINERS[determiner.declension][case][column]
            words.append(Word(text, ((phrase, "determiner"),)))
            declension = determiner.adjectives
            if determiner.declension == "number":
                self.tags.add("number")
        if phrase.adjectives:
            self.tags.add("adjective")
        if phrase.is_plural:
            self.tags.add("plural")
        for adjective in phrase.adjectives:
            text = adjective.german_stem + ADJECTIVES[declension][case][column]
            words.append(Word(text, ((phrase, adjective.english),)))
        return [*words, Word(_noun_form(phrase, case), ((phrase, "noun"),))]


def _column(phrase: trees.NounPhrase) -> str:
    return "plural" if phrase.is_plural else phrase.noun.gender


def _noun_form(phrase: trees.NounPhrase, case: str) -> str:
    noun = phrase.noun
    if not phrase.is_plural:
        return noun.german if case == "nominative" else noun.german_oblique
    if case == "dative" and not noun.german_plural.endswith(("n", "s")):
        return noun.german_plural + "n"
    return noun.german_plural


def _takes_kein(nominal: trees.Nominal | Adjective | None) -> bool:
    return isinstance(nominal, trees.NounPhrase) and not nominal.is_definite


def _question_word(english: str, clause: trees.Clause) -> str:
    if english == "whom":
        return "wem" if clause.verb.object_case == "dative" else "wen"
    if english == "where":
        return "wohin" if clause.verb.location in {"goal", "journey", "surface"} else "wo"
    return str(FORMS["question_words"][english])


def _merge_commas(words: list[Word]) -> list[Word]:
    """Merge consecutive commas, and remove commas before the final punctuation."""
    merged: list[Word] = []
    for word in words:
        if merged and merged[-1].text == "," and word.text in {",", ".", "?"}:
            word = Word(word.text, merged.pop().marks + word.marks)
        merged.append(word)
    return merged
