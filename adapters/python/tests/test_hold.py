import asyncio
import json
import socket
import tempfile
import threading
import time
import unittest

import support
from support import TestCase, serve

import redis

import limits_cellserver as lc
from limits_cellserver.outbox import Cancellation, Charge, Outbox, Settlement

DAY = 86_400
USES = {"org": ("acme", 400), "user": ("ann", 400), "spend": ("acme", lc.usd(0.02))}
MOST = {"org": 1000, "user": 1000, "spend": 1_000_000}


def define(server):
    client = lc.connect(server.url)
    for limit, most in MOST.items():
        client.execute_command("CL.LIMIT", "SET", limit, "FIXEDWINDOW", most, DAY)
    return client


class Sync:
    """A Limiter, and what tests ask of both kinds."""

    def __init__(self, url, *args, **options):
        self.limiter = lc.Limiter(lc.connect(url), *args, **options)

    def reserve(self, *args, **options):
        return self.limiter.reserve(*args, **options)

    def resume(self, record):
        return self.limiter.resume(record)

    def finish(self, timeout=30):
        return self.limiter.close(timeout)

    @property
    def waiting(self):
        return self.limiter.waiting

    def end(self):
        self.limiter.close(0)
        self.limiter.client.connection_pool.disconnect()


class Async(Sync):
    """An AsyncLimiter, called as a Limiter is; its loop runs while it is called."""

    def __init__(self, url, *args, **options):
        self.loop = asyncio.new_event_loop()
        self.limiter = lc.AsyncLimiter(lc.connect_async(url), *args, **options)

    def run(self, awaitable):
        async def wait():
            return await awaitable

        return self.loop.run_until_complete(wait())

    def reserve(self, *args, **options):
        return AsyncHold(self, self.run(self.limiter.reserve(*args, **options)))

    def resume(self, record):
        return AsyncHold(self, self.limiter.resume(record))

    def finish(self, timeout=30):
        return self.run(self.limiter.aclose(timeout))

    def end(self):
        self.finish(0)
        self.run(self.limiter.client.connection_pool.disconnect())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


