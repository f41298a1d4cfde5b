import contextlib
import http.client
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import support
from support import serve

import limits_cellserver as lc

EXAMPLE = os.path.join(support.ADAPTER, "example")
sys.path.insert(0, EXAMPLE)

import chat  # noqa: E402
import journal  # noqa: E402

DAY = 86_400
SEED = int(os.environ.get("SEED", "51"))


class Program:
    """A program of the example, on a port of its own."""

    def __init__(self, test, name, *args):
        self.command = [sys.executable, os.path.join(EXAMPLE, name), *args]
        self.addr, self.lines = "127.0.0.1:0", []
        self.start()
        test.addCleanup(self.end)

    def start(self):
        env = {**os.environ, "PYTHONPATH": support.ADAPTER}
        self.process = subprocess.Popen(
            [*self.command, f"--addr={self.addr}"], env=env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        self.url = self.wait_for("listening on").split()[-1]
        self.addr = self.url.removeprefix("http://")

    def wait_for(self, text):
        for line in self.process.stdout:
            if text in line:
                return line
        raise RuntimeError(f"the program ends before it says {text!r}")

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()


class Base(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        limits = os.path.join(EXAMPLE, "limits.yaml")
        self.server = serve(
            self, f"--limits-file={limits}", f"--data-dir={directory.name}/data", "--fsync-interval=0")
        self.directory, self.client = directory.name, lc.connect(self.server.url)
        # Windows that do not end at midnight.
        for limit, key, most in (
            ("org-tokens", "acme", 100_000), ("user-tokens", "acme/ann", 1000),
            ("user-tokens", "acme/bob", 50_000), ("model-tokens", "acme/small", 50_000),
            ("org-spend", "acme", 1_000_000),
        ):
            self.client.execute_command("CL.LIMIT", "OVERRIDE", limit, key, "FIXEDWINDOW", most, DAY)

    def start(self, away="closed", ttl=60, **model):
        flags = [f"--{name}={value}" for name, value in {"seed": SEED, "delay": 0.002, **model}.items()]
        self.model = Program(self, "model.py", *flags)
        self.proxy = Program(
            self, "proxy.py", f"--cellserver={self.server.hasty_url}", f"--model={self.model.url}",
            f"--keys={EXAMPLE}/keys.txt", f"--journal={self.directory}/holds.jsonl", f"--away={away}",
            f"--ttl={ttl}", "--timeout=20")

    def ask(self, text, key="sk-bob", **more):
        """Returns a response."""
        return self.send(text, key, **more).getresponse()

    def send(self, text, key="sk-bob", **more):
        question = {"model": "small", "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
        connection = http.client.HTTPConnection(self.proxy.addr, timeout=60)
        body = json.dumps({**question, **more})
        connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
        return connection

    def ledger(self):
        with urllib.request.urlopen(self.model.url + "/ledger") as response:
            return json.load(response)

    def wait_for(self, is_so):
        while not is_so():
            time.sleep(0.02)

    def used(self, limit, key):
        reply = lc.connect(self.server.url).execute_command("CL.CHECK", limit, key, 0)
        return reply[1] - reply[2]

    def assert_spent_as_in_ledger(self, user="acme/bob"):
        """Ends the proxy, which settles all that is open, and compares."""
        self.proxy.end(signal.SIGTERM)
        ledger = self.ledger().values()
        self.assertNotIn("in_progress", [line["status"] for line in ledger])
        costs = [chat.units("small", line["usage"]) for line in ledger]
        want = [sum(cost[i] for cost in costs) for i in range(4)]
        keys = "acme", user, "acme/small", "acme"
        got = [self.used(*of) for of in zip(("org-tokens", "user-tokens", "model-tokens", "org-spend"), keys)]
        self.assertEqual(got, want)
        self.assertEqual(open_holds(f"{self.directory}/holds.jsonl"), [])
        return want


def open_holds(path):
    with contextlib.closing(journal.Journal(path)) as left:
        return left.open_holds()


def read_events(response):
    return [line[6:].strip() for line in response if line.startswith(b"data: ")]


class Seen(Base):
    """What a client sees."""

    def test_budget_comes_near_and_ends(self):
        self.start()
        statuses, near = [], []
        for n in range(40):
            with self.ask(f"question {n}", "sk-ann") as response:
                body, fields = json.load(response), response.headers
            statuses.append(response.status)
            self.assertEqual(fields["x-ratelimit-limit-tokens"], "1000")
            remaining = int(fields["x-ratelimit-remaining-tokens"])
            if response.status == 200:
                self.assertEqual(fields["x-ratelimit-near"], '"user-tokens"' if remaining <= 200 else None)
                near.append(remaining <= 200)
        self.assertEqual(sorted(statuses), statuses, "200 until 429")
        self.assertEqual((statuses[0], statuses[-1], near[0], near[-1]), (200, 429, False, True))
        self.assertEqual(body["error"]["code"], "rate_limit_exceeded")
        text = r'"user-tokens" has \d+ of 1000 .*"acme/ann".*try again in 8\d{4} s'
        self.assertRegex(body["error"]["message"], text)
        self.assertRegex(fields["retry-after"], r"^8\d{4}$")
        self.assertRegex(fields["x-ratelimit-reset-tokens"], r"^2[34]h\d+m\d+s$")
        self.assert_spent_as_in_ledger("acme/ann")

    def test_stream_and_usage(self):
        self.start()
        with self.ask("hello", stream=True) as response:
            self.assertEqual(response.headers["content-type"], "text/event-stream")
            got = read_events(response)
        self.assertEqual(got[-1], b"[DONE]")
        self.assertNotIn("usage", json.loads(got[-2]))
        with self.ask("hello", stream=True, stream_options={"include_usage": True}) as response:
            got = read_events(response)
        with self.ask("hello") as response:
            self.assertEqual(json.loads(got[-2])["usage"], json.load(response)["usage"])
        self.assert_spent_as_in_ledger()

    def test_client_hangs_up(self):
        """The answer is paid for: it is read to its usage."""
        self.start(delay=0.005)
        with self.ask("in the middle", stream=True) as response:
            response.readline()
        self.send("before the answer").close()
        self.wait_for(lambda: [line["status"] for line in self.ledger().values()] == ["completed"] * 2)
        self.assert_spent_as_in_ledger()

    def test_model_fails(self):
        self.start(fail=1)
        seen = set()
        for n in range(20):
            with self.ask(f"question {n}", stream=n % 2) as response:
                if response.status == 200:
                    seen.add("stream")
                    self.assertIn(b"the model has failed", read_events(response)[-1])
                else:
                    seen.add(json.load(response)["error"]["message"])
                    self.assertEqual(response.status, 502)
        self.assertEqual(len(seen), 3, seen)  # at once, in the middle of an answer, and of a stream
        self.assertGreater(sum(self.assert_spent_as_in_ledger()), 0)

    def test_model_is_away(self):
        self.start()
        self.model.end()
        with self.ask("hello") as response:
            self.assertEqual((response.status, json.load(response)["error"]["type"]), (502, "server_error"))
        self.assertEqual(self.used("org-tokens", "acme"), 0)

    def test_mistakes(self):
        self.start()
        with self.ask("hello", "sk-nobody") as response:
            self.assertEqual(response.status, 401)
            self.assertEqual(json.load(response)["error"]["code"], "invalid_api_key")
        for wrong in (
            {"max_tokens": "many"}, {"max_tokens": 10**30}, {"max_tokens": 600_000, "n": 2}, {"n": float("inf")},
            {"model": None}, {"model": "small-2"}, {"model": ["small"]}, {"messages": "x" * (1 << 20)},
        ):
            with self.ask("hello", **wrong) as response:
                self.assertEqual(response.status, 400)
                self.assertEqual(json.load(response)["error"]["type"], "invalid_request_error")
        for body in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000):
            self.assertEqual(self.post(body).status, 400, body[:9])
        for length in ("-1", "many", str(2**80)):
            self.assertEqual(self.post(b"", length).status, 400, length)
        self.assertEqual(self.ledger(), {})
        with self.ask("hello", n=3, max_completion_tokens=200) as response:
            self.assertEqual(response.status, 200)
            self.assertLess(int(response.headers["x-ratelimit-remaining-tokens"]), 50_000 - 600)

    def post(self, body, length=None):
        connection = http.client.HTTPConnection(self.proxy.addr, timeout=60)
        fields = {"Authorization": "Bearer sk-bob", "Content-Length": length or str(len(body))}
        connection.request("POST", "/v1/chat/completions", body, fields)
        return connection.getresponse()


class Failures(Base):
    def test_proxy_is_killed(self):
        """Its next start settles what was open, by the model's own record."""
        self.start(delay=0.05)
        answers = [self.ask(f"question {n}", stream=True, max_tokens=9000) for n in range(5)]
        for response in answers:
            response.readline()
        self.proxy.end()
        for response in answers:
            response.close()
        self.assertEqual(len(open_holds(f"{self.directory}/holds.jsonl")), 5)
        self.proxy.start()
        for _ in answers:
            self.proxy.wait_for("done")
        self.assert_spent_as_in_ledger()

    def test_disk_is_full(self):
        """What cannot be written down is not asked."""
        self.start()
        resource.prlimit(self.proxy.process.pid, resource.RLIMIT_FSIZE, (1, 1))
        with self.ask("hello") as response:
            self.assertEqual((response.status, response.headers["retry-after"]), (503, "1"))
        self.assertEqual((self.ledger(), self.used("org-tokens", "acme")), ({}, 0))

    def test_model_is_silent(self):
        """Its answer is waited for as long as a hold is, and then what it has on record is settled."""
        for stream in (False, True):
            with self.subTest(stream=stream):
                self.start(ttl=1, delay=60)
                with self.ask("hello", stream=stream) as response:
                    self.assertIn(b"the model ", response.read())
                self.model.end()
                self.proxy.end()

    def test_cellserver_is_away(self):
        for away, status, retry_after in (("closed", 503, "1"), ("local", 200, None)):
            with self.subTest(away):
                self.start(away)
                self.server.stop()
                with self.ask(away, stream=True) as response:
                    self.assertEqual(response.status, status)
                    self.assertEqual(response.headers["retry-after"], retry_after)
                    response.read()
                self.server.start()
                self.assertEqual(bool(sum(self.assert_spent_as_in_ledger())), away == "local")

    def test_proxy_is_killed_while_cellserver_is_away(self):
        self.start("local", delay=0.05)
        self.server.stop()
        with self.ask("hello", stream=True) as response, self.ask("short", max_tokens=1) as done:
            response.readline()
            self.assertEqual(done.status, 200)
            self.proxy.end()
        self.proxy.start()
        self.server.start()
        for _ in range(2):
            self.proxy.wait_for("done")
        self.assert_spent_as_in_ledger()

    def test_all_at_once(self):
        """20 streams, some cut and some failing, while cellserver is killed."""
        for away in ("closed", "local"):
            with self.subTest(away, seed=SEED):
                self.start(away, fail=0.2, delay=0.01)
                self.client.execute_command("FLUSHALL")
                draw, statuses = random.Random(SEED), []

                def one(n, cut, wait):
                    time.sleep(wait)
                    with self.ask(f"question {n}", stream=True) as response:
                        statuses.append(response.status)
                        if not cut:
                            return response.read()
                        response.readline()

                calls = [(n, draw.random() < 0.2, draw.random()) for n in range(20)]
                threads = [threading.Thread(target=one, args=call) for call in calls]
                for thread in threads:
                    thread.start()
                self.wait_for(lambda: len(statuses) > 5)
                self.server.stop()
                self.server.start()
                self.client = lc.connect(self.server.url)
                for thread in threads:
                    thread.join()
                self.assertLessEqual(set(statuses), {200, 502, 503})
                self.assertIn(200, statuses)
                if away == "local":
                    self.assertNotIn(503, statuses)
                self.assert_spent_as_in_ledger()


class Parts(unittest.TestCase):
    def test_duration(self):
        for seconds, want in ((0, "0s"), (59, "59s"), (60, "1m0s"), (3600, "1h0m0s"), (86_399, "23h59m59s")):
            self.assertEqual(chat.duration(seconds), want)

    def test_units(self):
        usage = {"prompt_tokens": 3, "completion_tokens": 10}
        self.assertEqual(chat.units("small", usage), [13, 13, 13, 22])  # 21.5 millionths of a dollar
        self.assertEqual(chat.units("large", usage), [13, 13, 13, 215])

    def test_journal(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "holds")
            one = {"id": "one", "local": True}
            first = journal.Journal(path)
            first.write(one)
            first.write({"id": "two", "local": False})
            first.note("two", "settled")
            first.note("one", "held")
            first.note("nobody", "settled")
            with open(path, "ab") as file:
                file.write(b'5\nnull\n{}\n\xff\x00\n{"id": "cut')
            second = journal.Journal(path)
            self.assertEqual(second.open_holds(), [{"id": "one", "local": False, "settled": False}])
            second.note("one", "settled")
            first.close()
            second.close()
            self.assertEqual(open_holds(path), [])

    def test_journal_is_bounded(self):
        """It keeps what is open, whatever came since."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "holds")
            with contextlib.closing(journal.Journal(path)) as of:
                of.write({"id": "open"})
                for n in range(3000):
                    of.write({"id": str(n), "text": "x" * 500})
                    of.note(str(n), "settled")
            self.assertLess(os.path.getsize(path), 3 << 20)
            self.assertEqual(open_holds(path), [{"id": "open"}])


if __name__ == "__main__":
    unittest.main()
