import ctypes
import shutil

import pytest

from regard.core.native import library
from regard.core.native.library import load_library

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, library.COMPILERS)), reason="there is no C++ compiler"
)


@pytest.fixture(autouse=True)
def not_loaded(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(library.VARIABLE, raising=False)
    monkeypatch.delenv("CXX", raising=False)
    load_library.cache_clear()
    yield
    load_library.cache_clear()


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A library that is compiled quickly."""
    source = tmp_path / "kernels.cpp"
    source.write_text(
        'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }'
    )
    monkeypatch.setattr(library, "SOURCE", source)
    return source


@needs_compiler
def test_library_is_compiled_once(tiny, monkeypatch):
    assert load_library().answer() == 42
    load_library.cache_clear()

    def fail(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(library, "_build", fail)
    assert isinstance(load_library(), ctypes.CDLL)


@needs_compiler
def test_another_source_is_another_library(tiny):
    assert load_library().answer() == 42
    load_library.cache_clear()
    tiny.write_text(tiny.read_text().replace("42", "43"))
    assert load_library().answer() == 43


@needs_compiler
def test_damaged_library_is_compiled_again(tiny, tmp_path):
    load_library()
    load_library.cache_clear()
    (file,) = (tmp_path / "cache" / "kernels").glob(f"*/{library.LIBRARY}")
    # A new file: the old one is mapped into this process.
    file.unlink()
    file.write_bytes(b"no library")
    assert load_library().answer() == 42


@needs_compiler
def test_faulty_source_leaves_search_to_torch(tiny, caplog):
    tiny.write_text("this is no C++")
    with caplog.at_level("INFO", logger="regard"):
        assert load_library() is None
    assert "cannot be built" in caplog.text


def test_missing_compiler_leaves_search_to_torch(monkeypatch, caplog):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with caplog.at_level("INFO", logger="regard"):
        assert load_library() is None
    assert "no C++ compiler" in caplog.text


def test_compiler_that_does_not_exist_leaves_search_to_torch(monkeypatch):
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert load_library() is None


def test_cache_that_cannot_be_written_leaves_search_to_torch(tiny, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    assert load_library() is None


def test_variable_disables_the_kernels(monkeypatch):
    monkeypatch.setenv(library.VARIABLE, "0")
    assert load_library() is None
