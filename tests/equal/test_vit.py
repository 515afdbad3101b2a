"""Our classifier with a vision transformer's weights equals Hugging Face's on images."""

import pytest
import torch
from safetensors.torch import load_file

from regard.core.specs import ImageSpec
from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.encoders.vit import VitEncoderConfig
from regard.training.checkpoint import put_weights

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

NAMES = {
    "encoder.blocks.": "vit.encoder.layer.",
    "self_attention.query_map": "attention.attention.query",
    "self_attention.key_map": "attention.attention.key",
    "self_attention.value_map": "attention.attention.value",
    "self_attention.output_map": "attention.output.dense",
    "self_residual.norm": "layernorm_before",
    "feed_forward.hidden_map": "intermediate.dense",
    "feed_forward.output_map": "output.dense",
    "feed_residual.norm": "layernorm_after",
    "encoder.norm.": "vit.layernorm.",
    "encoder.patch_map.": "vit.embeddings.patch_embeddings.projection.",
    "encoder.positions.embedding.weight": "vit.embeddings.position_embeddings",
    "encoder.class_token": "vit.embeddings.cls_token",
}


def their_name(name):
    if name.startswith("output."):
        return f"classifier.{name.removeprefix('output.')}"
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return name


def saved(model, folder):
    """Return the weights as in a file: in memory, versions of the library name them differently."""
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    return load_file(folder / "model.safetensors")


def test_logits_of_images_equal_those_of_hugging_face(tmp_path):
    torch.manual_seed(0)
    theirs = transformers.ViTForImageClassification(
        transformers.ViTConfig(
            image_size=(6, 4),
            patch_size=2,
            num_channels=3,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=12,
            num_labels=5,
            # Fresh weights of the usual size are so small that mistakes would hide.
            initializer_range=0.5,
        )
    ).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    encoder = VitEncoderConfig(
        patch=2, dim=8, num_layers=2, num_heads=2, feed_forward_dim=12, norm_epsilon=1e-12
    )
    config = ClassifierConfig(encoder=encoder, pooling="summary")
    ours, weights = Classifier(config, ImageSpec(3, 6, 4), 5).eval(), saved(theirs, tmp_path)
    put_weights(
        ours,
        {
            name: weights[their_name(name)].view(parameter.shape)
            for name, parameter in ours.named_parameters()
        },
        "ViT",
    )
    values = torch.randn(3, 3, 6, 4)
    with torch.no_grad():
        found = ours(values, torch.ones(3, 1).bool())
        expected = theirs(values).logits
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
