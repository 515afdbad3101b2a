from regard.data.example import Example
from regard.search.hypothesis import Hypothesis
from regard.studies.reproduce.encoder_decoders.beam_sizes import (
    BLEU,
    ERRORS,
    LOG_PROB,
    best_log_probs,
    measure,
)
from regard.studies.reproduce.encoder_decoders.short_training import (
    Vocabularies,
    decode,
    fixed_context_model,
    seeded,
)

PAIRS = [Example("a b c d", "d c b a"), Example("a b", "b a"), Example("c c", "c c")]
VOCABULARIES = Vocabularies.fit(PAIRS)


def hypothesis(text, log_prob):
    ids = tuple(VOCABULARIES.target.read(text)[1:])
    return Hypothesis(ids, log_prob, (), log_prob)


def test_search_error_is_a_less_probable_translation():
    narrow = [hypothesis("d c b a", -1.0), hypothesis("b", -3.0), hypothesis("c c", -1.0)]
    wide = [hypothesis("d c b a", -1.0), hypothesis("b a", -2.0), hypothesis("c c", -1.0)]
    best = best_log_probs([narrow, wide])
    first, second = (measure(one, best, PAIRS, vocabularies=VOCABULARIES) for one in (narrow, wide))
    assert (round(first[ERRORS]), second[ERRORS]) == (33, 0)
    assert first[LOG_PROB] < second[LOG_PROB]
    assert second[BLEU] > first[BLEU]


def test_every_pair_is_decoded_in_order():
    with seeded(1):
        model = VOCABULARIES.build(fixed_context_model(8)).eval()
    alone = decode(model, VOCABULARIES, PAIRS[1:2], beams=2, length_penalty=0.0)
    together = decode(model, VOCABULARIES, PAIRS, beams=2, length_penalty=0.0)
    assert len(together) == len(PAIRS)
    assert together[1].tokens == alone[0].tokens
