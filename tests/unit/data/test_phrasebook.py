from random import Random

import pytest

from regard.core.errors import ConfigError
from regard.data.phrasebook import (
    MAX_WORDS,
    TAGS,
    generate,
    part_of,
    split_words,
    splits,
    write_example,
)
from regard.data.phrasebook.english import write_english
from regard.data.phrasebook.german import GermanWriter
from regard.data.phrasebook.grammar import Grammar
from regard.data.phrasebook.lexicon import load_lexicon
from regard.data.phrasebook.trees import (
    Clause,
    NounPair,
    NounPhrase,
    PrepositionalPhrase,
    PronounPhrase,
    Question,
    Statement,
    Subordinate,
    Text,
    write_sentence,
)

LEXICON = load_lexicon()
VERBS = LEXICON.verbs
NOUNS = {noun.english: noun for nouns in LEXICON.nouns.values() for noun in nouns}
ADJECTIVES = {a.english: a for adjectives in LEXICON.adjectives.values() for a in adjectives}
PHRASES = {
    " ".join(word for group in phrase.english for word in group): phrase
    for phrases in LEXICON.phrases.values()
    for phrase in phrases
}


def pronoun(name):
    return PronounPhrase(LEXICON.pronouns[name])


def noun(determiner, english, *adjectives, is_plural=False, relative=None):
    return NounPhrase(
        NOUNS[english],
        LEXICON.determiners.get(determiner),
        is_plural,
        tuple(ADJECTIVES[adjective] for adjective in adjectives),
        relative,
    )


def clause(subject, verb, **parts):
    subject = pronoun(subject) if isinstance(subject, str) else subject
    return Clause(VERBS[verb], subject.person if subject else "he", subject, **parts)


def to(english, determiner=None):
    return PrepositionalPhrase(NOUNS[english].to, noun(determiner, english), is_goal=True)


def at(english, determiner=None):
    return PrepositionalPhrase(NOUNS[english].at, noun(determiner, english))


def when(name, dependent):
    return Subordinate(LEXICON.conjunctions[name], dependent)


def say(statement, *more, by=()):
    statements = [s if isinstance(s, Statement) else Statement(s) for s in (statement, *more)]
    example = write_example(Text(tuple(statements), tuple(by)))
    return example.source, example.target


def ask(asked, word="", after=None):
    example = write_example(Question(asked, word, after))
    return example.source, example.target


@pytest.fixture(scope="module")
def examples():
    return generate(5_000, seed=7)


@pytest.fixture(scope="module")
def trees():
    grammar = Grammar(LEXICON, Random(11))
    return [grammar.draw() for _ in range(4_000)]


def test_a_modal_sends_the_infinitive_to_the_end():
    learn = clause("I", "lernen", modal=LEXICON.modals["would_like"], object=noun(None, "German"))
    assert say(learn) == ("I would like to learn German.", "Ich möchte Deutsch lernen.")


def test_a_separable_prefix_goes_to_the_end():
    get_up = clause("I", "aufstehen", time=PHRASES["at seven"])
    assert say(get_up) == ("I get up at seven.", "Ich stehe um sieben auf.")


def test_a_separable_verb_is_joined_after_a_modal():
    get_up = clause("he", "aufstehen", modal=LEXICON.modals["have"])
    assert say(get_up) == ("He has to get up.", "Er muss aufstehen.")


def test_a_separable_verb_is_joined_at_the_end_of_a_clause():
    sentence = Statement(clause("I", "schlafen"), after=when("because", clause("she", "aufstehen")))
    assert say(sentence) == (
        "I sleep because she gets up.",
        "Ich schlafe, weil sie aufsteht.",
    )


def test_zu_stands_inside_a_separable_verb():
    attempt = clause("we", "versuchen", complement=when("to", clause(None, "aufstehen")))
    assert say(attempt) == ("We try to get up.", "Wir versuchen, aufzustehen.")


def test_time_first_turns_subject_and_verb_around():
    read = clause("I", "lesen", object=noun("the", "book"), time=PHRASES["tomorrow"])
    read.has_time_first = True
    assert say(read) == ("Tomorrow I read the book.", "Morgen lese ich das Buch.")


def test_a_clause_first_turns_subject_and_verb_around():
    sentence = Statement(
        clause("I", "bleiben", place=PHRASES["at home"]),
        before=when("if", clause("it", "regnen")),
    )
    assert say(sentence) == (
        "If it rains, I stay at home.",
        "Wenn es regnet, bleibe ich zu Hause.",
    )


