"""English realisation of sentence trees."""

from regard.data.datasets.synthetic.phrasebook import trees
from regard.data.datasets.synthetic.phrasebook.lexicon import Adjective, FixedPhrase
from regard.data.datasets.synthetic.phrasebook.trees import Word, fixed_words

BE = {"I": "am", "you": "are", "he": "is", "we": "are", "they": "are"}
BE_PAST = {"I": "was", "you": "were", "he": "was", "we": "were", "they": "were"}


def write_english(sentence: trees.Sentence) -> list[Word]:
    """Return the English words of a sentence."""
    if isinstance(sentence, trees.Question):
        return [*_question(sentence), Word("?", ((sentence, "end"),))]
    words = _statement(sentence.statements[0])
    for connective, statement in zip(sentence.connectives, sentence.statements[1:], strict=True):
        words.append(Word(",", ((statement, "join comma"),)))
        words.append(Word(connective, ((statement, "connective"),)))
        words += _statement(statement)
    return [*words, Word(".", ((sentence, "end"),))]


def _question(question: trees.Question) -> list[Word]:
    clause = question.clause
    is_subject_asked = question.asks == "who"
    auxiliary, main = _verb(clause, needs_auxiliary=not is_subject_asked)
    text = "who" if question.asks == "whom" else question.asks
    opening = [Word(text, ((question, "asks"),))] if text else []
    return [
        *opening,
        *auxiliary,
        *_nominal(clause.subject, is_subject=True),
        *_phrase(clause, "frequency"),
        *main,
        *_dependents(clause),
        *_subordinate(question.after),
    ]


def _statement(statement: trees.Statement) -> list[Word]:
    words = _subordinate(statement.before)
    if statement.before:
        words.append(Word(",", ((statement, "comma"),)))
    words += _clause(statement.clause)
    if statement.also:
        words += [Word("and", ((statement, "and"),)), *_clause(statement.also)]
    return words + _subordinate(statement.after)


def _subordinate(subordinate: trees.Subordinate | None) -> list[Word]:
    if subordinate is None:
        return []
    clause, conjunction = subordinate.clause, subordinate.conjunction
    texts = (conjunction,) if isinstance(conjunction, str) else conjunction.english
    words = [Word(text, ((subordinate, "conjunction"),)) for text in texts]
    if not subordinate.is_infinitive:
        return words + _clause(clause)
    return [
        *words,
        Word("to", ((clause, "to"),)),
        *(Word(text, ((clause, "verb"),)) for text in clause.verb.english),
        *_dependents(clause),
    ]


def _clause(clause: trees.Clause) -> list[Word]:
    auxiliary, main = _verb(clause, needs_auxiliary=clause.is_negated)
    if clause.is_negated:
        (word,), negation = auxiliary, (clause, "not")
        auxiliary = [word, Word("not", (negation,))]
        if word.text == "can":
            auxiliary = [Word("cannot", (*word.marks, negation))]
    return [
        *(_phrase(clause, "time") if clause.has_time_first else ()),
        *_nominal(clause.subject, is_subject=True),
        *auxiliary,
        *_phrase(clause, "frequency"),
        *main,
        *_dependents(clause),
    ]


def _dependents(clause: trees.Clause) -> list[Word]:
    location = _phrase(clause, "location")
    is_goal = clause.verb.location in {"goal", "journey", "surface"}
    if isinstance(clause.predicate, Adjective):
        predicate = [Word(clause.predicate.english, ((clause, "predicate"),))]
    else:
        predicate = _nominal(clause.predicate)
    return [
        *_nominal(clause.recipient),
        *_nominal(clause.object),
        *predicate,
        *_phrase(clause, "about"),
        *(location if is_goal else ()),
        *_phrase(clause, "manner"),
        *(() if is_goal else location),
        *(() if clause.has_time_first else _phrase(clause, "time")),
        *_subordinate(clause.complement),
    ]


def _verb(clause: trees.Clause, needs_auxiliary: bool) -> tuple[list[Word], list[Word]]:
    """Return the words before "not" and the words after it."""
    verb, modal = clause.verb, clause.modal
    is_third = clause.person == "he"
    finite, lexical = (clause, "finite"), (clause, "verb")
    do = Word("did" if clause.is_past else "does" if is_third else "do", (finite,))
    base = [Word(text, (lexical,)) for text in verb.english]
    if modal:
        form = modal.english_past if clause.is_past else modal.english[is_third]
        rest = [Word(text, (lexical if text == "to" else finite,)) for text in modal.rest]
        if not modal.needs_do:
            return [Word(form, (finite,))], rest + base
        if needs_auxiliary:
            return [do], [Word(modal.english[0], (finite,)), *rest, *base]
        return [], [Word(form, (finite,)), *rest, *base]
    if verb.is_copula:
        forms = BE_PAST if clause.is_past else BE
        return [Word(forms[clause.person], (finite, lexical))], []
    if needs_auxiliary:
        return [do], base
    form = verb.english[0]
    if clause.is_past:
        form = verb.english_past
    elif is_third:
        form = verb.english_third
    return [], [Word(form, (finite, lexical)), *base[1:]]


def _phrase(clause: trees.Clause, role: str) -> list[Word]:
    phrase: trees.PrepositionalPhrase | FixedPhrase | None = getattr(clause, role)
    if phrase is None:
        return []
    if isinstance(phrase, FixedPhrase):
        return fixed_words(phrase.english, clause, role)
    preposition = ((phrase, "preposition"),)
    words = [Word(text, preposition) for text in phrase.preposition.english]
    return words + _nominal(phrase.nominal)


def _nominal(nominal: trees.Nominal | None, is_subject: bool = False) -> list[Word]:
    if nominal is None:
        return []
    if isinstance(nominal, trees.NounPair):
        joint = Word("and", ((nominal, "and"),))
        return [*_noun_phrase(nominal.first), joint, *_noun_phrase(nominal.second)]
    if isinstance(nominal, trees.PronounPhrase):
        pronoun = nominal.pronoun
        text = pronoun.english if is_subject else pronoun.english_object
        return [Word(text, ((nominal, "pronoun"),))]
    return _noun_phrase(nominal)


def _noun_phrase(phrase: trees.NounPhrase) -> list[Word]:
    noun = phrase.noun
    words = [
        Word(adjective.english, ((phrase, adjective.english),)) for adjective in phrase.adjectives
    ]
    head = noun.english_plural if phrase.is_plural else noun.english
    words.append(Word(head, ((phrase, "noun"),)))
    if determiner := phrase.determiner:
        text = determiner.english_plural if phrase.is_plural else determiner.english
        if text == "a" and words[0].text[0] in "aeiou":
            text = "an"
        words.insert(0, Word(text, ((phrase, "determiner"),)))
    if phrase.relative:
        pronoun = "who" if phrase.is_human else "which"
        words.append(Word(pronoun, ((phrase.relative, "relative"),)))
        words += _clause(phrase.relative)
    return words
