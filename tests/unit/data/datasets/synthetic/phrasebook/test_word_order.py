from regard.data.datasets.synthetic.phrasebook.trees import (
    Clause,
    NounPair,
    PrepositionalPhrase,
    Statement,
)
from tests.phrases import LEXICON, PHRASES, VERBS, ask, at, clause, noun, pronoun, say, to, when


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
        clause("I", "bleiben", location=PHRASES["at home"]),
        before=when("if", clause("it", "regnen")),
    )
    assert say(sentence) == (
        "If it rains, I stay at home.",
        "Wenn es regnet, bleibe ich zu Hause.",
    )


def test_so_turns_subject_and_verb_around():
    first = clause("it", "regnen")
    second = clause("he", "gehen", location=PHRASES["home"])
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
    went = clause("we", "gehen", is_past=True, location=to("cinema", "the"))
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
    live = clause("she", "wohnen", is_negated=True, location=at("Berlin"))
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
    lives = Clause(VERBS["wohnen"], "he", location=at("Berlin"))
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
        location=to("Berlin"),
        manner=PHRASES["by train"],
        time=PHRASES["tomorrow"],
    )
    assert say(travel) == (
        "I travel to Berlin by train tomorrow.",
        "Ich fahre morgen mit dem Zug nach Berlin.",
    )


def test_an_unknown_object_comes_after_the_place():
    buy = clause("he", "kaufen", object=noun("a", "book"), location=at("city", "the"))
    assert say(buy) == ("He buys a book in the city.", "Er kauft in der Stadt ein Buch.")


def test_a_two_way_preposition_has_the_accusative_for_a_goal():
    table = PrepositionalPhrase(LEXICON.surfaces[0], noun("the", "table"), is_goal=True)
    put = clause("I", "legen", object=noun("the", "book"), location=table)
    assert say(put) == ("I put the book on the table.", "Ich lege das Buch auf den Tisch.")


def test_a_two_way_preposition_has_the_dative_for_a_place():
    table = PrepositionalPhrase(LEXICON.surfaces[0], noun("the", "table"))
    assert say(clause(noun("the", "book"), "liegen", location=table)) == (
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
        clause("I", "fahren", location=to("Berlin")),
        after=when("in_order_to", clause(None, "lernen", object=noun(None, "German"))),
    )
    assert say(sentence) == (
        "I travel to Berlin in order to learn German.",
        "Ich fahre nach Berlin, um Deutsch zu lernen.",
    )