def test_so_turns_subject_and_verb_around():
    first = clause("it", "regnen")
    second = clause("he", "gehen", place=PHRASES["home"])
    assert say(first, second, by=["so"]) == (
        "It rains, so he goes home.",
        "Es regnet, deshalb geht er nach Hause.",
    )


def test_a_dependent_clause_has_its_verb_last():
    known = clause("I", "wissen", complement=when("that", clause("he", "kommen")))
    assert say(known) == ("I know that he comes.", "Ich weiß, dass er kommt.")


def test_the_past_is_the_perfect():
    bought = clause("I", "kaufen", is_past=True, object=noun("a", "book"))
    assert say(bought) == ("I bought a book.", "Ich habe ein Buch gekauft.")


def test_verbs_of_motion_have_sein_in_the_perfect():
    went = clause("we", "gehen", is_past=True, place=to("cinema", "the"))
    assert say(went) == ("We went to the cinema.", "Wir sind ins Kino gegangen.")


def test_when_in_the_past_is_als():
    sentence = Statement(
        clause("I", "schlafen", is_past=True),
        after=when("when", clause("he", "kommen", is_past=True)),
    )
    assert say(sentence) == (
        "I slept when he came.",
        "Ich habe geschlafen, als er gekommen ist.",
    )


def test_negation_follows_a_known_object():
    read = clause("he", "lesen", is_negated=True, object=noun("the", "book"))
    assert say(read) == ("He does not read the book.", "Er liest das Buch nicht.")


def test_negation_comes_before_a_place():
    live = clause("she", "wohnen", is_negated=True, place=at("Berlin"))
    assert say(live) == ("She does not live in Berlin.", "Sie wohnt nicht in Berlin.")


def test_negation_of_an_unknown_object_is_kein():
    have = clause("I", "haben", is_negated=True, object=noun("a", "dog"))
    assert say(have) == ("I do not have a dog.", "Ich habe keinen Hund.")


def test_negation_without_article_is_kein_too():
    drink = clause("you", "trinken", is_negated=True, object=noun(None, "milk"))
    assert say(drink) == ("You do not drink milk.", "Du trinkst keine Milch.")


def test_cannot_is_one_word():
    come = clause("they", "kommen", is_negated=True, modal=LEXICON.modals["can"])
    assert say(come) == ("They cannot come.", "Sie können nicht kommen.")


def test_having_to_is_negated_with_do():
    come = clause("he", "kommen", is_negated=True, modal=LEXICON.modals["have"])
    assert say(come) == ("He does not have to come.", "Er muss nicht kommen.")


def test_a_yes_no_question_begins_with_the_verb():
    see = clause("you", "sehen", object=noun("the", "man"))
    assert ask(see) == ("Do you see the man?", "Siehst du den Mann?")


def test_who_has_a_case():
    assert ask(clause("you", "sehen"), "whom") == ("Who do you see?", "Wen siehst du?")
    assert ask(clause("you", "helfen"), "whom") == ("Who do you help?", "Wem hilfst du?")
    assert ask(clause(None, "kommen"), "who") == ("Who comes?", "Wer kommt?")


def test_where_asks_for_a_place_or_a_direction():
    assert ask(clause("he", "wohnen"), "where") == ("Where does he live?", "Wo wohnt er?")
    assert ask(clause("he", "gehen"), "where") == ("Where does he go?", "Wohin geht er?")


def test_a_relative_pronoun_has_gender_and_case():
    man = noun("the", "man", relative=clause("I", "helfen"))
    assert say(clause(man, "kommen")) == (
        "The man who I help comes.",
        "Der Mann, dem ich helfe, kommt.",
    )


def test_a_relative_clause_of_an_object_waits_for_the_verb():
    lives = Clause(VERBS["wohnen"], "he", place=at("Berlin"))
    woman = noun("the", "woman", relative=lives)
    met = clause("I", "treffen", is_past=True, object=woman)
    assert say(met) == (
        "I met the woman who lives in Berlin.",
        "Ich habe die Frau getroffen, die in Berlin wohnt.",
    )


def test_the_dative_comes_before_the_accusative():
    give = clause("I", "geben", recipient=noun("the", "child"), object=noun("a", "apple"))
    assert say(give) == ("I give the child an apple.", "Ich gebe dem Kind einen Apfel.")


