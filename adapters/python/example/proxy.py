"""A proxy before a server with the shape of OpenAI's.

It has its tokens and their cost counted by cellserver: by organisation, user and model, a day and a month.
"""

import argparse
import contextlib
import json
import signal
import threading
import time
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import redis
from chat import MAX_BYTES, Question, denial, error, events, headers, units
from journal import Journal

from limits_cellserver import Limiter, LocalUnits, connect, usd

GRACE_SECONDS = 5  # after which a call of which the model has no record has not got there

# A tenth of a day's budgets: what each proxy may spend of a key while cellserver is away.
LOCAL_UNITS = {"org-tokens": 200_000, "user-tokens": 20_000, "model-tokens": 100_000, "org-spend": usd(2)}


class Proxy(ThreadingHTTPServer):
    request_queue_size, daemon_threads = 256, False

    def __init__(self, options):
        host, _, port = options.addr.rpartition(":")
        super().__init__((host, int(port)), Handler)
        self.ttl, self.model = options.ttl, urlsplit(options.model).netloc
        with open(options.keys) as lines:
            fields = [line.split() for line in lines if line.strip() and not line.startswith("#")]
        self.callers = {secret: (organisation, user) for secret, organisation, user in fields}
        self.journal = Journal(options.journal)
        self.left_open = self.journal.open_holds()
        client = connect(
            options.cellserver, socket_timeout=options.timeout, socket_connect_timeout=options.timeout)
        on_error = LocalUnits(LOCAL_UNITS) if options.away == "local" else "closed"
        self.limiter = Limiter(client, on_error=on_error, note=self.journal.note)

    def resume(self):
        """Settles the holds that an earlier process has left open."""
        for record in self.left_open:
            threading.Thread(target=self.resume_one, args=(record,), daemon=True).start()

    def resume_one(self, record):
        self.settle_by_record(self.limiter.resume(record), record["model"])
        print("hold", record["id"], "of an earlier process: done", flush=True)

    def settle_by_record(self, hold, model):
        """Settles what the model has written down, once it has ended.

        It leaves the hold as it is if the model does not tell that for as long as a hold is.
        """
        began = time.monotonic()
        while time.monotonic() < began + self.ttl:
            record = self.record(hold.id)
            if record and record["status"] != "in_progress":
                return hold.settle(units(model, record["usage"]))
            if record == {} and time.monotonic() > began + GRACE_SECONDS:
                return hold.cancel()
            time.sleep(0.1)

    def record(self, id):
        """Returns the model's record of a call, {} if it has none, or None if it does not answer."""
        try:
            with self.ask("GET", "/v1/chat/completions/" + id) as response:
                if response.status == 404:
                    return {}
                return json.load(response) if response.status == 200 else None
        except (OSError, HTTPException, ValueError):
            return None

    def ask(self, method, path, body=None, headers={}):
        connection = HTTPConnection(self.model, timeout=self.ttl)
        connection.request(method, path, body, headers)
        return connection.getresponse()


