import asyncio
import random
import re
import socket
import unittest
import urllib.error
import urllib.request

import support
from support import TestCase, serve

import redis

from limits_cellserver import AsyncLimiter, Decision, Limiter, Local, connect, connect_async
from limits_cellserver.connection import is_refused, is_unavailable, is_unsent

SECOND_NS = 1_000_000_000
DAY = 86_400


def define(server):
    """Defines the limit api, 3 at once and none back for a day, and returns a client."""
    client = connect(server.url)
    client.execute_command("CL.LIMIT", "SET", "api", "FUNNEL", 2, 1, DAY)
    return client


async def check_once(url, limit, key, on_error="open"):
    """Returns one decision of an AsyncLimiter with a client of its own."""
    client = connect_async(url)
    try:
        return await AsyncLimiter(client, limit, on_error).check(key)
    finally:
        await client.connection_pool.disconnect()


class Limiters(TestCase):
    def test_decides(self):
        limiter = Limiter(define(self.server), "api")
        self.assertEqual(limiter.check("k", 0), Decision(True, 3, 3, -1, 0))
        self.assertEqual([limiter.check("k").remaining for _ in range(3)], [2, 1, 0])
        denied = limiter.check("k")
        self.assertEqual(denied[:3], (False, 3, 0))
        self.assertTrue(DAY - 600 < denied.retry_after <= DAY, denied)
        self.assertEqual(limiter.check("other", 4)[:4], (False, 3, 3, -1))
        self.assertEqual(asyncio.run(check_once(self.server.url, "api", "k"))[:3], (False, 3, 0))
        long = "x" * 10_000
        self.assertEqual([limiter.check(long).remaining for _ in range(2)], [2, 1])

    def test_keys(self):
        limiter = Limiter(define(self.server), "api")
        self.assertEqual([limiter.check(key).remaining for key in (17, "17", b"17")], [2, 1, 0])
        for wrong in (None, True, 1.5, ["k"]):
            says = "a key is a str, bytes or an int, not " + type(wrong).__name__
            with self.assertRaisesRegex(TypeError, says):
                limiter.check(wrong)
            with self.assertRaisesRegex(TypeError, says):
                asyncio.run(check_once(self.server.url, "api", wrong))

    def test_headers_are_those_of_the_http_door(self):
        client = define(self.server)
        client.execute_command("CL.LIMIT", "OVERRIDE", "api", "mallory", "DENY")
        client.execute_command("CL.LIMIT", "OVERRIDE", "api", "friend", "UNLIMITED")
        limiter = Limiter(client, "api")
        for key, hits in (("new", 0), ("one", 1), ("full", 3), ("mallory", 0), ("friend", 0)):
            with self.subTest(key):
                for _ in range(hits):
                    limiter.check(key)
                quantity = 1 if key in ("full", "mallory") else 0
                got = limiter.check(key, quantity).headers("api")
                want = self.door(key, quantity)
                for name in ("RateLimit-Policy", "RateLimit", "Retry-After"):
                    self.assertEqual(shape(got.get(name)), shape(want[name]), name)

    def door(self, key, quantity):
        url = f"http://127.0.0.1:{self.server.ports['http']}/v1/check/api?key={key}&quantity={quantity}"
        try:
            with urllib.request.urlopen(url) as response:
                return response.headers
        except urllib.error.HTTPError as denied:
            with denied:
                return denied.headers

    def test_mistakes_are_raised(self):
        client = define(self.server)
        with self.assertRaisesRegex(redis.ResponseError, "no such limit"):
            Limiter(client, "nosuch").check("k")
        with self.assertRaisesRegex(redis.ResponseError, "no such limit"):
            asyncio.run(check_once(self.server.url, "nosuch", "k"))
        with self.assertRaisesRegex(ValueError, "on_error"):
            Limiter(client, "api", "ajar")

    def test_missing_rights_are_raised(self):
        server = support.serve_users(self, "weak on nopass ~* +ping")
        define(server)
        weak = connect(server.url, username="weak", password="x")
        with self.assertRaises(redis.exceptions.NoPermissionError):
            Limiter(weak, "api").check("k")
        nobody = connect(server.url, username="nobody", password="x")
        with self.assertRaisesRegex(redis.RedisError, "invalid username-password pair"):
            Limiter(nobody, "api").check("k")

    def test_canceled_call(self):
        """The reply to a call that was canceled goes to no other call."""
        server = serve(self)
        define(server).execute_command("CL.LIMIT", "SET", "other", "FUNNEL", 99, 1, DAY)

        async def start(limiter):
            task = asyncio.create_task(limiter.check("k", 0))
            for _ in range(100):  # until it waits for the reply
                await asyncio.sleep(0)
            return task

        async def cancel():
            client = connect_async(server.url)
            api, other = AsyncLimiter(client, "api"), AsyncLimiter(client, "other")
            await api.check("k", 0)
            server.hang()
            (await start(api)).cancel()
            task = await start(other)
            server.go_on()
            self.assertEqual((await task).limit, 100)
            await client.connection_pool.disconnect()

        asyncio.run(cancel())


