from regard.data.datasets.synthetic.phrasebook.trees import (
    Clause,
    NounPair,
    PrepositionalPhrase,
    Statement,
)
from tests.unit.data.datasets.synthetic.phrasebook.builders import (
    LEXICON,
    PHRASES,
    VERBS,
    at,
    clause,
    noun,
    pronoun,
    subordinate,
    to,
    translate,
    translate_question,
)


def test_infinitive_of_a_modal_is_at_the_end():
    learn = clause("I", "lernen", modal=LEXICON.modals["would_like"], object=noun(None, "German"))
    assert translate(learn) == ("I would like to learn German.", "Ich möchte Deutsch lernen.")


def test_separable_prefix_is_at_the_end():
    get_up = clause("I", "aufstehen", time=PHRASES["at seven"])
    assert translate(get_up) == ("I get up at seven.", "Ich stehe um sieben auf.")


def test_separable_verb_is_joined_after_a_modal():
    get_up = clause("he", "aufstehen", modal=LEXICON.modals["have"])
    assert translate(get_up) == ("He has to get up.", "Er muss aufstehen.")


def test_separable_verb_is_joined_at_the_end_of_a_clause():
    sentence = Statement(
        clause("I", "schlafen"), after=subordinate("because", clause("she", "aufstehen"))
    )
    assert translate(sentence) == (
        "I sleep because she gets up.",
        "Ich schlafe, weil sie aufsteht.",
    )


def test_zu_is_inside_a_separable_verb():
    attempt = clause("we", "versuchen", complement=subordinate("to", clause(None, "aufstehen")))
    assert translate(attempt) == ("We try to get up.", "Wir versuchen, aufzustehen.")


def test_time_first_causes_inversion():
    read = clause("I", "lesen", object=noun("the", "book"), time=PHRASES["tomorrow"])
    read.has_time_first = True
    assert translate(read) == ("Tomorrow I read the book.", "Morgen lese ich das Buch.")


def test_clause_first_causes_inversion():
    sentence = Statement(
        clause("I", "bleiben", location=PHRASES["at home"]),
        before=subordinate("if", clause("it", "regnen")),
    )
    assert translate(sentence) == (
        "If it rains, I stay at home.",
        "Wenn es regnet, bleibe ich zu Hause.",
    )


def test_so_causes_inversion():
    first = clause("it", "regnen")
    second = clause("he", "gehen", location=PHRASES["home"])
    assert translate(first, second, connectives=["so"]) == (
        "It rains, so he goes home.",
        "Es regnet, deshalb geht er nach Hause.",
    )


def test_verb_is_last_in_a_dependent_clause():
    known = clause("I", "wissen", complement=subordinate("that", clause("he", "kommen")))
    assert translate(known) == ("I know that he comes.", "Ich weiß, dass er kommt.")


def test_past_is_translated_as_perfect():
    bought = clause("I", "kaufen", is_past=True, object=noun("a", "book"))
    assert translate(bought) == ("I bought a book.", "Ich habe ein Buch gekauft.")


def test_perfect_of_verbs_of_motion_uses_sein():
    went = clause("we", "gehen", is_past=True, location=to("cinema", "the"))
    assert translate(went) == ("We went to the cinema.", "Wir sind ins Kino gegangen.")


def test_when_in_the_past_is_als():
    sentence = Statement(
        clause("I", "schlafen", is_past=True),
        after=subordinate("when", clause("he", "kommen", is_past=True)),
    )
    assert translate(sentence) == (
        "I slept when he came.",
        "Ich habe geschlafen, als er gekommen ist.",
    )


def test_negation_follows_a_definite_object():
    read = clause("he", "lesen", is_negated=True, object=noun("the", "book"))
    assert translate(read) == ("He does not read the book.", "Er liest das Buch nicht.")


def test_negation_precedes_a_location():
    live = clause("she", "wohnen", is_negated=True, location=at("Berlin"))
    assert translate(live) == ("She does not live in Berlin.", "Sie wohnt nicht in Berlin.")


def test_negation_of_an_indefinite_object_is_kein():
    have = clause("I", "haben", is_negated=True, object=noun("a", "dog"))
    assert translate(have) == ("I do not have a dog.", "Ich habe keinen Hund.")


def test_negation_without_article_is_kein():
    drink = clause("you", "trinken", is_negated=True, object=noun(None, "milk"))
    assert translate(drink) == ("You do not drink milk.", "Du trinkst keine Milch.")


def test_cannot_is_one_word():
    come = clause("they", "kommen", is_negated=True, modal=LEXICON.modals["can"])
    assert translate(come) == ("They cannot come.", "Sie können nicht kommen.")


def test_have_to_is_negated_with_do():
    come = clause("he", "kommen", is_negated=True, modal=LEXICON.modals["have"])
    assert translate(come) == ("He does not have to come.", "Er muss nicht kommen.")


