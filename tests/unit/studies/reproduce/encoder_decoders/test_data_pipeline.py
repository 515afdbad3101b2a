from regard.data.example import Example
from regard.studies.reproduce.encoder_decoders.data_pipeline import (
    LINKS,
    MAX_LENGTH,
    PAIRS,
    build_batch,
    num_crossings,
    padded_and_single,
    read_line,
)
from regard.studies.reproduce.encoder_decoders.short_training import Vocabularies

EXAMPLES = [Example(source, target) for source, target in PAIRS]


def test_reader_drops_the_attribution(tmp_path):
    (pair,) = read_line(tmp_path)
    assert (pair.source, pair.target) == ("This work isn't easy.", "この仕事は簡単じゃない。")


def test_batch_is_truncated_and_padded():
    vocabularies = Vocabularies.fit(EXAMPLES)
    batch, tokenizer = build_batch(vocabularies, EXAMPLES), vocabularies.target.tokenizer
    assert batch.target.shape == (len(PAIRS), MAX_LENGTH)
    assert (batch.target[:, 0] == tokenizer.sos).all()
    assert ((batch.target == tokenizer.eos).sum(1) == 1).all()
    assert ((batch.target == tokenizer.pad) == ~batch.target_mask).all()


def test_padding_is_not_in_the_loss():
    vocabularies = Vocabularies.fit(EXAMPLES)
    padded, single = padded_and_single(vocabularies, build_batch(vocabularies, EXAMPLES), seed=1)
    assert abs(padded - single) < 1e-3 * single


def test_links_of_the_pair_cross():
    assert num_crossings(LINKS) == 2
    assert num_crossings([(0, 0), (1, 1)]) == 0