def test_a_pronoun_comes_before_the_time():
    see = clause("I", "sehen", object=pronoun("he"), time=PHRASES["today"])
    assert say(see) == ("I see him today.", "Ich sehe ihn heute.")


def test_time_manner_and_place_turn_around():
    travel = clause(
        "I",
        "fahren",
        place=to("Berlin"),
        manner=PHRASES["by train"],
        time=PHRASES["tomorrow"],
    )
    assert say(travel) == (
        "I travel to Berlin by train tomorrow.",
        "Ich fahre morgen mit dem Zug nach Berlin.",
    )


def test_an_unknown_object_comes_after_the_place():
    buy = clause("he", "kaufen", object=noun("a", "book"), place=at("city", "the"))
    assert say(buy) == ("He buys a book in the city.", "Er kauft in der Stadt ein Buch.")


def test_a_two_way_preposition_has_the_accusative_for_a_goal():
    table = PrepositionalPhrase(LEXICON.surfaces[0], noun("the", "table"), is_goal=True)
    put = clause("I", "legen", object=noun("the", "book"), place=table)
    assert say(put) == ("I put the book on the table.", "Ich lege das Buch auf den Tisch.")


def test_a_two_way_preposition_has_the_dative_for_a_place():
    table = PrepositionalPhrase(LEXICON.surfaces[0], noun("the", "table"))
    assert say(clause(noun("the", "book"), "liegen", place=table)) == (
        "The book lies on the table.",
        "Das Buch liegt auf dem Tisch.",
    )


def test_a_profession_has_no_article():
    teacher = clause("he", "sein", predicate=noun("a", "teacher"))
    assert say(teacher) == ("He is a teacher.", "Er ist Lehrer.")


def test_a_profession_with_an_adjective_has_its_article():
    teacher = clause("he", "sein", predicate=noun("a", "teacher", "good"))
    assert say(teacher) == ("He is a good teacher.", "Er ist ein guter Lehrer.")


def test_joined_verbs_share_their_subject():
    sentence = Statement(
        clause("he", "lesen", object=noun("the", "book")),
        also=Clause(VERBS["trinken"], "he", object=noun(None, "coffee")),
    )
    assert say(sentence) == (
        "He reads the book and drinks coffee.",
        "Er liest das Buch und trinkt Kaffee.",
    )


def test_two_nouns_make_a_plural_subject():
    both = NounPair(noun(None, "Anna"), noun("the", "boy"))
    assert say(clause(both, "tanzen")) == (
        "Anna and the boy dance.",
        "Anna und der Junge tanzen.",
    )


def test_in_order_to_is_um_zu():
    sentence = Statement(
        clause("I", "fahren", place=to("Berlin")),
        after=when("in_order_to", clause(None, "lernen", object=noun(None, "German"))),
    )
    assert say(sentence) == (
        "I travel to Berlin in order to learn German.",
        "Ich fahre nach Berlin, um Deutsch zu lernen.",
    )


PARADIGM = [
    ("nominative", "the", "man", False, "der alte Mann"),
    ("accusative", "the", "man", False, "den alten Mann"),
    ("dative", "the", "man", False, "dem alten Mann"),
    ("nominative", "a", "man", False, "ein alter Mann"),
    ("accusative", "a", "man", False, "einen alten Mann"),
    ("dative", "my", "man", False, "meinem alten Mann"),
    ("nominative", "the", "woman", False, "die alte Frau"),
    ("accusative", "a", "woman", False, "eine alte Frau"),
    ("dative", "the", "woman", False, "der alten Frau"),
    ("dative", "our", "woman", False, "unserer alten Frau"),
    ("nominative", "a", "child", False, "ein altes Kind"),
    ("accusative", "this", "child", False, "dieses alte Kind"),
    ("dative", "every", "child", False, "jedem alten Kind"),
    ("accusative", "the", "student", False, "den alten Studenten"),
    ("dative", "a", "neighbour", False, "einem alten Nachbarn"),
    ("nominative", "the", "child", True, "die alten Kinder"),
    ("accusative", None, "child", True, "alte Kinder"),
    ("dative", "the", "child", True, "den alten Kindern"),
    ("dative", "two", "child", True, "zwei alten Kindern"),
    ("accusative", "many", "man", True, "viele alte Männer"),
    ("dative", "this", "car", True, "diesen alten Autos"),
    ("accusative", None, "coffee", False, "alten Kaffee"),
    ("dative", None, "milk", False, "alter Milch"),
]