def shape(text):
    """Returns a header without the window, which only the door knows, and without what changes with time."""
    return text and re.sub(r"\d{5}", "a day", re.sub(r";w=\d+", "", text))


class OnError(unittest.TestCase):
    def check_modes(self, server):
        """Each mode, while no server answers about a new key."""
        modes = {"open": [True] * 3, "closed": [False] * 3, "local": [True, True, False]}
        for mode, want in modes.items():
            on_error = Local(1, 1, DAY) if mode == "local" else mode
            limiter = Limiter(connect(server.hasty_url), "api", on_error)
            with self.subTest(mode), self.assertLogs("limits_cellserver", "WARNING"):
                decisions = [limiter.check("new") for _ in range(2)]
                decisions.append(asyncio.run(check_once(server.hasty_url, "api", "new", on_error)))
                self.assertEqual([d.allowed for d in decisions], want)
                self.assertTrue(all(isinstance(d.error, redis.RedisError) for d in decisions))
                fields = decisions[-1].headers("api")
                local = ["RateLimit-Policy", "RateLimit", "Retry-After"]
                self.assertEqual(list(fields), {"open": [], "closed": local[2:], "local": local}[mode])

    def test_stopped_and_back(self):
        server = serve(self)
        limiter = Limiter(define(server), "api", "closed")
        self.assertTrue(limiter.check("k").allowed)
        server.stop()
        with self.assertLogs("limits_cellserver"):
            self.assertFalse(limiter.check("k").allowed)
        self.check_modes(server)
        server.start()
        define(server)
        self.assertEqual(limiter.check("k"), Decision(True, 3, 2, -1, DAY))

    def test_hung(self):
        server = serve(self)
        limiter = Limiter(define(server), "api", "closed")
        limiter.check("k")
        server.hang()
        self.check_modes(server)
        server.go_on()
        self.assertEqual(limiter.check("k").remaining, 1)

    def test_full(self):
        server = serve(self, *support.FULL)
        client = define(server)
        self.assertEqual(Limiter(client, "api").check("old").remaining, 2)
        support.fill(client, "CL.CHECK", "api", None)
        self.check_modes(server)
        self.assertEqual(Limiter(client, "api").check("old").remaining, 1)

    def test_too_many_new_keys(self):
        server = serve(self, "--max-new-keys-per-second=1")
        limiter = Limiter(define(server), "api", "closed")
        with self.assertLogs("limits_cellserver"):
            self.assertIn(False, [limiter.check(f"k{i}").allowed for i in range(1000)])

    def test_sends_once(self):
        """A call without an answer may have been counted, so it is not repeated."""
        with socket.create_server(("127.0.0.1", 0)) as hung:
            limiter = Limiter(connect(f"redis://127.0.0.1:{hung.getsockname()[1]}"), "api")
            with self.assertLogs("limits_cellserver"):
                self.assertIsInstance(limiter.check("k").error, redis.TimeoutError)
            with hung.accept()[0] as connection:
                received = b"".join(iter(lambda: connection.recv(4096), b""))
            self.assertEqual(received.upper().count(b"CL.CHECK"), 1)
            hung.setblocking(False)
            with self.assertRaises(BlockingIOError):
                hung.accept()


