"""A small server with the shape of OpenAI's chat completions, for the example and its tests.

It answers with words that mean nothing, fails on request, and keeps a ledger of what it has charged for.
"""

import argparse
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model(ThreadingHTTPServer):
    request_queue_size, daemon_threads = 256, True

    def __init__(self, options):
        host, _, port = options.addr.rpartition(":")
        super().__init__((host, int(port)), Handler)
        self.options = options
        self.lock = threading.Lock()  # guards ledger
        self.ledger = {}

    def start(self, id, model, status, prompt):
        """Begins a line of the ledger, by the id that the caller has given."""
        with self.lock:
            id = id or f"chatcmpl-{len(self.ledger) + 1}"
            usage = {"prompt_tokens": prompt, "completion_tokens": 0, "total_tokens": prompt}
            # A call that is failed or cancelled is charged for the tokens that were sent.
            self.ledger[id] = {"id": id, "model": model, "status": status, "usage": usage}
            return id

    def add(self, id):
        with self.lock:
            self.ledger[id]["usage"]["completion_tokens"] += 1
            self.ledger[id]["usage"]["total_tokens"] += 1

    def end(self, id, status):
        with self.lock:
            if self.ledger[id]["status"] == "in_progress":
                self.ledger[id]["status"] = status
            return self.ledger[id]["usage"]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        id = self.path.removeprefix("/v1/chat/completions/")
        with self.server.lock:
            found = json.dumps(self.server.ledger if id == "/ledger" else self.server.ledger.get(id))
        if found == "null":
            return self.answer(404, json.dumps({"error": {"message": "no such completion"}}))
        self.answer(200, found)

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question.setdefault("max_tokens", 16)
        prompt, tokens, fails_at = self.plan(question)
        id, name = self.headers["X-Client-Request-Id"], question["model"]
        if fails_at == 0:
            self.server.start(id, name, "failed", 0)
            return self.answer(500, json.dumps({"error": {"message": "the model has a headache"}}))
        id, words = self.server.start(id, name, "in_progress", prompt), []
        try:
            if question.get("stream"):
                self.send_head(200, "text/event-stream")
            for n in range(tokens):
                if n == fails_at:
                    self.server.end(id, "failed")
                    return  # closes the connection
                time.sleep(self.server.options.delay)
                self.server.add(id)
                words.append(f"word{n} ")
                if question.get("stream"):
                    self.event(id, name, choices=[{"index": 0, "delta": {"content": words[-1]}}])
            usage = self.server.end(id, "completed")
            if not question.get("stream"):
                choice = {"index": 0, "finish_reason": "stop",
                          "message": {"role": "assistant", "content": "".join(words)}}
                answer = {"id": id, "model": name, "choices": [choice], "usage": usage}
                return self.answer(200, json.dumps(answer))
            if question.get("stream_options", {}).get("include_usage"):
                self.event(id, name, choices=[], usage=usage)
            self.wfile.write(b"data: [DONE]\n\n")
        except ConnectionError:  # whoever has asked is gone
            self.server.end(id, "cancelled")

    def plan(self, question):
        """Returns the tokens of the prompt and of the answer, and before which of these it fails or -1."""
        texts = [message["content"] for message in question["messages"]]
        draw = random.Random(f"{self.server.options.seed} {texts}")
        prompt, tokens = sum(len(t) // 3 + 1 for t in texts), draw.randint(1, question["max_tokens"])
        fails = draw.random() < self.server.options.fail
        return prompt, tokens, tokens // 2 * draw.randrange(2) if fails else -1

    def event(self, id, model, **more):
        self.wfile.write(b"data: %s\n\n" % json.dumps({"id": id, "model": model, **more}).encode())

    def answer(self, status, body):
        self.send_head(status, "application/json")
        self.wfile.write(body.encode() + b"\n")

    def send_head(self, status, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def log_message(self, *args):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--addr", default="127.0.0.1:8001", help="address to listen on")
    add("--seed", type=int, default=1, help="of the answers: the same question has the same one")
    add("--fail", type=float, default=0, help="share of the calls that fail: half of them at once")
    add("--delay", type=float, default=0.01, help="seconds of each token")
    model = Model(parser.parse_args())
    print("listening on http://%s:%d" % model.server_address, flush=True)
    try:
        model.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