@pytest.mark.parametrize(("case", "determiner", "english", "is_plural", "german"), PARADIGM)
def test_articles_adjectives_and_nouns_agree(case, determiner, english, is_plural, german):
    phrase = noun(determiner, english, "old", is_plural=is_plural)
    if case == "nominative":
        written = say(clause(phrase, "schlafen"))[1].split(" schl")[0]
        german = german[0].upper() + german[1:]
    else:
        verb = {"accusative": "sehen", "dative": "helfen"}[case]
        written = say(clause("I", verb, object=phrase))[1].split(" ", 2)[2].removesuffix(".")
    assert written == german


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten"),
        ("lesen", "lese liest liest lesen"),
        ("fahren", "fahre fährst fährt fahren"),
        ("tanzen", "tanze tanzt tanzt tanzen"),
        ("einladen", "lade lädst lädt laden"),
        ("essen", "esse isst isst essen"),
        ("öffnen", "öffne öffnest öffnet öffnen"),
        ("wissen", "weiß weißt weiß wissen"),
    ],
)
def test_verbs_agree_with_their_subject(verb, forms):
    assert " ".join(VERBS[verb].present) == forms


def test_prepositions_take_their_case(trees):
    wrong = {
        *(("mit", article) for article in ("das", "die", "einen", "ein", "eine")),
        *(("für", article) for article in ("dem", "der", "einem", "einer")),
        *(("ohne", article) for article in ("dem", "der", "einem", "einer")),
        *(("zu", article) for article in ("dem", "der", "das", "die", "einen")),
        ("in", "dem"),
    }
    found = set()
    for tree in trees:
        words = [word.text for word in GermanWriter().write(tree)]
        found |= set(zip(words, words[1:], strict=False))
    assert not found & wrong


def links(example):
    source, target = split_words(example.source), split_words(example.target)
    return {(source[i], target[j]) for i, j in example.alignment}


def test_both_words_of_would_like_are_linked():
    learn = clause("I", "lernen", modal=LEXICON.modals["would_like"], object=noun(None, "German"))
    example = write_example(Text((Statement(learn),)))
    assert links(example) == {
        ("I", "Ich"),
        ("would", "möchte"),
        ("like", "möchte"),
        ("to", "lernen"),
        ("learn", "lernen"),
        ("German", "Deutsch"),
        (".", "."),
    }


def test_both_halves_of_a_separable_verb_are_linked_to_both_words():
    example = write_example(Text((Statement(clause("I", "aufstehen")),)))
    assert links(example) >= {
        ("get", "stehe"),
        ("get", "auf"),
        ("up", "stehe"),
        ("up", "auf"),
    }


def test_kein_is_linked_to_not_and_to_the_article():
    have = clause("I", "haben", is_negated=True, object=noun("a", "dog"))
    example = write_example(Text((Statement(have),)))
    assert links(example) >= {("not", "keinen"), ("a", "keinen"), ("do", "habe"), ("have", "habe")}


def test_a_contraction_is_linked_to_both_its_words():
    go = clause("I", "gehen", place=to("station", "the"))
    assert links(write_example(Text((Statement(go),)))) >= {("to", "zum"), ("the", "zum")}


def test_links_are_in_range(examples):
    for example in examples:
        sides = len(split_words(example.source)), len(split_words(example.target))
        assert all(0 <= i < sides[0] and 0 <= j < sides[1] for i, j in example.alignment)


def test_every_english_word_is_linked(examples):
    for example in examples:
        linked = {i for i, _ in example.alignment}
        assert linked == set(range(len(split_words(example.source))))


def test_every_german_word_but_commas_is_linked(examples):
    for example in examples:
        linked = {j for _, j in example.alignment}
        words = enumerate(split_words(example.target))
        assert all(j in linked or word == "," for j, word in words)


def test_punctuation_is_linked_to_punctuation_only(examples):
    marks = {".", "?", ","}
    for example in examples:
        assert all((a in marks) == (b in marks) for a, b in links(example))


def test_words_are_split_as_they_were_written(trees):
    for tree in trees[:500]:
        words = [word.text for word in write_english(tree)]
        words[0] = words[0][0].upper() + words[0][1:]
        assert split_words(write_sentence(write_english(tree))) == words


def test_splitting_keeps_apostrophes_and_hyphens_in_the_word():
    text = "I don't know, he said: E-Mail?"
    assert split_words(text) == ["I", "don't", "know", ",", "he", "said", ":", "E-Mail", "?"]