class Handler(BaseHTTPRequestHandler):
    timeout = 60  # seconds of a client that neither sends nor reads

    def do_POST(self):
        caller = self.server.callers.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if caller is None:
            return self.fail(401, "invalid_api_key", "no such key")
        if self.path != "/v1/chat/completions":
            return self.fail(404, "invalid_request", "there is POST /v1/chat/completions")
        try:
            question = Question(self.read_body())
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as wrong:
            return self.fail(400, "invalid_request", repr(wrong))
        try:
            hold = self.server.limiter.reserve(question.uses(*caller), self.server.ttl)
        except redis.RedisError:
            return self.fail(500, "server_error", "the budgets are misconfigured")
        with hold:
            if not hold.allowed:
                return self.deny(hold)
            try:
                self.server.journal.write({**hold.record(), "model": question.model})
            except OSError:  # such as a full disk
                hold.cancel()
                return self.fail(503, "server_error", "the budgets are unavailable", {"retry-after": "1"})
            self.forward(question, hold)

    def read_body(self):
        length = int(self.headers.get("Content-Length", 0))
        if not 0 <= length <= MAX_BYTES:
            raise ValueError(f"a question has at most {MAX_BYTES} bytes")
        return self.rfile.read(length)

    def deny(self, hold):
        if not all(decision.decided for _, decision in hold.denied):
            return self.fail(503, "server_error", "the budgets are unavailable", {"retry-after": "1"})
        text, seconds = denial(hold)
        after = {"retry-after": str(seconds)} if seconds >= 0 else {}
        self.fail(429, "rate_limit_exceeded", text, {**headers(hold), **after})

    def forward(self, question, hold):
        """Asks the model, by the hold's id, so that its record can be found by that."""
        sent = {"Content-Type": "application/json", "X-Client-Request-Id": hold.id}
        try:
            response = self.server.ask("POST", "/v1/chat/completions", question.body, sent)
        except ConnectionRefusedError:
            hold.cancel()
            return self.fail(502, "server_error", "the model is away", headers(hold))
        except (OSError, HTTPException):
            self.fail(502, "server_error", "the model does not answer", headers(hold))
            return self.server.settle_by_record(hold, question.model)
        with response:
            if response.status >= 500:
                hold.cancel()
                self.fail(502, "server_error", "the model has failed", headers(hold))
            elif response.status != 200:
                hold.cancel()
                self.answer(response.status, response.read(), headers(hold))
            elif question.stream:
                self.stream(question, hold, response)
            else:
                self.whole(question, hold, response)

    def whole(self, question, hold, response):
        try:
            body = response.read()
            used = units(question.model, json.loads(body)["usage"])
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            self.fail(502, "server_error", "the model has failed", headers(hold))
            return self.server.settle_by_record(hold, question.model)
        hold.settle(used)
        self.answer(200, body, headers(hold))

    def stream(self, question, hold, response):
        """Passes the events on. Who hangs up pays for the answer, so it is read to its usage."""
        hung_up_at = None if self.send_head(200, "text/event-stream", headers(hold)) else time.monotonic()

        def chunks():
            try:
                for event in events(response):
                    if hung_up_at is not None and time.monotonic() > hung_up_at + self.server.ttl:
                        raise TimeoutError("the client has hung up, and the answer does not end")
                    yield event
            except (OSError, HTTPException, ValueError):
                response.close()
                failed = error("server_error", "the model has failed")
                self.write(b"data: %s\n\n" % json.dumps(failed).encode())
                self.server.settle_by_record(hold, question.model)
                raise

        with contextlib.suppress(OSError, HTTPException, ValueError):
            for event in hold.stream(chunks(), count=question.counter()):
                if event.get("usage"):
                    hold.settle(units(question.model, event["usage"]))
                    if not event.get("choices") and not question.tells_usage:
                        continue
                data = json.dumps(event) if event else "[DONE]"
                if hung_up_at is None and not self.write(f"data: {data}\n\n".encode()):
                    hung_up_at = time.monotonic()

    def fail(self, status, code, text, fields={}):
        self.answer(status, json.dumps(error(code, text)).encode() + b"\n", fields)

    def answer(self, status, body, fields={}):
        if self.send_head(status, "application/json", {"content-length": str(len(body)), **fields}):
            self.write(body)

    def send_head(self, status, kind, fields):
        self.send_response(status)
        for name, value in {"content-type": kind, **fields}.items():
            self.send_header(name, value)
        try:
            self.end_headers()
        except OSError:
            return False
        return True

    def write(self, data):
        """Returns whether the client is still there."""
        try:
            self.wfile.write(data)
        except OSError:  # it is gone, or does not read
            return False
        return True

    def log_message(self, *args):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--addr", default="127.0.0.1:8000", help="address to listen on")
    add("--cellserver", default="cellserver://127.0.0.1:6380", help="URL of cellserver")
    add("--model", default="http://127.0.0.1:8001", help="the model's server")
    add("--keys", default="keys.txt", help="file of lines: secret organisation user")
    add("--journal", default="holds.jsonl", help="file of open holds")
    add("--ttl", type=float, default=60, help="seconds of a hold, and of reading on after a client's hang-up")
    add("--away", choices=["closed", "local"], default="closed", help="while cellserver is away")
    add("--timeout", type=float, default=0.05, help="seconds of a call to cellserver")
    proxy = Proxy(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=proxy.shutdown).start())
    print("listening on http://%s:%d" % proxy.server_address, flush=True)
    proxy.resume()
    try:
        proxy.serve_forever()
    except KeyboardInterrupt:
        pass
    proxy.server_close()  # waits for the answers
    proxy.limiter.close(30)  # what is still open after this is settled by the next start
    print("settlements at the end:", proxy.limiter.waiting, flush=True)
    proxy.journal.close()


if __name__ == "__main__":
    main()