class AsyncHold:
    def __init__(self, of, hold):
        self._of, self._hold = of, hold

    def __getattr__(self, name):
        value = getattr(self._hold, name)
        if name not in ("settle", "cancel", "extend"):
            return value
        return lambda *args: self._of.run(value(*args))

    def stream(self, chunks, count=None):
        async def asynchronous():
            for chunk in chunks:
                yield chunk

        stream = self._hold.stream(asynchronous(), count)
        try:
            while True:
                try:
                    yield self._of.run(stream.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._of.run(stream.aclose())

    def __enter__(self):
        return self

    def __exit__(self, *of):
        self._of.run(self._hold.__aexit__(*of))


class Base(TestCase):
    """Has limits, and an empty state at the start of each test and kind."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = define(cls.server)

    def both(self, *args, url=None, **options):
        for kind in (Sync, Async):
            with self.subTest(kind=kind.__name__):
                self.client.execute_command("FLUSHALL")
                of = kind(url or self.server.url, *args, **options)
                try:
                    yield of
                finally:
                    of.end()

    def used(self, limit="org", key="acme", client=None):
        reply = (client or self.client).execute_command("CL.CHECK", limit, key, 0)
        return reply[1] - reply[2]

    def assert_used(self, org, user=None, spend=None, client=None):
        want = (org, org if user is None else user, org if spend is None else spend)
        got = (self.used("org", "acme", client), self.used("user", "ann", client), self.used("spend", "acme", client))
        self.assertEqual(got, want)


class Holds(Base):
    def test_settle(self):
        for limiter in self.both():
            for settled, want in (
                (300, (300, 300, 300)),
                ({"org": 10, "user": 20, "spend": 30}, (10, 20, 30)),
                ([1, 2, 3], (1, 2, 3)),
                (1200, (1200, 1200, 1200)),
                (0, (0, 0, 0)),
            ):
                self.client.execute_command("FLUSHALL")
                with limiter.reserve(USES, ttl=60) as r:
                    self.assertTrue(r.allowed and not r.denied and not r.local)
                    self.assertEqual([d.remaining for d in r.decisions], [600, 600, 980_000])
                    self.assert_used(400, 400, 20_000)
                    self.assertEqual(r.settle(settled), 1)
                    self.assertIsNone(r.settle(77))
                got = self.used("org"), self.used("user", "ann"), self.used("spend")
                self.assertEqual(tuple(min(n, most) for n, most in zip(want, MOST.values())), got)

    def test_denied(self):
        for limiter in self.both():
            self.client.execute_command("CL.CHECK", "org", "acme", 700)
            with limiter.reserve(USES, ttl=60) as r:
                self.assertFalse(r.allowed)
                ((use, decision),) = r.denied
                self.assertEqual((use, decision.remaining), (lc.Use("org", "acme", 400), 300))
                self.assertTrue(0 < r.retry_after <= DAY)
                self.assertIsNone(r.cancel())
                with self.assertRaisesRegex(RuntimeError, "denied"):
                    r.settle(1)
            self.assert_used(700, 0, 0)
            self.assertEqual(limiter.reserve({"org": ("acme", 1001)}, ttl=60).retry_after, -1)

    def test_near(self):
        for limiter in self.both():
            self.assertEqual(limiter.reserve({"org": ("a", 799), "user": ("b", 800)}, ttl=60).near(), ["user"])
            self.assertEqual(limiter.reserve({"org": ("c", 499), "user": ("d", 500)}, ttl=60).near(0.5), ["user"])
        for decision, want in (
            (lc.Decision(True, 1000, 200, -1, 5), True),
            (lc.Decision(True, 1000, 201, -1, 5), False),
            (lc.Decision(True, 3, 1, -1, 5), False),
            (lc.Decision(False, 3, 0, 1, 5), True),
            (lc.Decision(False, 0, 0, -1, 0), False),
            (lc.Decision(True, 2**63 - 1, 2**63 - 1, -1, 0), False),
            (lc.Decision(True, 0, 0, -1, -1, redis.ConnectionError()), False),
        ):
            self.assertEqual(decision.near(), want, decision)

    def test_the_time_is_over(self):
        for limiter in self.both():
            for charge, meanwhile in ((False, 0), (True, 400)):
                self.client.execute_command("FLUSHALL")
                r = limiter.reserve([("org", "acme", 400)], ttl=0.001, charge=charge)
                time.sleep(0.02)
                self.assertEqual(self.used(), meanwhile)
                self.assertFalse(r.extend(60))
                self.assertEqual(r.settle(300), 2)
                self.assertEqual(self.used(), 300)

    def test_extend(self):
        for limiter in self.both():
            with limiter.reserve({"org": ("acme", 400)}, ttl=60, id="mine") as r:
                self.assertTrue(r.extend(0.001))
                time.sleep(0.02)
                self.assertEqual((r.id, self.used(), r.settle(5)), ("mine", 0, 2))

    def test_leaving(self):
        def leave(limiter, error, **options):
            self.client.execute_command("FLUSHALL")
            try:
                with limiter.reserve({"org": ("acme", 400)}, ttl=60, **options):
                    if error:
                        raise error
            except BaseException as raised:
                self.assertIs(raised, error)
            return self.used()

        for limiter in self.both():
            with self.assertLogs("limits_cellserver") as logs:
                self.assertEqual(leave(limiter, None), 400)
                self.assertEqual(leave(limiter, None), 400)
            self.assertEqual(len(logs.output), 1, logs.output)
            self.assertRegex(logs.output[0], "unsettled .* settle or cancel.*'acme'")
            self.assertEqual(leave(limiter, ValueError()), 0)
            for hang_up in (GeneratorExit(), KeyboardInterrupt(), asyncio.CancelledError()):
                self.assertEqual(leave(limiter, hang_up), 400)
                self.client.execute_command("CL.CHECK", "org", "acme", 600)
            self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))

    def test_mistakes(self):
        for limiter in self.both():
            with self.assertRaisesRegex(redis.ResponseError, "no such limit"):
                limiter.reserve({"nosuch": ("acme", 1)}, ttl=60)
            for wrong in ({}, {"org": ("acme", 0)}):
                with self.assertRaisesRegex(ValueError, "units >= 1"):
                    limiter.reserve(wrong, ttl=60)
            for wrong in ({"org": ("acme", 1.5)}, {"org": (None, 1)}):
                with self.assertRaises(TypeError):
                    limiter.reserve(wrong, ttl=60)
            with self.assertRaisesRegex(ValueError, "ttl"):
                limiter.reserve(USES, ttl=0)
            r = limiter.reserve(USES, ttl=60)
            for wrong in ({"org": 1}, {"org": 1, "user": 1, "spend": 1, "team": 1}, [1], -1):
                with self.assertRaises(ValueError):
                    r.settle(wrong)
            with self.assertRaises(TypeError):
                r.settle()
            self.assertEqual(r.settle(1), 1)
            self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))
        with self.assertRaisesRegex(ValueError, "LocalUnits"):
            lc.Limiter(self.client, on_error=lc.Local(1, 1, 1)).reserve(USES, ttl=60)

    def test_resume(self):
        for limiter in self.both():
            record = json.loads(json.dumps(limiter.reserve(USES, ttl=60).record()))
            self.assertEqual(limiter.resume(record).settle(7), 1)
            self.assertEqual(limiter.resume(record).settle(9), 0)
            self.assert_used(7)


class Streams(Base):
    """Two units a chunk, of 400 that are held."""

    def reserve(self, limiter, ttl=60):
        self.client.execute_command("FLUSHALL")
        return limiter.reserve({"org": ("acme", 400)}, ttl=ttl)

    def test_ends(self):
        for limiter in self.both():
            with self.reserve(limiter) as r:
                self.assertEqual(list(r.stream("abc", count=lambda chunk: 2)), ["a", "b", "c"])
                self.assertEqual((r.counted, self.used()), ([6], 400))
                r.settle(5)
            self.assertEqual(self.used(), 5)
            with self.reserve(limiter) as r:  # what was counted, without a settle
                list(r.stream("abc", count=lambda chunk: {"org": 2}))
            self.assertEqual(self.used(), 6)
            with self.reserve(limiter) as r, self.assertLogs("limits_cellserver"):
                list(r.stream("abc"))
                r.__exit__(None, None, None)
                r.cancel()

    def test_hang_up(self):
        for limiter in self.both():
            for count, want in ((lambda chunk: 2, 4), (None, 400)):
                with self.reserve(limiter) as r:  # the stream is closed
                    stream = r.stream("abc", count)
                    self.assertEqual([next(stream), next(stream)], ["a", "b"])
                    stream.close()
                    self.assertEqual(self.used(), want)

                def answer():
                    with self.reserve(limiter) as r:
                        yield from r.stream("abc", count)

                stream = answer()  # as a server closes it
                self.assertEqual([next(stream), next(stream)], ["a", "b"])
                stream.close()
                self.assertEqual(self.used(), want)

    def test_upstream_fails(self):
        def upstream(chunks):
            yield from chunks
            raise OSError("upstream")

        for limiter in self.both():
            for chunks, count, want in (("", lambda chunk: 2, 0), ("ab", lambda chunk: 2, 4), ("", None, 0)):
                with self.reserve(limiter) as r:
                    with self.assertRaisesRegex(OSError, "upstream"):
                        list(r.stream(upstream(chunks), count))
                    self.assertEqual(self.used(), want)  # at once

    def test_long_ones_are_extended(self):
        def slow():
            for chunk in range(12):
                time.sleep(0.1)
                yield chunk

        for limiter in self.both():
            with self.reserve(limiter, ttl=0.7) as r, self.client.monitor() as monitor:
                list(r.stream(slow()))
                settled = r.settle(1)
                self.client.echo("end")
                seen = [w.split()[0] for w in iter(lambda: monitor.next_command()["command"], "ECHO end")]
            self.assertLess(seen.count("CL.MEXTEND"), 12)
            self.assertGreater(seen.count("CL.MEXTEND"), 0)
            self.assertIn(settled, (1, 2))  # 2 on a machine that is that slow

    def test_task_is_canceled(self):
        """In the middle of a stream, and while a call of the limiter waits for its answer."""
        async def scenario(hung):
            client = lc.connect_async(self.server.url)
            limiter = lc.AsyncLimiter(client)
            started = asyncio.Event()

            async def chunks():
                yield "a"
                yield "b"
                started.set()
                await asyncio.sleep(60)

            async def call():
                async with limiter.reserve({"org": ("acme", 400)}, ttl=60) as r:
                    async for _ in r.stream(chunks(), count=lambda chunk: 2):
                        pass

            task = asyncio.create_task(call())
            await started.wait()
            if hung:
                self.server.hang()
            task.cancel()
            if hung:  # the settlement is sent, and canceled, too
                await asyncio.sleep(0.05)
                task.cancel()
                await asyncio.wait([task], timeout=1)
                self.server.go_on()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(await limiter.aclose(30), 0)
            await client.connection_pool.disconnect()

        for hung in (False, True):
            self.client.execute_command("FLUSHALL")
            asyncio.run(scenario(hung))
            self.assertEqual(self.used(), 4, hung)


class Relay:
    """Passes commands on to a server, and swallows the replies to some: then it closes the connection."""

    def __init__(self, port):
        self.to, self.swallows, self.closed = port, None, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"cellserver://127.0.0.1:{self.listener.getsockname()[1]}{support.PATIENCE}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.to)) as server:
            while command := client.recv(65536):
                server.sendall(command)
                reply = server.recv(65536)
                if self.swallows and self.swallows in command:
                    self.swallows = None
                    return
                client.sendall(reply)


class Away(unittest.TestCase):
    """The server is killed, hung, or does not answer in the middle of a settlement."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.server = serve(self, f"--data-dir={directory.name}", "--fsync-interval=0")
        self.client = define(self.server)

    both, used, assert_used = Base.both, Base.used, Base.assert_used

    def restart(self):
        self.server.start()
        self.client = lc.connect(self.server.url)

    def test_settlement_while_the_server_is_away(self):
        for limiter in self.both():
            r, other = limiter.reserve(USES, ttl=60), limiter.reserve(USES, ttl=60)
            self.server.stop()
            with self.assertLogs("limits_cellserver"):
                self.assertIsNone(r.settle(100))
            with self.assertLogs("limits_cellserver", level="WARNING"):
                limiter.limiter._reported = -1
                self.assertIsNone(other.cancel())
            self.assertEqual(limiter.finish(0.1), 2)
            self.restart()
            self.assertEqual(limiter.finish(), 0)
            self.assert_used(100)
            self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))

    def test_answers_are_lost(self):
        """What the server did without an answer counts once."""
        for limiter in self.both(on_error="closed", url=self.relay().url):
            r = limiter.reserve(USES, ttl=60)
            self.relay_of.swallows = b"CL.MCOMMIT"
            with self.assertLogs("limits_cellserver"):
                self.assertIsNone(r.settle(100))
            self.assertEqual(limiter.finish(), 0)
            self.assert_used(100)
            self.relay_of.swallows = b"CL.MRESERVE"
            limiter.limiter._reported = -1
            with self.assertLogs("limits_cellserver"):
                r = limiter.reserve(USES, ttl=60)
            self.assertEqual((r.allowed, r.retry_after), (False, 1))
            self.assertEqual(limiter.finish(), 0)
            self.assert_used(100)
            self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))

    def relay(self):
        self.relay_of = Relay(self.server.port)
        self.addCleanup(self.relay_of.listener.close)
        return self.relay_of

    def test_hung(self):
        for limiter in self.both(on_error="closed", url=self.server.hasty_url):
            r = limiter.reserve({"org": ("acme", 400)}, ttl=60)
            if not r.allowed:  # on a machine that is that slow
                self.skipTest("no answer in 50 ms")
            self.server.hang()
            with self.assertLogs("limits_cellserver"):
                self.assertIsNone(r.settle(100))
                self.assertFalse(limiter.reserve({"org": ("acme", 400)}, ttl=60, charge=True).allowed)
                self.assertFalse(r.extend(60))
            self.server.go_on()
            self.assertEqual(limiter.finish(), 0)
            self.assertEqual(self.used(), 100)

    def test_modes(self):
        self.server.stop()
        for on_error, allowed, decided in (("open", True, False), ("closed", False, False)):
            for kind in (Sync, Async):
                limiter = kind(self.server.url, on_error=on_error)
                with self.subTest(on_error, kind=kind.__name__), self.assertLogs("limits_cellserver"):
                    with limiter.reserve(USES, ttl=60) as r:
                        self.assertEqual((r.allowed, r.decisions[0].decided), (allowed, decided))
                        self.assertIsInstance(r.error, redis.ConnectionError)
                        if allowed:
                            self.assertIsNone(r.settle(5))
                    self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))
                limiter.end()

    def test_local_units(self):
        for kind in (Sync, Async):
            with self.subTest(kind=kind.__name__):
                self.client.execute_command("FLUSHALL")
                units = lc.LocalUnits({"org": 1000, "user": 500})
                limiter = kind(self.server.url, on_error=units)
                uses = {"org": ("acme", 400), "user": ("ann", 400)}
                self.server.stop()
                with self.assertLogs("limits_cellserver"):
                    with limiter.reserve(uses, ttl=60) as r:
                        self.assertTrue(r.allowed and r.local and r.decisions[0].decided)
                        self.assertEqual([d.remaining for d in r.decisions], [600, 100])
                        self.assertFalse(limiter.reserve(uses, ttl=60).allowed)  # of ann
                        self.assertFalse(limiter.reserve({"spend": ("acme", 1)}, ttl=60).allowed)
                        self.assertTrue(r.extend(60))
                        self.assertIsNone(r.settle({"org": 300, "user": 450}))
                    with limiter.reserve({"org": ("acme", 700)}, ttl=60) as r:
                        self.assertIsNone(r.cancel())
                    record = limiter.reserve({"org": ("acme", 600)}, ttl=60).record()
                self.assertTrue(record["local"])
                self.assertEqual(limiter.finish(0.1), 1)
                self.restart()
                self.assertIsNone(limiter.resume(record).settle(60))
                self.assertEqual(limiter.finish(), 0)
                self.assertEqual((self.used(), self.used("user", "ann")), (360, 450))
                self.assertEqual(units._used, {})
                self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))
                self.assertFalse(limiter.reserve({"org": ("acme", 1)}, ttl=60).local)
                limiter.end()

    def test_local_units_are_charged_once(self):
        relay = self.relay()
        for kind in (Sync, Async):
            for lost, room, want in (
                (b"CL.MRESERVE", True, lc.Waiting(0, 0, 0)),
                (b"CL.MCOMMIT", True, lc.Waiting(0, 0, 0)),
                (b"DEBIT", False, lc.Waiting(0, 0, 300)),
                (b"PING", False, lc.Waiting(0, 0, 0)),
            ):
                with self.subTest(kind=kind.__name__, lost=lost), self.assertLogs("limits_cellserver") as logs:
                    self.client.execute_command("FLUSHALL")
                    units, notes = lc.LocalUnits({"org": 2000}), []
                    limiter = kind(relay.url, on_error=units, note=lambda id, stage: notes.append((id, stage)))
                    relay.swallows = b"CL.MRESERVE"
                    r = limiter.reserve({"org": ("acme", 400)}, ttl=60)
                    self.assertTrue(r.local)
                    self.assertEqual(limiter.finish(), 0)  # that reservation is canceled
                    if not room:
                        self.client.execute_command("CL.CHECK", "org", "acme", 700, "DEBIT")
                        self.client.execute_command("CL.CHECK", "org", "acme", 300, "DEBIT")
                    relay.swallows = lost
                    r.settle(300)
                    self.assertEqual(limiter.finish(), 0)
                    self.assertEqual(units._used, {})
                    self.assertEqual(notes, [(r.id, "held"), (r.id, "settled")])
                    self.assertEqual(limiter.waiting, want)
                    self.client.execute_command("CL.LIMIT", "OVERRIDE", "org", "acme", "FIXEDWINDOW", 5000, DAY)
                    self.assertEqual(self.used(), 300 if room else 1300)
                    self.client.execute_command("CL.LIMIT", "OVERRIDE", "org", "acme", "DEL")
                    limiter.end()
                if want.lost:
                    self.assertRegex(logs.output[-1], "no answer to a debit")

    def test_check_under_local_units(self):
        self.server.stop()
        limiter = lc.Limiter(lc.connect(self.server.url), "org", lc.LocalUnits({"org": 1000}))
        with self.assertLogs("limits_cellserver"):
            self.assertFalse(limiter.check("acme").allowed)


