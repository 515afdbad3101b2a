"""Labels of cells and boxes of phrases: shapes, gradients, and what each is made of."""

import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec, TextImageSpec, TextSpec
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig
from regard.models.heads.regions import (
    Grounder,
    GrounderConfig,
    PatchLabeller,
    PatchLabellerConfig,
    cell_centres,
    cell_overlaps,
)

SHAPE = (3, 8, 12)
SPEC = TextImageSpec(TextSpec(9), ImageSpec(*SHAPE))
ENCODERS = [
    VitEncoderConfig(
        patch=4, dim=8, num_layers=1, num_heads=2, feed_forward_dim=8, dropout=0.0, summary="mean"
    ),
    ResnetEncoderConfig(widths=(6, 8), blocks=(1, 1)),
]
TEXT = RnnEncoderConfig(embedding_dim=6, dim=8, dropout=0.0)
MASK = torch.tensor([[True, True, True], [True, True, False]])
TOKENS = torch.tensor([[4, 5, 6], [7, 5, 0]])


@pytest.fixture(params=ENCODERS, ids=lambda config: config.kind)
def encoder(request):
    torch.manual_seed(0)
    return request.param


def images(num=2):
    torch.manual_seed(1)
    return torch.randn(num, *SHAPE)


def grounder(encoder):
    return Grounder(GrounderConfig(image=encoder, text=TEXT, dim=8, dropout=0.0), SPEC)


def assert_all_learn(model, cost, idle=()):
    cost.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0 or name.endswith(idle), name


def labeller(encoder):
    return PatchLabeller(PatchLabellerConfig(encoder=encoder, dropout=0.0), SPEC.image, 5)


def test_every_cell_has_a_logit_for_every_label(encoder):
    model = labeller(encoder)
    logits = model(images(), torch.ones(2, 1, dtype=torch.bool))
    rows, columns = (2, 3) if encoder.kind == "vit" else (4, 6)
    assert logits.shape == (2, rows, columns, 5)
    # Of an attention without padding, the bias of the keys moves nothing.
    assert_all_learn(model, logits.logsumexp(-1).sum(), idle=("key_map.bias",))


def test_logits_are_in_the_grid_order_of_the_states(encoder):
    model = labeller(encoder).eval()
    states = model.encoder(images(), torch.ones(2, 1)).states
    logits = model(images(), torch.ones(2, 1, dtype=torch.bool))
    columns = logits.shape[2]
    expected = model.output(states[1, columns + 2])
    assert torch.allclose(logits[1, 1, 2], expected, atol=1e-6)


def test_boxes_are_ordered_and_weights_sum_to_one(encoder):
    model = grounder(encoder)
    found = model((TOKENS, images()), MASK)
    left, upper, right, lower = found.boxes.unbind(-1)
    assert (left < right).all() and (upper < lower).all()
    mean = (found.boxes[:, :2] + found.boxes[:, 2:]) / 2
    assert (mean > 0).all() and (mean < 1).all()
    assert found.weights.shape == (2, found.layout[0] * found.layout[1])
    assert torch.allclose(found.weights.sum(-1), torch.ones(2))
    cost = found.boxes.square().sum() + found.weights.square().sum()
    assert_all_learn(model, cost, idle=("key_map.bias",))


def test_boxes_do_not_depend_on_the_batch(encoder):
    model = grounder(encoder).eval()
    together = model((TOKENS, images()), MASK)
    alone = model((TOKENS[1:, :2], images()[1:]), MASK[1:, :2])
    assert torch.allclose(together.boxes[1], alone.boxes[0], atol=1e-5)
    assert torch.allclose(together.weights[1], alone.weights[0], atol=1e-5)


def test_recorded_weights_are_those_of_the_output(encoder):
    model = grounder(encoder).eval()
    with torch.inference_mode(), record(model.attention) as maps:
        found = model((TOKENS, images()), MASK)
    assert torch.equal(maps.stack()[:, 0, 0, 0], found.weights)


def test_box_is_initially_centred_at_the_attended_position():
    model = grounder(ENCODERS[1]).eval()
    torch.nn.init.zeros_(model.output.weight)
    torch.nn.init.zeros_(model.output.bias)
    with torch.no_grad():
        found = model((TOKENS, images()), MASK)
    centres = cell_centres(found.layout, like=found.weights)
    mean = found.weights @ centres
    assert torch.allclose(found.boxes, torch.cat([mean - 0.25, mean + 0.25], -1), atol=1e-5)


def test_cell_centres_are_row_by_row():
    centres = cell_centres((2, 3), like=torch.zeros(1))
    assert centres[0].tolist() == pytest.approx([1 / 6, 1 / 4])
    assert centres[5].tolist() == pytest.approx([5 / 6, 3 / 4])
    assert centres[1].tolist() == pytest.approx([3 / 6, 1 / 4])


def test_cell_overlaps_equal_the_fraction_of_points_in_the_box():
    boxes = torch.tensor([[0.1, 0.2, 0.65, 0.9], [0.0, 0.0, 1.0, 1.0], [-0.2, 0.4, 0.3, 1.3]])
    shares = cell_overlaps(boxes, (3, 4))
    points = cell_centres((300, 400), like=boxes)
    is_inside = (points > boxes[:, None, :2]).all(-1) & (points < boxes[:, None, 2:]).all(-1)
    counted = is_inside.float().view(3, 3, 100, 4, 100).mean((2, 4)).flatten(1)
    assert torch.allclose(shares, counted, atol=0.02)
    assert torch.equal(shares[1], torch.ones(12))


def test_text_encoder_is_an_error_for_images():
    with pytest.raises(ConfigError, match="`encoder.kind` 'rnn' reads text"):
        PatchLabeller(PatchLabellerConfig(encoder=TEXT), SPEC.image, 3)


def test_width_must_be_at_least_one():
    with pytest.raises(ConfigError, match="`dim` must be at least 1"):
        GrounderConfig(dim=0)
