import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from regard.core.cached_folder import cache_folder
from regard.core.errors import DataError
from regard.data.datasets.download import fetch

BODY = b"pairs\n" * 1000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing.gz":
            self.send_error(404)
            return
        self.send_response(200)
        extra = 10 if self.path == "/cut.gz" else 0
        if self.path != "/endless.gz":
            self.send_header("Content-Length", str(len(BODY) + extra))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def unused_url():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def test_first_use_downloads(server, tmp_path):
    assert fetch(f"{server}/a.gz", cache=tmp_path).read_bytes() == BODY


def test_file_of_unknown_size_is_downloaded(server, tmp_path):
    assert fetch(f"{server}/endless.gz", cache=tmp_path).read_bytes() == BODY


def test_checksum_is_stored(server, tmp_path):
    fetch(f"{server}/a.gz", cache=tmp_path)
    expected = hashlib.sha256(BODY).hexdigest()
    assert (tmp_path / "a.gz.sha256").read_text() == expected + "\n"


def test_second_use_reads_the_cache(server, unused_url, tmp_path):
    first = fetch(f"{server}/a.gz", cache=tmp_path)
    assert fetch(f"{unused_url}/a.gz", cache=tmp_path) == first


def test_existing_file_without_checksum_is_used(unused_url, tmp_path):
    (tmp_path / "a.gz").write_bytes(BODY)
    fetch(f"{unused_url}/a.gz", cache=tmp_path)
    assert (tmp_path / "a.gz.sha256").exists()


def test_name_sets_the_file_name(server, tmp_path):
    assert fetch(f"{server}/a.gz", cache=tmp_path, name="b.gz") == tmp_path / "b.gz"


def test_default_cache_is_the_cache_folder(server, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "new"))
    assert fetch(f"{server}/a.gz") == tmp_path / "new" / "a.gz"


def test_default_cache_folder_is_in_home(tmp_path, monkeypatch):
    monkeypatch.delenv("REGARD_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "regard"


def test_changed_file_raises(server, tmp_path):
    path = fetch(f"{server}/a.gz", cache=tmp_path)
    path.write_bytes(b"other")
    expected, actual = hashlib.sha256(BODY).hexdigest(), hashlib.sha256(b"other").hexdigest()
    message = rf"a\.gz is not the file .* {expected}, but is {actual}\. Delete it to download"
    with pytest.raises(DataError, match=message):
        fetch(f"{server}/a.gz", cache=tmp_path)


def test_deleted_file_is_downloaded_again(server, tmp_path):
    path = fetch(f"{server}/a.gz", cache=tmp_path)
    path.unlink()
    assert fetch(f"{server}/a.gz", cache=tmp_path).read_bytes() == BODY


def test_http_error_raises_with_status(server, tmp_path):
    message = (
        r"/missing\.gz could not be downloaded: the server responded with 404 Not Found\. Check"
    )
    with pytest.raises(DataError, match=message):
        fetch(f"{server}/missing.gz", cache=tmp_path)


def test_refused_connection_raises(unused_url, tmp_path):
    message = r"/a\.gz could not be downloaded: .*refused.* Check the network and try again"
    with pytest.raises(DataError, match=message):
        fetch(f"{unused_url}/a.gz", cache=tmp_path)


def test_url_without_scheme_raises(tmp_path):
    with pytest.raises(DataError, match="could not be downloaded: unknown url type"):
        fetch("somewhere/a.gz", cache=tmp_path)


def test_incomplete_transfer_raises(server, tmp_path):
    message = "the transfer broke off after 6,000 of 6,010 bytes"
    with pytest.raises(DataError, match=message):
        fetch(f"{server}/cut.gz", cache=tmp_path)


@pytest.mark.parametrize("page", ["missing.gz", "cut.gz"])
def test_failed_download_leaves_no_files(server, tmp_path, page):
    with pytest.raises(DataError):
        fetch(f"{server}/{page}", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_cache_raises(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"could not be written: .*Set REGARD_CACHE to another"):
        fetch(f"{server}/a.gz", cache=tmp_path / "file")
