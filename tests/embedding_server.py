"""A real HTTP server on this machine that speaks OpenAI's embedding protocol."""

from tests.chat_server import ChatServer, Handler, running


class EmbeddingHandler(Handler):
    def answer(self, body, number):
        assert self.path == "/v1/embeddings"
        assert body["encoding_format"] == "float"
        if number < self.server.faults:
            self.send(503, {"error": {"message": "overloaded"}})
            return
        rows = [
            {"object": "embedding", "index": i, "embedding": self.server.reply(text)}
            for i, text in enumerate(body["input"])
        ]
        # The protocol promises an index, not an order.
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self.send(200, {"object": "list", "data": rows[::-1], "model": body["model"], "usage": usage})


def serve(embed, faults=0):
    """Embed by a function of one text; the first `faults` requests get an error that may pass."""
    server = ChatServer(embed)
    server.RequestHandlerClass = EmbeddingHandler
    server.faults = faults
    return running(server)