class Boxes(unittest.TestCase):
    def deliver(self, box, replies):
        """Returns the commands that are sent, and the pauses, for replies in their order."""
        steps, sent, reply = box.deliver(), [], None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration:
                return sent
            sent.append(step if isinstance(step, float) else step[1] if step[0] == "CL.MCOMMIT" else step[0])
            reply = None if isinstance(step, float) else replies.pop(0)

    def test_order_and_pauses(self):
        box, away, ended = Outbox(10), redis.ConnectionError("gone"), []
        self.assertEqual([box.add(settlement(name, ended)) for name in ("a", "b")], [True, False])
        sent = self.deliver(box, [away, away, 1, away, 1])
        self.assertEqual(sent, ["a", 0.05, "b", 0.1, "a", "b", 0.05, "b"])
        self.assertEqual(ended, ["a", "b"])
        self.assertTrue(box.add(settlement("c", ended)))

    def test_cancellation(self):
        for replies, want in (([0, 0], ["cancel", 0.05, "cancel"]), ([1], ["cancel"])):
            box = Outbox(10)
            box.add(Cancellation("cancel", USE, [0], INFINITY))
            self.assertEqual(self.deliver(box, replies), want)

    def test_charge(self):
        limited, allowed, loading = [1, [1, 1, 0, 9, 9], None], [0, [0, 1, 0, -1, 9], "id"], redis.ConnectionError()
        over = redis.ResponseError("ERR id names a hold whose time is over")
        refused = redis.exceptions.ReadOnlyError()
        for replies, want in (
            ([loading, allowed, loading, 1], ["CL.MRESERVE", 0.05, "CL.MRESERVE", "id", 0.1, "id"]),
            ([loading, over, 2], ["CL.MRESERVE", 0.05, "CL.MRESERVE", "id"]),
            ([limited, loading, True, refused, True, 1],
             ["CL.MRESERVE", "PING", 0.05, "PING", "CL.CHECK", 0.1, "PING", "CL.CHECK"]),
        ):
            box = Outbox(10)
            box.add(Charge("id", USE, [5], INFINITY))
            self.assertEqual(self.deliver(box, replies), want)
            self.assertEqual(box.numbers(), lc.Waiting(0, 0, 0))

    def test_bounds(self):
        box, ended = Outbox(2), []
        with self.assertLogs("limits_cellserver") as logs:
            box.add(Cancellation("cancel", USE, [0], INFINITY))
            box.add(Cancellation("more", USE, [0], INFINITY))
            box.add(settlement("old", ended, until=0))
            box.add(settlement("full", ended))
            self.assertEqual(box.numbers(), lc.Waiting(2, 1, 0))
            self.assertEqual(self.deliver(box, [redis.ResponseError("NOPERM")]), ["cancel"])
        self.assertEqual((box.numbers(), len(logs.output)), (lc.Waiting(0, 2, 0), 2))
        self.assertEqual(ended, ["full", "old"])

    def test_stop(self):
        box = Outbox(2)
        box.add(settlement("a", []))
        box.stop()
        self.assertEqual(self.deliver(box, []), [])
        self.assertTrue(box.add(settlement("b", [])))
        self.assertEqual(self.deliver(box, [1, 1]), ["a", "b"])


