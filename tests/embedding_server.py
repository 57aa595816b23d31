"""A real HTTP server on this machine that speaks OpenAI's embedding protocol."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.chat_server import running


class EmbeddingServer(ThreadingHTTPServer):
    """Embeds by `embed`, a function of one text; the first `faults` requests get an error that may pass."""

    daemon_threads = True

    def __init__(self, embed, faults=0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.embed, self.faults = embed, faults
        self.guard = threading.Lock()
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.guard:
            self.server.requests.append(body)
            fault = len(self.server.requests) <= self.server.faults
        assert self.path == "/v1/embeddings"
        assert body["encoding_format"] == "float"
        if fault:
            self.send(503, {"error": {"message": "overloaded"}})
            return
        rows = [
            {"object": "embedding", "index": i, "embedding": self.server.embed(text)}
            for i, text in enumerate(body["input"])
        ]
        # The protocol promises an index, not an order.
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self.send(200, {"object": "list", "data": rows[::-1], "model": body["model"], "usage": usage})

    def send(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        # Clients wait half a second and more before they try again, unless they are told.
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Keep the test's output clean."""


def serve(embed, faults=0):
    return running(EmbeddingServer(embed, faults))
