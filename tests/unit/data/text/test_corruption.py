import numpy as np
import pytest

from regard.core.errors import ConfigError
from regard.data.batching import BatchConfig
from regard.data.text.corruption import CorruptedBatches, Corruption, CorruptionConfig
from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer

CONFIG = CorruptionConfig(num_sentinels=8)


@pytest.fixture(scope="module")
def tokenizer():
    words = " ".join(f"w{number}" for number in range(200))
    config = TokenizerConfig(kind="word", extra_tokens=CONFIG.sentinels)
    return train_tokenizer(config, [words])


@pytest.fixture(scope="module")
def texts(tokenizer):
    generator = np.random.default_rng(0)
    return [
        generator.integers(12, tokenizer.vocab_size, length).tolist()
        for length in generator.integers(1, 120, 300)
    ]


def corrupt(tokenizer, texts, epoch=0, config=CONFIG, rows=None):
    corruption = Corruption(config, tokenizer, seed=1)
    rows = np.arange(len(texts)) if rows is None else rows
    return corruption.change((texts, texts), rows, epoch)


def restore(source, target, sentinels):
    """Replace the sentinels of a source by the spans of the target."""
    spans, present = {}, None
    for token in target[1:-1]:
        if token in sentinels:
            present = spans.setdefault(token, [])
        else:
            present.append(token)
    return [token for part in source[:-1] for token in spans.get(part, [part])]


def test_source_and_target_together_restore_the_text(tokenizer, texts):
    sentinels = Corruption(CONFIG, tokenizer, seed=1).sentinels
    for text, source, target in zip(texts, *corrupt(tokenizer, texts), strict=True):
        assert restore(source, target, sentinels) == text
        assert (target[0], target[-1], source[-1]) == (tokenizer.sos, tokenizer.eos, tokenizer.eos)


def test_sentinels_are_in_order_and_equal_in_source_and_target(tokenizer, texts):
    sentinels = Corruption(CONFIG, tokenizer, seed=1).sentinels
    for source, target in zip(*corrupt(tokenizer, texts), strict=True):
        marks = [token for token in source if token in sentinels]
        assert marks == [token for token in target if token in sentinels]
        assert marks == sentinels[: len(marks)]


def test_the_share_and_the_mean_length_are_kept(tokenizer):
    text = list(range(12, 112))
    source, target = (side[0] for side in corrupt(tokenizer, [text]))
    num_spans = len(set(source) & set(target)) - 1  # without the end token
    assert num_spans == 5
    assert len(target) - 2 - num_spans == 15


def test_there_are_at_most_as_many_spans_as_sentinels(tokenizer):
    config = CorruptionConfig(share=0.5, mean_length=1.0, num_sentinels=2)
    source, _ = corrupt(tokenizer, [list(range(12, 112))], config=config)
    assert len(set(source[0]) & set(Corruption(config, tokenizer, seed=1).sentinels)) == 2


def test_each_epoch_removes_other_spans(tokenizer, texts):
    assert corrupt(tokenizer, texts) != corrupt(tokenizer, texts, epoch=1)


def test_removed_spans_depend_only_on_the_text(tokenizer, texts):
    sources, _ = corrupt(tokenizer, texts)
    alone, _ = corrupt(tokenizer, [texts[7]], rows=np.array([7]))
    assert alone[0] == sources[7]


def test_batches_hold_other_pairs_in_each_epoch_and_the_same_after_a_resume(tokenizer, texts):
    def build():
        return CorruptedBatches(
            texts,
            texts,
            BatchConfig(max_tokens=500),
            change=Corruption(CONFIG, tokenizer, seed=1).change,
            fields=(TextField(tokenizer, has_start=True),) * 2,
        )

    first, again = list(build().epoch(1)), list(build().epoch(1, skip=2))
    assert [batch.source.tolist() for batch in first[2:]] == [b.source.tolist() for b in again]
    by_row = [
        {
            row: ids
            for b in build().epoch(n)
            for row, ids in zip(b.rows, b.source.tolist(), strict=True)
        }
        for n in (0, 1)
    ]
    assert by_row[0] != by_row[1]


def test_a_vocabulary_without_sentinels_is_refused():
    plain = train_tokenizer(TokenizerConfig(kind="word"), ["a b c"])
    with pytest.raises(ConfigError, match=r"no token '<x0>'"):
        Corruption(CONFIG, plain, seed=1)
