import zipfile

import pytest

from regard.core.errors import DataError
from regard.data.audio.files import find_sounds, names_sounds, read_sound_folder, read_transcripts
from regard.data.example import Example


@pytest.fixture
def sounds(tmp_path):
    for name in ("cat/a.wav", "cat/b.flac", "dog/new/c.WAV", "d.wav", "cat/notes.txt", ".x/e.wav"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"RIFF....WAVE")
    return tmp_path / "pets"


def test_folders_are_labels(sounds):
    assert read_sound_folder(sounds) == [
        Example(f"{sounds}/cat/a.wav", "cat"),
        Example(f"{sounds}/cat/b.flac", "cat"),
        Example(f"{sounds}/dog/new/c.WAV", "dog"),
    ]
    with pytest.raises(DataError, match=r"holds no recording in a folder of its own label"):
        read_sound_folder(sounds / "cat")


@pytest.mark.parametrize("heading", ["", "recording\ttranscript\n", "Path\tText\n"])
def test_paths_start_at_the_folder_of_the_file(sounds, write, caplog, heading):
    rows = "cat/a.wav\tmiaow\nd.wav#t=1,2.5\twoof\nnone.wav\t?\ntones/0/3\tlow\n"
    assert read_transcripts(write("pets/t.tsv", heading + rows)) == [
        Example(f"{sounds}/cat/a.wav", "miaow"),
        Example(f"{sounds}/d.wav#t=1,2.5", "woof"),
        Example("tones/0/3", "low"),
    ]
    assert "skipped 1 of 4 examples in" in caplog.text and "none.wav)" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pets/t.tsv", "x.wav\tno\n", r"t.tsv names no recording that exists. First: .*x.wav"),
        ("pets/d.wav", "", r"d.wav is a recording, but recordings to learn from stand in a file"),
        ("pets/d.zip", "", r"d.zip is an archive, but"),
    ],
)
def test_what_is_no_file_of_transcripts_is_told(sounds, write, name, content, message):
    with pytest.raises(DataError, match=message):
        read_transcripts(write(name, content))


def test_a_folder_is_no_file_of_transcripts(sounds):
    with pytest.raises(DataError, match="is a folder, but transcripts stand in a file"):
        read_transcripts(sounds)


def test_two_recordings_a_line_are_refused(sounds, write):
    path = write("pets/t.tsv", "cat/a.wav\td.wav\tno\n")
    with pytest.raises(DataError, match="must name one recording for each transcript"):
        read_transcripts(path, columns=("source", "source", "target"))


def test_what_is_asked_is_found(sounds, write):
    for one in (f"{sounds}/d.wav", f"{sounds}/d.wav#t=0,1", "tones/0/3"):
        assert find_sounds(one) == [one]
    plain = (sounds / "d.wav").rename(sounds / "d")
    assert find_sounds(str(plain)) == [str(plain)]
    assert find_sounds(f"{sounds}/cat") == [f"{sounds}/cat/a.wav", f"{sounds}/cat/b.flac"]
    with zipfile.ZipFile(sounds / "all.zip", "w") as archive:
        for name in ("z.wav", "a/b.ogg", "read.me"):
            archive.writestr(name, "")
    assert find_sounds(f"{sounds}/all.zip") == [
        f"{sounds}/all.zip/a/b.ogg",
        f"{sounds}/all.zip/z.wav",
    ]
    listed = write("pets/list.txt", "cat/a.wav\n\ntone/0/1\n")
    assert find_sounds(str(listed)) == [f"{sounds}/cat/a.wav", "tone/0/1"]


def test_what_holds_no_recording_is_told(tmp_path):
    with pytest.raises(DataError, match="holds no recording"):
        find_sounds(str(tmp_path))
    with pytest.raises(DataError, match="none.wav does not exist"):
        find_sounds(str(tmp_path / "none.wav"))


def test_names_tell_recordings_from_text():
    assert names_sounds([Example("path"), Example("a.wav"), Example("b.WAV#t=1,2")])
    assert names_sounds([Example("fsdd/0/train/3")])
    assert not names_sounds([Example("a sentence."), Example("another")])
