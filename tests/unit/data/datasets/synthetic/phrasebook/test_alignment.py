from regard.data.datasets.synthetic.phrasebook import write_example
from regard.data.datasets.synthetic.phrasebook.english import write_english
from regard.data.datasets.synthetic.phrasebook.trees import Statement, Text, write_sentence
from regard.data.text.tokenizers import split_words
from tests.unit.data.datasets.synthetic.phrasebook.builders import LEXICON, clause, noun, to


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


def test_both_parts_of_a_separable_verb_are_linked_to_both_words():
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


def test_contraction_is_linked_to_preposition_and_article():
    go = clause("I", "gehen", location=to("station", "the"))
    assert links(write_example(Text((Statement(go),)))) >= {("to", "zum"), ("the", "zum")}


def test_links_are_in_range(examples):
    for example in examples:
        sides = len(split_words(example.source)), len(split_words(example.target))
        assert all(0 <= i < sides[0] and 0 <= j < sides[1] for i, j in example.alignment)


def test_every_english_word_is_linked(examples):
    for example in examples:
        linked = {i for i, _ in example.alignment}
        assert linked == set(range(len(split_words(example.source))))


def test_every_german_word_except_commas_is_linked(examples):
    for example in examples:
        linked = {j for _, j in example.alignment}
        words = enumerate(split_words(example.target))
        assert all(j in linked or word == "," for j, word in words)


def test_punctuation_is_linked_to_punctuation_only(examples):
    marks = {".", "?", ","}
    for example in examples:
        assert all((a in marks) == (b in marks) for a, b in links(example))


def test_tokenizer_splits_sentences_into_the_words_of_the_tree(trees):
    for tree in trees[:500]:
        words = [word.text for word in write_english(tree)]
        words[0] = words[0][0].upper() + words[0][1:]
        assert split_words(write_sentence(write_english(tree))) == words


def test_tokenizer_keeps_apostrophes_and_hyphens_in_words():
    text = "I don't know, he wrote: E-Mail?"
    assert split_words(text) == ["I", "don't", "know", ",", "he", "wrote", ":", "E-Mail", "?"]
