import pytest

from regard.studies.reproduce.encoder_decoders.role_sentences import split_sentences


@pytest.fixture(scope="module")
def parts():
    return split_sentences(num_pairs=3, num_gifts=5, num_valid=2)


def test_sentences_of_the_figure_come_first(parts):
    assert parts.giving[0].sentences == [
        "I gave her a card in the garden.",
        "In the garden, I gave her a card.",
        "She was given a card by me in the garden.",
        "She gave me a card in the garden.",
        "In the garden, she gave me a card.",
        "I was given a card by her in the garden.",
    ]
    assert [sentence for item in parts.liking[:3] for sentence in item.sentences] == [
        "Mary admires John.",
        "John admires Mary.",
        "Mary respects John.",
        "John respects Mary.",
        "Mary is in love with John.",
        "John is in love with Mary.",
    ]


def test_forms_of_one_meaning_share_a_translation(parts):
    for item in (*parts.giving, *parts.valid):
        meaning, turned = ({one.target for one in side} for side in (item.meaning, item.reversed))
        assert len(meaning) == len(turned) == 1 and meaning != turned
    assert parts.giving[0].meaning[0].target == "Ich gab ihr im Garten eine Karte."


def test_parts_are_disjoint_and_complete(parts):
    sides = [parts.train, parts.valid, parts.liking, parts.giving]
    sets = [{sentence for item in side for sentence in item.sentences} for side in sides]
    assert [len(side) for side in sides[1:]] == [2, 9, 5]
    # 66 pairs of names with 8 verbs and 2 roles; 15 pairs of pronouns, 8 things and 8 locations.
    assert len(set.union(*sets)) == sum(map(len, sets)) == 66 * 8 * 2 + 15 * 8 * 8 * 6


def test_every_word_of_the_test_is_in_the_training_data(parts):
    def words(items):
        return {word for item in items for text in item.sentences for word in text.split()}

    assert words([*parts.liking, *parts.giving]) <= words(parts.train)