USE, INFINITY = [lc.Use("org", "acme", 9)], float("inf")


def settlement(name, ended, until=INFINITY):
    return Settlement(name, USE, [5], until, ended=lambda: ended.append(name))


class Units(unittest.TestCase):
    def test_usd(self):
        for dollars, want in ((0.0123, 12_300), (0.02, 20_000), ("0.0000001", 1), (1, 1_000_000), (1e-7, 1), (0, 0)):
            self.assertEqual(lc.usd(dollars), want, dollars)
        for wrong in (-1, "x", float("nan")):
            with self.assertRaises(ValueError):
                lc.usd(wrong)

    def test_local_units_are_bounded(self):
        units = lc.LocalUnits({"org": 10}, max_keys=1)
        one, two = [lc.Use("org", "a", 6)], [lc.Use("org", "b", 1)]
        self.assertEqual(units.take("1", one, INFINITY), [(0, 10, 4, -1, -1)])
        self.assertEqual(units.take("2", two, INFINITY)[0][:3], (1, 0, 0))
        self.assertEqual(units.take("3", one, INFINITY)[0][:4], (1, 10, 4, 1))
        units.settle("1", one, [5])
        self.assertEqual(units.take("4", one, INFINITY)[0][:3], (1, 10, 5))
        units.told(one, [5])
        self.assertEqual(units.take("5", two, 0)[0][:3], (0, 10, 9))
        self.assertFalse(units.extend("5", INFINITY))  # its time is over
        self.assertEqual(units.take("6", one, INFINITY)[0][:3], (0, 10, 4))
        self.assertTrue(units.extend("6", 0))
        units.settle("6", one, [1])
        self.assertEqual(units.take("7", one, INFINITY)[0][:3], (0, 10, 3))
        for wrong in (({"org": 0},), ({"org": 1}, 0)):
            with self.assertRaises(ValueError):
                lc.LocalUnits(*wrong)


if __name__ == "__main__":
    unittest.main()
