import pytest
import torch

from regard.studies.reproduce.attention.one_word_two_contexts import (
    Learned,
    Simplified,
    embed,
    fit,
    measure,
    sample_corpus,
)


def test_similarity_of_bank_with_the_words_of_its_senses_is_zero():
    bank, river, money, old = embed(["bank", "river", "money", "old"])
    assert bank @ river == bank @ money == 0 < bank @ old


def test_simplified_weights_of_a_sentence_by_hand():
    inputs = embed(["bank", "old", "river"])[None]
    _, weights = Simplified()(inputs)
    expected = torch.tensor([4.0, 2.0, 0.0]).exp()
    assert weights[0, 0].tolist() == pytest.approx((expected / expected.sum()).tolist(), abs=1e-6)


def test_positions_of_a_corpus_name_the_words():
    corpus = sample_corpus(1, "test")
    rows = torch.arange(len(corpus.inputs))
    # The first coordinate is the building; the second and third are the senses.
    assert corpus.inputs[rows, corpus.word, 0].mean() == pytest.approx(2, abs=0.05)
    clues = corpus.inputs[rows, corpus.clue, 1:3]
    assert (clues.argmax(-1) == corpus.senses).double().mean() > 0.99


def test_learned_maps_attend_to_the_sense_and_similarity_does_not():
    train, test = (sample_corpus(2, part) for part in ("train", "test"))
    simple, learned = (measure(*fit(kind, train, 2), test) for kind in (Simplified, Learned))
    assert simple["weight on the word of the sense"] < 0.1
    assert learned["weight on the word of the sense"] > 0.5
    assert learned["accuracy of the sense %"] > 95