def test_yes_no_question_starts_with_the_verb():
    see = clause("you", "sehen", object=noun("the", "man"))
    assert translate_question(see) == ("Do you see the man?", "Siehst du den Mann?")


def test_who_is_inflected_for_case():
    assert translate_question(clause("you", "sehen"), "whom") == (
        "Who do you see?",
        "Wen siehst du?",
    )
    assert translate_question(clause("you", "helfen"), "whom") == (
        "Who do you help?",
        "Wem hilfst du?",
    )
    assert translate_question(clause(None, "kommen"), "who") == ("Who comes?", "Wer kommt?")


def test_where_is_wo_for_a_location_and_wohin_for_a_direction():
    assert translate_question(clause("he", "wohnen"), "where") == (
        "Where does he live?",
        "Wo wohnt er?",
    )
    assert translate_question(clause("he", "gehen"), "where") == (
        "Where does he go?",
        "Wohin geht er?",
    )


def test_relative_pronoun_has_gender_and_case():
    man = noun("the", "man", relative=clause("I", "helfen"))
    assert translate(clause(man, "kommen")) == (
        "The man who I help comes.",
        "Der Mann, dem ich helfe, kommt.",
    )


def test_relative_clause_of_an_object_follows_the_verb():
    lives = Clause(VERBS["wohnen"], "he", location=at("Berlin"))
    woman = noun("the", "woman", relative=lives)
    met = clause("I", "treffen", is_past=True, object=woman)
    assert translate(met) == (
        "I met the woman who lives in Berlin.",
        "Ich habe die Frau getroffen, die in Berlin wohnt.",
    )


def test_dative_precedes_accusative():
    give = clause("I", "geben", recipient=noun("the", "child"), object=noun("a", "apple"))
    assert translate(give) == ("I give the child an apple.", "Ich gebe dem Kind einen Apfel.")


def test_pronoun_precedes_time():
    see = clause("I", "sehen", object=pronoun("he"), time=PHRASES["today"])
    assert translate(see) == ("I see him today.", "Ich sehe ihn heute.")


def test_order_is_time_manner_location():
    travel = clause(
        "I",
        "fahren",
        location=to("Berlin"),
        manner=PHRASES["by train"],
        time=PHRASES["tomorrow"],
    )
    assert translate(travel) == (
        "I travel to Berlin by train tomorrow.",
        "Ich fahre morgen mit dem Zug nach Berlin.",
    )


def test_indefinite_object_follows_location():
    buy = clause("he", "kaufen", object=noun("a", "book"), location=at("city", "the"))
    assert translate(buy) == ("He buys a book in the city.", "Er kauft in der Stadt ein Buch.")


def test_two_way_preposition_takes_accusative_for_a_direction():
    table = PrepositionalPhrase(LEXICON.surfaces[0], noun("the", "table"), is_goal=True)
    put = clause("I", "legen", object=noun("the", "book"), location=table)
    assert translate(put) == ("I put the book on the table.", "Ich lege das Buch auf den Tisch.")


def test_two_way_preposition_takes_dative_for_a_location():
    table = PrepositionalPhrase(LEXICON.surfaces[0], noun("the", "table"))
    assert translate(clause(noun("the", "book"), "liegen", location=table)) == (
        "The book lies on the table.",
        "Das Buch liegt auf dem Tisch.",
    )


def test_profession_has_no_article():
    teacher = clause("he", "sein", predicate=noun("a", "teacher"))
    assert translate(teacher) == ("He is a teacher.", "Er ist Lehrer.")


def test_profession_with_an_adjective_has_an_article():
    teacher = clause("he", "sein", predicate=noun("a", "teacher", "good"))
    assert translate(teacher) == ("He is a good teacher.", "Er ist ein guter Lehrer.")


def test_coordinated_verbs_share_their_subject():
    sentence = Statement(
        clause("he", "lesen", object=noun("the", "book")),
        also=Clause(VERBS["trinken"], "he", object=noun(None, "coffee")),
    )
    assert translate(sentence) == (
        "He reads the book and drinks coffee.",
        "Er liest das Buch und trinkt Kaffee.",
    )


def test_two_nouns_are_a_plural_subject():
    both = NounPair(noun(None, "Anna"), noun("the", "boy"))
    assert translate(clause(both, "tanzen")) == (
        "Anna and the boy dance.",
        "Anna und der Junge tanzen.",
    )


def test_in_order_to_is_um_zu():
    sentence = Statement(
        clause("I", "fahren", location=to("Berlin")),
        after=subordinate("in_order_to", clause(None, "lernen", object=noun(None, "German"))),
    )
    assert translate(sentence) == (
        "I travel to Berlin in order to learn German.",
        "Ich fahre nach Berlin, um Deutsch zu lernen.",
    )
