import torch

from regard.models.build import ModelConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.search.forced import target_log_probs


def test_every_token_gets_its_log_probability(build, sentences):
    model = build(ModelConfig(encoder=RnnEncoderConfig(embedding_dim=4, dim=3)))
    with torch.no_grad():
        forced = target_log_probs(
            model, sentences.source, sentences.mask, targets=sentences.targets
        )
        logits = model(sentences.source, sentences.mask, sentences.targets).logits
    assert forced.shape == (3, 5)
    for row in range(3):
        for position in range(5):
            token = sentences.targets[row, position + 1]
            expected = logits[row, position].log_softmax(-1)[token]
            assert torch.allclose(forced[row, position], expected, atol=1e-5)
