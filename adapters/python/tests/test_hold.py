import asyncio
import contextlib
import json
import logging
import threading
import time
import unittest
from decimal import Decimal

import support
from holds import DAY, MOST, USES, Async, Base, define

import redis

import limits_cellserver as lc


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
            r = limiter.reserve({"org": ("a", 799), "user": ("b", 800)}, ttl=60)
            self.assertEqual(r.near(), ["user"])
            self.assertEqual(r.near(0.5), ["org", "user"])
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
                limiter.limiter._warned += 60  # of a busy machine are not a second
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
            with self.assertRaisesRegex(ValueError, "once"):
                limiter.reserve([("org", "7", 1), ("org", 7, 1)], ttl=60)
            for wrong in ({"org": ("acme", 1.5)}, {"org": (None, 1)}):
                with self.assertRaises(TypeError):
                    limiter.reserve(wrong, ttl=60)
            for wrong in (0, -1, 86_401, float("inf"), float("nan")):
                with self.assertRaisesRegex(ValueError, "ttl"):
                    limiter.reserve(USES, ttl=wrong)
            with self.assertRaisesRegex(ValueError, "ttl"):
                limiter.reserve(USES, ttl=60).extend(0)
            self.client.execute_command("FLUSHALL")
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

    def test_mistake_of_settle(self):
        """It is raised out of the block, and the answer is not free."""
        for limiter in self.both():
            for wrong in ({"orgs": 5}, -1, 2**63):
                self.client.execute_command("FLUSHALL")
                with self.assertRaises((ValueError, redis.ResponseError)):
                    with limiter.reserve({"org": ("acme", 400)}, ttl=60) as r:
                        r.settle(wrong)
                self.assertEqual(self.used(), 400)
                self.assertEqual(r.settle(5), 1)

    def test_hold_is_lost(self):
        """What was used is charged, unless another may have settled it."""
        for limiter in self.both():
            for settled, want in ((300, None), (0, 0)):
                r = limiter.reserve(USES, ttl=60)
                self.client.execute_command("FLUSHALL")
                self.assertEqual(r.settle(settled), want)
                self.assertEqual(limiter.finish(), 0)
                self.assert_used(settled)
            r = limiter.reserve(USES, ttl=60, id="mine")
            self.client.execute_command("FLUSHALL")
            self.assertEqual(r.settle(300), 0)
            self.assert_used(0)
            self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))

    def test_unlimited(self):
        for limiter in self.both():
            self.client.execute_command("CL.LIMIT", "OVERRIDE", "org", "friend", "UNLIMITED")
            with limiter.reserve({"org": ("friend", 400)}, ttl=60) as r:
                self.assertTrue(r.allowed and r.extend(60))
                self.assertEqual((r.near(), r.settle(300)), ([], None))

    def test_note_fails(self):
        def full(*note):
            raise OSError("no space left")

        for limiter in self.both(note=full):
            with self.assertLogs("limits_cellserver", "ERROR"), limiter.reserve(USES, ttl=60) as r:
                self.assertEqual(r.settle(5), 1)

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
            with self.reserve(limiter) as r:  # and of a second stream
                list(r.stream("abc", count=lambda chunk: 2))
                list(r.stream("ab", count=lambda chunk: 3))
            self.assertEqual(self.used(), 12)
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

    def test_loop_fails(self):
        """Its error is not the model's."""
        for limiter in self.both():
            for count, want in ((lambda chunk: 2, 2), (None, 400)):
                with self.assertRaises(ZeroDivisionError), self.reserve(limiter) as r:
                    for _ in r.stream("abc", count):
                        raise ZeroDivisionError
                self.assertEqual(self.used(), want)

    def test_break(self):
        async def leave(limiter, count):
            async def chunks():
                yield "a"
                yield "b"

            async with limiter.reserve({"org": ("acme", 400)}, ttl=60) as r:
                async for _ in r.stream(chunks(), count):
                    break

        for limiter in self.both():
            for count, want in ((lambda chunk: 2, 2), (None, 400)):
                self.client.execute_command("FLUSHALL")
                with self.assert_no_logs():
                    if isinstance(limiter, Async):
                        limiter.run(leave(limiter.limiter, count))
                    else:
                        with limiter.reserve({"org": ("acme", 400)}, ttl=60) as r:
                            for _ in r.stream("ab", count):
                                break
                self.assertEqual(self.used(), want)

    @contextlib.contextmanager
    def assert_no_logs(self):
        with self.assertLogs("limits_cellserver") as logs:
            yield
            logging.getLogger("limits_cellserver").warning("the only one")
        self.assertEqual(len(logs.output), 1, logs.output)

    def test_count_fails(self):
        for limiter in self.both():
            for wrong, error in ((-1, ValueError), (None, TypeError), ({"orgs": 1}, ValueError)):
                units = iter([2, wrong])
                with self.assertRaises(error), self.reserve(limiter) as r:
                    list(r.stream("abc", lambda chunk: next(units)))
                self.assertEqual(self.used(), 2)

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
        """Also while the model is silent."""
        def silent(extended):
            yield "a"
            extended.wait()
            yield "b"

        for limiter in self.both():
            extended = threading.Event()
            with self.reserve(limiter, ttl=2) as r, self.client.monitor() as monitor:
                stream = r.stream(silent(extended))
                next(stream)
                threading.Thread(target=self.wait_for_command, args=(monitor, "CL.MEXTEND", extended)).start()
                self.assertEqual(list(stream), ["b"])
                self.assertIn(r.settle(1), (1, 2))  # 2 on a machine that is that slow

    def wait_for_command(self, monitor, name, seen):
        while name not in monitor.next_command()["command"]:
            pass
        seen.set()

    def test_mistake_of_an_extension(self):
        """The answer goes on."""
        server = support.serve_users(self, "weak on nopass ~* +cl.mreserve +cl.mcommit")
        client = define(server)
        for limiter in self.both(url=server.url.replace("//", "//weak:x@")):
            client.execute_command("FLUSHALL")
            with self.assertLogs("limits_cellserver", "WARNING") as logs:
                def silent():
                    yield "a"
                    while not logs.output:
                        time.sleep(0.01)
                    yield "b"

                with limiter.reserve({"org": ("acme", 400)}, ttl=1) as r:
                    self.assertEqual(list(r.stream(silent(), count=lambda chunk: 1)), ["a", "b"])
            self.assertIn("not extended", logs.output[0])
            self.assertEqual((len(logs.output), self.used(client=client)), (1, 2))

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
            self.assertEqual(asyncio.all_tasks(), {asyncio.current_task()})
            await client.connection_pool.disconnect()

        for hung in (False, True):
            self.client.execute_command("FLUSHALL")
            asyncio.run(scenario(hung))
            self.assertEqual(self.used(), 4, hung)


class Units(unittest.TestCase):
    def test_usd(self):
        for dollars, want in (
            (0.0123, 12_300), (0.02, 20_000), ("0.0000001", 1), (1, 1_000_000), (1e-7, 1), (0, 0),
            (0.1 + 0.2, 300_000), (Decimal("1.0000001"), 1_000_001), ("1e-999999", 1), (9e12, 9 * 10**18),
        ):
            self.assertEqual(lc.usd(dollars), want, dollars)
        for wrong in (-1, "x", float("nan"), float("inf"), 1e13, "1e999999999", None, True, -1e-5):
            with self.assertRaises(ValueError):
                lc.usd(wrong)


if __name__ == "__main__":
    unittest.main()
