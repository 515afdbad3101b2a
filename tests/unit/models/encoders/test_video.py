import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.core.specs import ImageSpec, VideoSpec
from regard.models.encoders import build_encoder
from regard.models.encoders.hybrid import HybridEncoderConfig
from regard.models.encoders.resnet import ResnetEncoderConfig
from regard.models.encoders.rnn import RnnEncoderConfig
from regard.models.encoders.video import VideoEncoder, VideoEncoderConfig
from regard.models.encoders.vit import VitEncoderConfig

SHAPE = (5, 3, 8, 6)
SPEC = VideoSpec(5, ImageSpec(3, 8, 6))
IMAGE_ENCODERS = {
    "resnet": ResnetEncoderConfig(widths=(4, 8), blocks=(1, 1)),
    "hybrid": HybridEncoderConfig(
        grid=ResnetEncoderConfig(widths=(4,), blocks=(1,)),
        dim=8,
        num_layers=1,
        num_heads=2,
        feed_forward_dim=8,
    ),
    "vit": VitEncoderConfig(patch=2, dim=8, num_layers=1, num_heads=2, feed_forward_dim=8),
}
MASK = torch.ones(2, 1, dtype=torch.bool)


@pytest.fixture(params=IMAGE_ENCODERS)
def image_encoder(request):
    return IMAGE_ENCODERS[request.param]


@pytest.fixture(params=["transformer", "gru"])
def encoder(request, image_encoder):
    torch.manual_seed(0)
    config = VideoEncoderConfig(
        image=image_encoder, over_time=request.param, num_layers=2, num_heads=2, dropout=0.0
    )
    return VideoEncoder(config, SPEC).eval()


@pytest.fixture
def videos():
    return torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(1))


def test_memory_contains_the_cells_of_all_frames(encoder, videos):
    memory = encoder(videos, MASK)
    rows, columns = encoder.image(videos[:, 0], MASK).layout
    assert memory.layout == (5, rows, columns)
    assert memory.states.shape == (2, 5 * rows * columns, encoder.memory_dim)
    assert memory.mask.all() and memory.mask.shape == memory.states.shape[:2]
    assert torch.allclose(memory.summary, memory.states.mean(1))


def test_batched_equals_alone(encoder, videos):
    together = encoder(videos, MASK).states
    for row in range(2):
        alone = encoder(videos[row : row + 1], MASK[:1]).states
        assert torch.allclose(together[row : row + 1], alone, atol=1e-5)


def test_states_depend_on_the_order_of_frames(encoder, videos):
    forwards = encoder(videos, MASK).summary
    backwards = encoder(videos.flip(1), MASK).summary
    assert (forwards - backwards).abs().max() > 1e-3


def test_every_frame_affects_every_other(encoder, videos):
    videos.requires_grad_()
    memory = encoder(videos, MASK)
    per_frame = memory.states.view(2, 5, -1, encoder.memory_dim)
    for frame in (0, 4):
        # A mean over the outputs of a norm would be constant.
        (gradient,) = torch.autograd.grad(
            per_frame[:, frame, :, 0].sum(), videos, retain_graph=True
        )
        assert (gradient.flatten(2).abs().sum(-1) > 0).all()


def test_positions_distinguish_equal_cells():
    """Frames that are all the same colour still have cells that differ."""
    torch.manual_seed(0)
    config = VideoEncoderConfig(
        image=IMAGE_ENCODERS["resnet"], num_layers=1, num_heads=2, dropout=0.0
    )
    encoder = VideoEncoder(config, SPEC).eval()
    memory = encoder(torch.zeros(1, *SHAPE), MASK[:1])
    states = memory.states[0]
    distances = torch.cdist(states, states) + torch.eye(len(states))
    assert distances.min() > 1e-4


def build_stacked(image_encoder, num_seen):
    torch.manual_seed(0)
    config = VideoEncoderConfig(
        image=image_encoder, num_seen=num_seen, num_layers=1, num_heads=2, dropout=0.0
    )
    return VideoEncoder(config, SPEC).eval()


@pytest.mark.parametrize("num_seen", [2, 3])
def test_frames_are_stacked_with_preceding_frames(image_encoder, videos, num_seen):
    """As if each frame had the channels of its past behind its own, the first being its own."""
    encoder = build_stacked(image_encoder, num_seen)
    frames = [[max(0, frame - past) for past in range(num_seen)] for frame in range(5)]
    stacked = torch.stack([videos[:, index].flatten(1, 2) for index in frames], dim=1)
    found = encoder(videos, MASK)
    encoder.num_seen = 1
    assert torch.equal(encoder(stacked, MASK).states, found.states)
    assert found.layout[0] == 5


def test_motion_changes_the_states_at_its_position(videos):
    """Without layers over time, a cell of a frame would not know the frame before."""
    encoder = build_stacked(IMAGE_ENCODERS["resnet"], 2)
    encoder.over_time = torch.nn.Identity()
    before = encoder(videos, MASK).states.view(2, 5, -1, 8)
    videos[:, 1] += 1
    changed = (encoder(videos, MASK).states.view(2, 5, -1, 8) - before).abs().amax((0, 2, 3)) > 0
    assert changed.tolist() == [False, True, True, False, False]


def test_zero_stacked_frames_is_an_error():
    with pytest.raises(ConfigError, match="`num_seen` must be at least 1, but is 0"):
        VideoEncoderConfig(num_seen=0)


def test_attention_over_time_and_space_is_recorded(videos):
    config = VideoEncoderConfig(image=IMAGE_ENCODERS["resnet"], num_layers=2, num_heads=2)
    encoder = VideoEncoder(config, SPEC).eval()
    with record(encoder, is_self=True) as maps:
        memory = encoder(videos, MASK)
    num = memory.states.shape[1]
    assert maps.stack_self().shape == (2, 2, 2, num, num)


def test_heads_must_divide_the_width():
    config = VideoEncoderConfig(image=IMAGE_ENCODERS["resnet"], num_heads=3)
    with pytest.raises(ConfigError, match=r"`num_heads` must divide .* \(8\), but is 3"):
        VideoEncoder(config, SPEC)


def test_odd_width_is_an_error_for_a_bidirectional_gru():
    config = VideoEncoderConfig(
        image=ResnetEncoderConfig(widths=(5,), blocks=(1,)), over_time="gru"
    )
    with pytest.raises(ConfigError, match="must be even with `over_time` 'gru', but is 5"):
        VideoEncoder(config, SPEC)


def test_image_encoder_is_an_error_for_videos():
    with pytest.raises(ConfigError, match="reads text, but the source is videos.*'video'"):
        build_encoder(RnnEncoderConfig(), SPEC)
    with pytest.raises(ConfigError, match="reads videos, but the source is images"):
        build_encoder(VideoEncoderConfig(), SPEC.frame)