class Errors(unittest.TestCase):
    def test_kinds(self):
        """Whether another decides, and whether the call may be repeated and leaves nothing to take back."""
        for text, unavailable, refused, unsent in (
            ("READONLY x", True, True, True),
            ("LOADING x", True, True, True),
            ("OOM command not allowed when used memory > 'maxmemory'.", True, True, True),
            ("TOOMANYHOLDS x", True, True, True),
            ("CLUSTERDOWN x", True, True, True),
            ("MASTERDOWN x", True, True, True),
            ("TRYAGAIN x", True, False, False),
            ("STOREDOWN x", True, False, False),
            ("MISCONF the disk has not taken the change: the call may have been charged", True, False, False),
            ("ERR the store failed", True, False, False),
            ("ERR no such limit", False, False, True),
            ("NOPERM x", False, False, True),
            ("NOAUTH x", False, False, True),
        ):
            error = answer(text)
            got = is_unavailable(error), is_refused(error), is_unsent(error)
            self.assertEqual(got, (unavailable, refused, unsent), text)
        with self.assertRaises(redis.ConnectionError) as refused:
            connect("cellserver://127.0.0.1:1").ping()
        self.assertTrue(is_unavailable(refused.exception) and is_unsent(refused.exception))


def answer(text):
    """Returns redis-py's error of a server that answers with it."""
    return redis.connection.DefaultParser(1).parse_error(text)


class URLs(unittest.TestCase):
    def test_port(self):
        for url, options, want in (
            ("cellserver://127.0.0.1", {}, 6380),
            ("cellserver+tls://user:password@limits.example/3", {}, 6380),
            ("cellserver://127.0.0.1:7000", {}, 7000),
            ("cellserver://127.0.0.1", {"port": 7000}, 7000),
            ("redis://127.0.0.1", {}, None),  # redis-py's
            ("cellserver+unix:///run/cellserver", {}, None),
        ):
            for client in (connect(url, **options), connect_async(url, **options)):
                self.assertEqual(client.connection_pool.connection_kwargs.get("port"), want, url)

    def test_unknown_schemes(self):
        for url in ("http://user:secret@127.0.0.1", "127.0.0.1:6380", "redis", ""):
            for to in (connect, connect_async):
                with self.assertRaisesRegex(ValueError, "cellserver://.* redis://") as raised:
                    to(url)
                self.assertNotIn("secret", str(raised.exception))


class Locals(unittest.TestCase):
    def test_steps(self):
        local = Local(max_burst=2, count=1, period=10)
        for at, quantity, want in (
            (0, 0, (0, 3, 3, -1, 0)),
            (0, 1, (0, 3, 2, -1, 10)),
            (0, 2, (0, 3, 0, -1, 30)),
            (0, 1, (1, 3, 0, 10, 30)),
            (0, 4, (1, 3, 0, -1, 30)),
            (9.5, 1, (1, 3, 0, 1, 21)),
            (10, 1, (0, 3, 0, -1, 30)),
            (30, -1, (0, 3, 3, -1, 0)),
            (30, 3, (0, 3, 0, -1, 30)),
            (1000, 0, (0, 3, 3, -1, 0)),
        ):
            self.assertEqual(local.check("k", quantity, now_ns=int(at * SECOND_NS)), want, (at, quantity))

    def test_decides_as_the_server(self):
        client, local, numbers = connect(serve(self).url), Local(9, 1, DAY), random.Random(33)
        for _ in range(200):
            key, quantity = numbers.choice("abc"), numbers.randrange(-2, 12)
            want = client.execute_command("CL.THROTTLE", key, 9, 1, DAY, quantity)
            self.assertEqual(local.check(key, quantity)[:3], tuple(want[:3]), (key, quantity))

    def test_bounded(self):
        local = Local(0, 1, 10, max_keys=2)
        taken = [local.check(key, now_ns=0)[0] for key in ("a", "b", "a", "c", "b", "a")]
        self.assertEqual(taken, [0, 0, 1, 0, 1, 0])  # c evicted a
        for wrong in ((-1, 1, 1), (0, 0, 1), (0, 1, 0)):
            with self.assertRaises(ValueError):
                Local(*wrong)


if __name__ == "__main__":
    unittest.main()
