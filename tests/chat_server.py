"""A real HTTP server on this machine that speaks OpenAI's chat protocol, and fails as real ones do."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChatServer(ThreadingHTTPServer):
    """Answers by `reply`, a function of the last message and of how many requests came before.

    It returns the content of an answer, or a pair of it and the log-probabilities of its first token, or a fault: a
    status with an error, `"drop"` for a connection that breaks off, `"garbage"` for a body that is not valid JSON,
    `"nothing"` for an answer without choices.
    """

    daemon_threads = True

    def __init__(self, reply):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply = reply
        self.fault = "fault"
        self.guard = threading.Lock()
        self.requests = []  # (body, headers)
        self.paid = []  # the number of each request that was charged

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """Keep quiet about connections that break off: they do on purpose."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.guard:
            number = len(self.server.requests)
            self.server.requests.append((body, self.headers))
        self.answer(body, number)

    def answer(self, body, number):
        assert self.path == "/v1/chat/completions"
        reply = self.server.reply(body["messages"][-1]["content"], number)
        if isinstance(reply, int):
            self.send(reply, {"error": {"message": f"{self.server.fault} {reply}"}})
        elif reply == "drop":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"id": ')
            self.close_connection = True
        else:
            with self.server.guard:
                self.server.paid.append(number)
            if reply == "garbage":
                self.send(200, None, b"<html>a proxy's page</html>")
                return
            content, top = reply if isinstance(reply, tuple) else (reply, None)
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
            if top is not None:
                entries = [{"token": token, "logprob": value, "bytes": None} for token, value in top.items()]
                choice["logprobs"] = {"content": [{**entries[0], "top_logprobs": entries}] if entries else []}
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"]}
            self.send(200, {**answer, "choices": [] if reply == "nothing" else [choice]})

    def send(self, status, value, data=None):
        data = json.dumps(value).encode() if data is None else data
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        # Clients wait half a second and more before they try again, unless they are told.
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Keep the test's output clean."""


def serve(reply):
    return running(ChatServer(reply))


@contextmanager
def running(server):
    """Run a server in a thread of its own."""
    # Else, its shutdown takes half a second.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
