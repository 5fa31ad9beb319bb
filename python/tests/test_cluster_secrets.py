"""The token of a cluster goes to its server alone."""

import http.server
import socket
import threading

import pytest

import ddiff
from ddiff import _cluster


class Server(http.server.ThreadingHTTPServer):
    """Answers each request by a function, and keeps the requests."""

    def __init__(self, answer, host="127.0.0.1", port=0):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append((self.path, self.headers.get("Authorization")))
                answer(self)

            def log_message(self, *_):
                pass

        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


def status(handler, text=b'{"campaign": {"phase": "running"}, "status": {}}'):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(text)


@pytest.fixture
def serve():
    servers = []

    def start(*args):
        servers.append(Server(*args))
        return servers[-1]

    yield start
    for s in servers:
        s.shutdown()
        s.server_close()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirect(serve, code):
    thief = serve(status)

    def redirect(handler):
        handler.send_response(code)
        handler.send_header("Location", thief.url + handler.path)
        handler.end_headers()

    with pytest.raises(ValueError, match=str(code)):
        ddiff.Cluster(serve(redirect).url, "secret").campaign("a").status()
    assert thief.requests == []


def test_long_answer(serve, monkeypatch):
    monkeypatch.setattr(_cluster, "_MAX_ANSWER", 1 << 20)
    with pytest.raises(ConnectionError, match="more than 1 MiB"):
        ddiff.Cluster(serve(lambda h: status(h, b"a" * ((1 << 20) + 1))).url, "secret").campaign("a").status()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host", "//host", "host:8080", "https://user:password@host", "https://host?token=secret"])
def test_addresses(url):
    with pytest.raises(ValueError, match="https://host:8620") as refused:
        ddiff.Cluster(url, "secret")
    assert "password" not in str(refused.value).replace("user, password", "")


def test_localhost(serve, monkeypatch):
    """Another user of the machine listens on ::1, and a proxy of the environment is not asked for this machine."""
    own = serve(status)
    thief, proxy = serve(status, "::1", own.server_port), serve(status)
    monkeypatch.setenv("http_proxy", proxy.url)
    for url in (own.url, f"http://localhost:{own.server_port}", f"http://LOCALHOST:{own.server_port}/"):
        assert ddiff.Cluster(url, "secret").campaign("a").status() == {"phase": "running"}
    assert [token for _, token in own.requests] == 3 * ["Bearer secret"]
    assert thief.requests == [] and proxy.requests == []
