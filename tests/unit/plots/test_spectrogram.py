from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from regard.core.errors import ConfigError, DataError
from regard.plots.spectrogram import LINES, AudioAlignment, in_terminal, plot, save, spans


@pytest.fixture
def alignment():
    """Return two words in 1.2 seconds, aligned by attention and by CTC."""
    frames = np.random.default_rng(0).normal(size=(120, 40))
    attention = np.zeros((2, 30))
    attention[0, 5:9] = (0.1, 0.5, 0.3, 0.1)
    attention[1, 20] = 1.0
    ctc = np.zeros((2, 30))
    ctc[0, 6] = ctc[1, 21:23] = 1.0
    weights = {"attention": attention, "CTC": ctc}
    return AudioAlignment(frames, 1.2, ("low", "high & <b>"), weights, step=0.04)


def test_span_surrounds_the_largest_weight(alignment):
    assert spans(alignment.weights["attention"]) == [(6, 8), (20, 21)]
    assert spans(alignment.weights["CTC"]) == [(6, 7), (21, 23)]


def test_word_without_weight_has_no_span():
    assert spans([[0.0, 0.0], [0.2, 0.2]]) == [None, (0, 2)]


def test_spans_are_plotted_at_their_seconds(alignment):
    upper, _, lower, _ = plot(alignment).axes
    bars = [line.get_xdata() for line in upper.lines if len(set(line.get_ydata())) == 1]
    assert np.allclose(bars, [(0.24, 0.32), (0.8, 0.84)])
    assert [text.get_text() for text in upper.texts] == ["low", "high & <b>"]
    assert lower.get_title(loc="left") == "CTC"
    assert upper.get_xlim() == pytest.approx((0, 1.2))


def test_a_label_of_the_whole_recording_has_no_span(alignment):
    upper, *_ = plot(replace(alignment, has_spans=False)).axes
    assert not upper.lines and not upper.texts


def test_labels_of_overlapping_spans_are_on_two_lines(alignment):
    weights = {"attention": alignment.weights["attention"][[0, 0]]}
    upper, _ = plot(AudioAlignment(alignment.frames, 1.2, alignment.words, weights, step=0.04)).axes
    low, high = (text.get_position() for text in upper.texts)
    assert low[0] == high[0] and high[1] - low[1] > 3
    upper, *_ = plot(alignment).axes
    assert len({text.get_position()[1] for text in upper.texts}) == 1


def test_low_frequencies_are_at_the_bottom():
    frames = np.zeros((10, 4))
    frames[:, 0] = 5.0
    upper, _ = plot(AudioAlignment(frames, 0.1, ("hm",), {"CTC": np.ones((1, 5))}, step=0.02)).axes
    (image,) = upper.images
    pixels = np.asarray(image.get_array(), dtype=int).sum(-1)
    assert (pixels[-1] > pixels[0]).all()


def test_spectrogram_is_saved_in_every_format(alignment, tmp_path):
    for suffix in (".png", ".svg", ".pdf", ".html"):
        save(tmp_path / f"alignment{suffix}", alignment, title="low high")
    with Image.open(tmp_path / "alignment.png") as image:
        assert image.size[0] > 600
    assert "high &amp; &lt;b&gt;" in (tmp_path / "alignment.svg").read_text()
    assert "<html" in (tmp_path / "alignment.html").read_text()
    with pytest.raises(ConfigError, match=r"must end in \.png, \.svg, \.pdf or \.html"):
        save(tmp_path / "alignment.gif", alignment)


@pytest.mark.parametrize("has_color", [True, False])
def test_terminal_shows_the_weights_of_each_word(alignment, has_color):
    lines = in_terminal(alignment, has_color=has_color, width=71).plain.splitlines()
    assert len(lines) == LINES + 2 * (1 + 2) + 1
    assert all(len(line) <= 71 for line in lines)
    low = lines[LINES + 4]
    assert low.startswith("       low ")
    # 60 cells of 20 milliseconds: the seventh position is from 240 to 280 ms.
    cells = low[11:]
    assert [position for position, cell in enumerate(cells) if cell != " "] == [12, 13]
    assert lines[-1].endswith("1.20 s")


def test_silence_can_be_plotted():
    silent = AudioAlignment(np.zeros((5, 3)), 0.05, ("…",), {"CTC": np.zeros((1, 2))}, step=0.04)
    assert "0.05 s" in in_terminal(silent, width=40).plain
    assert plot(silent).axes


def test_invalid_frames_and_weights_are_refused(alignment):
    with pytest.raises(DataError, match=r"`frames` must be finite numbers .* shape \(3,\)"):
        AudioAlignment(np.zeros(3), 1.0, ("a",), {}, step=0.1)
    with pytest.raises(DataError, match="`weights` must have one row per target word"):
        AudioAlignment(alignment.frames, 1.2, ("low",), alignment.weights, step=0.04)