def test_every_tag_occurs(examples):
    assert {tag for example in examples for tag in example.tags} == set(TAGS)


@pytest.mark.parametrize(
    ("sentence", "tags"),
    [
        (clause("I", "aufstehen"), {"pronoun", "separable"}),
        (clause(noun("the", "dog", is_plural=True), "schlafen"), {"plural"}),
        (
            clause(noun(None, "Anna"), "haben", object=noun("two", "cat", is_plural=True)),
            {"plural", "number", "accusative"},
        ),
    ],
)
def test_tags_name_what_is_there(sentence, tags):
    assert set(write_example(Text((Statement(sentence),))).tags) == tags


def test_a_seed_gives_always_the_same_pairs():
    assert generate(200, seed=5) == generate(200, seed=5)


def test_another_seed_gives_other_pairs():
    assert generate(200, seed=5) != generate(200, seed=6)


def test_more_pairs_begin_with_the_same(examples):
    assert generate(100, seed=7) == examples[:100]


def test_no_source_comes_twice(examples):
    assert len({example.source for example in examples}) == len(examples)


def test_the_english_decides_the_german():
    grammar = Grammar(LEXICON, Random(3))
    known = {}
    for _ in range(20_000):
        tree = grammar.draw()
        source = write_sentence(write_english(tree))
        # Only repeated sentences can disagree, and long ones are hardly ever repeated.
        if len(source) < 60:
            target = write_sentence(GermanWriter().write(tree))
            assert known.setdefault(source, target) == target


def test_more_than_a_hundred_thousand_pairs_are_possible():
    # Two samples of n from N sentences share about n²/N of them, and more where some sentences
    # are likelier than others: the estimate is too low rather than too high.
    first = {example.source for example in generate(3_000, seed=1)}
    second = {example.source for example in generate(3_000, seed=2)}
    assert len(first) * len(second) / max(1, len(first & second)) > 100_000


def test_sentences_begin_with_a_capital_and_end_with_a_mark(examples):
    for example in examples:
        for text in (example.source, example.target):
            assert text[0].isupper() and text[-1] in ".?"


def test_most_sentences_are_short(examples):
    lengths = [len(example.source.split()) for example in examples]
    assert sum(4 <= length <= 15 for length in lengths) / len(lengths) > 0.65


def test_some_sentences_are_long(examples):
    lengths = [len(example.source.split()) for example in examples]
    assert 0.15 < sum(length > 20 for length in lengths) / len(lengths) < 0.2


def test_the_longest_sentences_come_near_the_limit(examples):
    assert MAX_WORDS - 5 < max(len(e.source.split()) for e in examples) <= MAX_WORDS


def test_vocabularies_are_small(examples):
    english = {word for example in examples for word in split_words(example.source.lower())}
    german = {word for example in examples for word in split_words(example.target.lower())}
    assert 300 < len(english) < 500
    assert 600 < len(german) < 850


def test_parts_have_the_sizes_asked_for():
    parts = splits(num_train=300, num_valid=20, num_test=30)
    assert [len(part) for part in parts] == [300, 20, 30]


def test_parts_share_no_source_even_between_seeds():
    ours = splits(num_train=1_500, num_valid=50, num_test=100, seed=0)
    theirs = splits(num_train=1_500, num_valid=50, num_test=100, seed=1)
    sources = [
        {e.source for e in a} | {e.source for e in b} for a, b in zip(ours, theirs, strict=True)
    ]
    train, valid, test = sources
    assert not (train & valid or train & test or valid & test)


def test_the_test_part_does_not_depend_on_the_others():
    _, _, test = splits(num_train=500, num_valid=10, num_test=20)
    assert splits(num_train=0, num_valid=0, num_test=20) == ([], [], test)


def test_a_sentence_belongs_to_one_part_for_good():
    assert part_of("I would like to learn German.") == "train"


def test_parts_of_no_size_are_empty():
    assert splits(num_train=0, num_valid=0, num_test=0) == ([], [], [])


@pytest.mark.parametrize("name", ["num_train", "num_valid", "num_test"])
def test_parts_of_negative_size_are_refused(name):
    with pytest.raises(ConfigError, match=f"`{name}` must be at least 0, but is -1."):
        splits(**{name: -1})


def test_a_negative_number_of_pairs_is_refused():
    with pytest.raises(ConfigError, match="`num` must be at least 0, but is -2."):
        generate(-2)
