"""Our classifier with BERT's weights equals Hugging Face's BERT on pairs of texts."""

import pytest
import torch

from regard.core.specs import TextSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.encoders.bert import BertEncoderConfig
from regard.training.checkpoint import put_weights

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

NAMES = {
    "encoder.blocks.": "bert.encoder.layer.",
    "self_attention.query_map": "attention.self.query",
    "self_attention.key_map": "attention.self.key",
    "self_attention.value_map": "attention.self.value",
    "self_attention.output_map": "attention.output.dense",
    "self_residual.norm": "attention.output.LayerNorm",
    "feed_forward.hidden_map": "intermediate.dense",
    "feed_forward.output_map": "output.dense",
    "feed_residual.norm": "output.LayerNorm",
    "encoder.embedding.": "bert.embeddings.word_embeddings.",
    "encoder.positions.embedding": "bert.embeddings.position_embeddings",
    "encoder.segment_embedding": "bert.embeddings.token_type_embeddings",
    "encoder.embedding_norm": "bert.embeddings.LayerNorm",
}
HEADS = {"hidden.": "bert.pooler.dense.", "output.": "classifier."}


def their_name(name):
    for ours, theirs in HEADS.items():
        if name.startswith(ours):
            return name.replace(ours, theirs)
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return name


def test_logits_of_pairs_equal_those_of_hugging_face():
    torch.manual_seed(0)
    theirs = transformers.BertForSequenceClassification(
        transformers.BertConfig(
            vocab_size=11,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=12,
            max_position_embeddings=16,
            num_labels=3,
            # Fresh weights of the usual size are so small that mistakes would hide.
            initializer_range=0.5,
        )
    ).eval()
    encoder = BertEncoderConfig(
        dim=8,
        num_layers=2,
        num_heads=2,
        feed_forward_dim=12,
        max_length=16,
        norm_epsilon=1e-12,
    )
    ours = Classifier(
        ClassifierConfig(encoder=encoder, pooling="first", has_hidden=True), TextSpec(11), 3
    )
    weights = theirs.state_dict()
    names = [name for name, _ in ours.named_parameters()]
    put_weights(ours, {name: weights[their_name(name)] for name in names}, "BERT")
    # Start, a text, its end, another, its end; the second row is shorter.
    values = torch.tensor([[2, 5, 6, 7, 3, 8, 9, 3], [2, 5, 3, 10, 3, 0, 0, 0]])
    mask = torch.tensor([[True] * 8, [True] * 5 + [False] * 3])
    segments = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1]])
    with torch.no_grad():
        found = ours.eval()(values, mask)
        expected = theirs(values, attention_mask=mask.long(), token_type_ids=segments).logits
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
