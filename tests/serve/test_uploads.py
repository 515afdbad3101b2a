"""Uploads: decoded in a process of their own, within limits, and written again without loss."""

import asyncio
import base64
import json
import os
import signal
import urllib.request
from functools import partial

import numpy as np
import pytest
from PIL import Image

import regard
from regard.data.audio.decoding import open_audio
from regard.data.audio.wav import read_file
from regard.data.image.io import open_image
from regard.runs.request import Request
from regard.runs.train import train
from regard.serve.errors import RequestError
from regard.serve.limits import Limits
from regard.serve.uploads import Uploads, _write_wave

TINY = (
    "data.source.num_mels=8", "data.source.max_seconds=5.0", "model.encoder.dim=4",
    "model.decoder.dim=6", "model.decoder.embedding_dim=4", "train.max_steps=2",
    "train.validate_every=2", "search.beams=2",
)  # fmt: skip


def write_wave(path, samples, rate=8000):
    _write_wave(str(path), samples.astype("<f4").tobytes(), rate)
    return path


@pytest.fixture(scope="module")
def uploads():
    one = Uploads(Limits(pixels=1000, audio=1.0))
    yield one
    one.close()
    assert not one._folder.exists()


def store(uploads, content, medium, read):
    async def run():
        with uploads.folder() as folder:
            path = await uploads.store(content, folder, medium=medium, read=read)
            assert os.path.dirname(path) == str(folder)
            return READERS[medium](path)

    return asyncio.run(run())


def read_audio(path):
    return read_file(path, max_seconds=10).samples


READERS = {"image": lambda path: np.asarray(open_image(path)), "audio": read_audio}


def do_nothing(path):
    """Decode nothing; a function of a module, since it is sent to the worker process."""


def end_process(path):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif"])
def test_images_are_the_same(uploads, tmp_path, suffix):
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    path = tmp_path / f"one.{suffix}"
    Image.fromarray(pixels).save(path)
    expected = np.asarray(open_image(str(path)))
    assert (store(uploads, path.read_bytes(), "image", do_nothing) == expected).all()


def test_recordings_are_the_same(uploads, tmp_path):
    samples = np.random.default_rng(0).uniform(-1, 1, 4000).astype(np.float32)
    path = write_wave(tmp_path / "one.wav", samples)
    assert (store(uploads, path.read_bytes(), "audio", do_nothing) == samples).all()


def test_large_uploads_are_refused(uploads, tmp_path):
    Image.new("RGB", (100, 100)).save(tmp_path / "large.png")
    path = write_wave(tmp_path / "long.wav", np.ones(8001))
    for file, medium, word in ((tmp_path / "large.png", "image", "pixels"), (path, "audio", "sec")):
        with pytest.raises(RequestError, match=rf"^The upload has .*{word}") as caught:
            store(uploads, file.read_bytes(), medium, do_nothing)
        assert "#t=" not in caught.value.message and "--" not in caught.value.message


def test_a_decoder_that_dies_leaves_the_server_alive(uploads, tmp_path):
    Image.new("RGB", (10, 10)).save(tmp_path / "one.png")
    content = (tmp_path / "one.png").read_bytes()
    with pytest.raises(RequestError, match="cannot be decoded within its limits"):
        store(uploads, content, "image", end_process)
    assert store(uploads, content, "image", do_nothing).shape == (10, 10, 3)


def test_a_recording_over_http(serving, tmp_path):
    request = Request(
        data="tones:30", recipe="chan2016-laptop", settings=TINY, out=tmp_path / "run", device="cpu"
    )
    folder = train(request).folder
    samples = open_audio("tones/0/1", max_seconds=9)
    path = write_wave(tmp_path / "one.wav", samples.samples, samples.rate)
    ((expected,),) = regard.load(folder, device="cpu").predict([str(path)])
    with serving(f"speech={folder}") as client:
        reply = client.post("/v1/predict", files={"file": path.read_bytes()})
        assert reply.status_code == 200, reply.text
        assert reply.json()["results"][0]["predictions"][0]["text"] == expected.text
        data = base64.b64encode(path.read_bytes()).decode()
        post = partial(client.post, "/v1/attention")
        reply = post(json={"source": {"data": data}})
        assert reply.status_code == 200, reply.text
        assert post(json={"source": {"data": data[:100]}}).status_code == 422


def test_the_worker_ends_with_a_killed_server(starting, task_run, tmp_path):
    Image.new("RGB", (16, 16)).save(tmp_path / "one.png")
    with starting(f"labels={task_run('classification').folder}") as server:
        data = base64.b64encode((tmp_path / "one.png").read_bytes()).decode()
        body = json.dumps({"sources": {"data": data}}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.url}/v1/predict", body, headers)
        with urllib.request.urlopen(request, timeout=30) as reply:
            assert reply.status == 200
        server.process.kill()
        # The worker has the same stream of errors, which ends with the last process.
        server._reader.join(20)
        assert not server._reader.is_alive()
