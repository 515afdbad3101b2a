import pytest
import sacrebleu
import torch

from regard.tasks.decoding.similarity import PAIRWISE, pairwise_bleu, pairwise_chrf

TEXTS = [
    "The cat sat on the mat.",
    "The cat sat on a mat",
    "the cat, the cat, the cat!",
    "A dog runs in the park, doesn't it?",
    "cat",
    "ok",
    "  The   cat sat on the mat.  ",
    "Größe übers 1.5 Maß",
    "x",
    "",
]


@pytest.mark.parametrize(
    ("compare", "sentence_score"),
    [
        (pairwise_chrf, sacrebleu.sentence_chrf),
        (pairwise_bleu, sacrebleu.sentence_bleu),
    ],
    ids=["chrf", "bleu"],
)
def test_every_pair_equals_sacrebleu(compare, sentence_score):
    found = compare(TEXTS)
    for row, hypothesis in enumerate(TEXTS):
        expected = [sentence_score(hypothesis, [other]).score / 100 for other in TEXTS]
        assert found[row].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_text_equals_itself(name):
    values = PAIRWISE[name](TEXTS[:4]).diagonal()
    assert torch.allclose(values, torch.ones(4, dtype=torch.float64))
