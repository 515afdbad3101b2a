"""Tokens, hosts, origins, headers and logs."""

import json
import re
import socket
from pathlib import Path

import pytest

import regard
from regard.core.errors import ConfigError
from regard.serve.security import check_host, check_origins, read_token
from regard.serve.server import _listen
from regard.serve.state import Access

TOKEN = "a-secret-of-some-length"
BODY = {"sources": "a b"}


@pytest.fixture(scope="module")
def guarded(served_runs):
    from tests.serve.conftest import client_of

    access = Access(token=TOKEN, origins=("https://example.org",), hosts=("testserver",))
    with client_of(served_runs[0], access=access) as client:
        yield client


def test_requests_need_the_token(guarded):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        reply = guarded.post("/v1/predict", json=BODY, headers=headers)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.post("/v1/predict", json=BODY, headers=headers).status_code == 200
    assert guarded.get("/metrics").status_code == 401
    assert guarded.get("/metrics", headers=headers).status_code == 200
    assert guarded.get("/healthz").status_code == guarded.get("/readyz").status_code == 200


def test_refused_requests_are_counted(guarded):
    def count():
        headers = {"Authorization": f"Bearer {TOKEN}"}
        lines = guarded.get("/metrics", headers=headers).text.splitlines()
        name = 'regard_requests_total{route="refused",status="401"}'
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    before = count()
    assert guarded.get("/v1/models").status_code == 401
    assert count() == before + 1


def test_clients_of_libretranslate_send_the_token_as_a_field(guarded):
    body = {"q": "a b", "source": "en", "target": "de"}
    assert guarded.post("/translate", json=body).status_code == 403
    assert guarded.post("/translate", json={**body, "api_key": "wrong"}).status_code == 403
    assert guarded.post("/translate", json={**body, "api_key": TOKEN}).status_code == 200
    assert guarded.post("/translate", data={**body, "api_key": TOKEN}).status_code == 200
    assert guarded.post("/translate", params={**body, "api_key": TOKEN}).status_code == 200
    assert guarded.get("/languages").status_code == 403
    assert guarded.get("/languages", params={"api_key": TOKEN}).status_code == 200


def test_other_hosts_and_origins_are_refused(guarded):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    foreign = {**headers, "Host": "attacker.example"}
    assert guarded.get("/v1/models", headers=foreign).status_code == 400
    for origin, status in (
        ("https://attacker.example", 403),
        ("null", 403),
        ("http://testserver", 200),
        ("https://example.org", 200),
    ):
        reply = guarded.get("/v1/models", headers={**headers, "Origin": origin})
        assert reply.status_code == status, origin
        allowed = reply.headers.get("access-control-allow-origin")
        assert allowed == (origin if origin == "https://example.org" else None)


def test_no_origin_is_allowed_by_default(client):
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    reply = client.options("/v1/predict", headers=headers)
    assert reply.status_code == 403
    assert "access-control-allow-origin" not in reply.headers


def test_every_reply_has_security_headers(client):
    for path in ("/v1/models", "/missing", "/docs", "/static/docs.css", "/static/../app.py"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_browsers_keep_no_old_files_of_the_page(client):
    for path in ("/", "/static/main.js"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-cache"
    again = client.get("/static/main.js", headers={"If-None-Match": headers["etag"]})
    assert again.status_code == 304
    assert client.get("/v1/models").headers["cache-control"] == "no-store"


def test_the_documentation_loads_nothing_from_elsewhere(client):
    page = client.get("/docs").text
    assert "http" not in page.replace("<!doctype html>", "")
    assert "<script" not in page and "style=" not in page
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page


def test_the_page_loads_nothing_from_elsewhere(client):
    page = client.get("/").text
    assert "https://" not in page and "style=" not in page
    # Scripts are modules of the server; none is part of the markup.
    assert re.findall(r"<script[^>]*>(?!</script>)", page) == []
    for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        assert client.get(path).status_code == 200
    policy = client.get("/").headers["content-security-policy"]
    assert "script-src 'self'; style-src 'self'" in policy
    for script in (Path(regard.__file__).parent / "serve" / "static").glob("*.js"):
        addresses = re.findall(r"https?://[^\"'`]+", script.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, script


def test_a_token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    assert read_token(path) == TOKEN
    assert read_token(None) is None
    for content in ("", "short", f"{TOKEN} {TOKEN}", f"{TOKEN}é"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match="one token of at least 16 ASCII characters"):
            read_token(path)


def test_origins_are_as_browsers_send_them():
    check_origins(("https://example.org", "http://localhost:3000", "http://[::1]:80"))
    check_origins(("moz-extension://0a1b-2c",))
    for origin in ("*", "example.org", "https://example.org/", "https://Example.org", "null"):
        with pytest.raises(ConfigError, match=r"`--cors` must be scheme, host and port"):
            check_origins((origin,))


def test_other_machines_need_a_token():
    check_host("127.0.0.1", has_token=False, is_insecure=False)
    check_host("0.0.0.0", has_token=True, is_insecure=False)
    check_host("0.0.0.0", has_token=False, is_insecure=True)
    with pytest.raises(ConfigError, match="--token-file"):
        check_host("0.0.0.0", has_token=False, is_insecure=False)


def test_logs_have_nothing_of_a_request(live):
    import urllib.request

    for word in ("confidential", "a b c"):
        request = urllib.request.Request(
            f"{live.url}/v1/predict?{word.replace(' ', '+')}",
            data=json.dumps({"sources": word}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            assert reply.status == 200
    assert "confidential" not in "".join(live.log)


def test_parts_of_a_reply_are_sent_at_once():
    # asyncio sets TCP_NODELAY only for sockets that name their protocol.
    with _listen("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
