import logging
import os
import socket
import tempfile
import threading
import unittest

import support
from holds import DAY, USES, Async, Base, Sync, define
from support import serve

import redis

import limits_cellserver as lc
from limits_cellserver.outbox import Cancellation, Charge, Outbox, Settlement


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
            self.relay_of.swallows = b"CL.MRESERVE"
            self.assertFalse(limiter.reserve(USES, ttl=60, id="mine").allowed)
            self.assertEqual(limiter.finish(), 0)
            with limiter.reserve(USES, ttl=60, id="mine") as r:  # again, and the same
                self.assert_used(500, 500, 20_100)
                self.assertEqual(r.cancel(), 1)
            self.assertEqual(limiter.waiting, lc.Waiting(0, 0, 0))

    def relay(self):
        self.relay_of = Relay(self.server.port)
        self.addCleanup(self.relay_of.listener.close)
        return self.relay_of

    def test_hung(self):
        for limiter in self.both(on_error="closed"):
            r = limiter.reserve({"org": ("acme", 400)}, ttl=60)
            self.server.hang()
            with self.assertLogs("limits_cellserver"), limiter.hasty(self.server.hasty_url):
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
                subtest = self.subTest(kind=kind.__name__, lost=lost)
                with subtest, self.assertLogs("limits_cellserver") as logs:
                    self.client.execute_command("FLUSHALL")
                    units, notes = lc.LocalUnits({"org": 2000}), []
                    limiter = kind(relay.url, on_error=units, note=lambda *note: notes.append(note))
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
                    override = "CL.LIMIT", "OVERRIDE", "org", "acme"
                    self.client.execute_command(*override, "FIXEDWINDOW", 5000, DAY)
                    self.assertEqual(self.used(), 300 if room else 1300)
                    self.client.execute_command(*override, "DEL")
                    limiter.end()
                if want.lost:
                    self.assertRegex(logs.output[-1], "a debit was not answered")

    def test_own_id_goes_on_without_the_server(self):
        """The reservation that was not answered is canceled: what is counted here must not be held twice."""
        for limiter in self.both(on_error=lc.LocalUnits({"org": 1000}), url=self.relay().url):
            self.relay_of.swallows = b"CL.MRESERVE"
            with self.assertLogs("limits_cellserver"):
                r = limiter.reserve({"org": ("acme", 400)}, ttl=60, id="mine", charge=True)
            self.assertTrue(r.local)
            r.settle(300)
            self.assertEqual(limiter.finish(), 0)
            self.assertEqual(self.used(), 300)

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
        limited, allowed = [1, [1, 1, 0, 9, 9], None], [0, [0, 1, 0, -1, 9], "id"]
        loading = redis.ConnectionError()
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

    def test_lost_hold(self):
        limited, allowed = [1, [1, 1, 0, 9, 9], None], [0, [0, 1, 0, -1, 9], "id"]
        gone = redis.ConnectionError("gone")
        unsent = redis.ConnectionError("Error 111 connecting to nowhere. Connection refused.")
        for alone, replies, want, lost in (
            (False, [0], ["id"], 0),
            (True, [gone, 0], ["id", 0.05, "id"], 0),
            (True, [unsent, 0, allowed, 1], ["id", 0.05, "id", "CL.MRESERVE", "id"], 0),
            (True, [0, limited, True, gone], ["id", "CL.MRESERVE", "PING", "CL.CHECK", 0.05], 5),
            (True, [0, allowed, 0], ["id", "CL.MRESERVE", "id"], 0),
        ):
            box = Outbox(10)
            box.add(Settlement("id", USE, [5], INFINITY, alone))
            with self.assertLogs("limits_cellserver"):
                self.assertEqual(self.deliver(box, replies), want)
                logging.getLogger("limits_cellserver").warning("the last")
            self.assertEqual(box.numbers(), lc.Waiting(0, 0, lost))

    def test_unconfirmed_debit_is_not_repeated(self):
        """MISCONF may say so of a call that the disk has not taken in time."""
        box, limited = Outbox(10), [1, [1, 1, 0, 9, 9], None]
        box.add(Charge("id", USE, [5], INFINITY))
        with self.assertLogs("limits_cellserver"):
            replies = [limited, True, redis.ResponseError("MISCONF the disk has not taken the change")]
            self.assertEqual(self.deliver(box, replies), ["CL.MRESERVE", "PING", "CL.CHECK", 0.05])
        self.assertEqual(box.numbers(), lc.Waiting(0, 0, 5))

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_fork(self):
        """The parent sends what it has."""
        box = Outbox(2)
        self.assertTrue(box.add(settlement("a", [])))
        child = os.fork()
        if not child:
            os._exit(box.numbers().waiting == 0 and box.add(settlement("b", [])) and box.numbers().waiting == 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 1)
        self.assertEqual(self.deliver(box, [1]), ["a"])

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
        for n in range(5000):
            units.take(str(n), [lc.Use("org", "a", 1)], INFINITY)
            units.settle(str(n), [lc.Use("org", "a", 1)], [0])
        self.assertLess(len(units._ends), 2000)
        for wrong in (({"org": 0},), ({"org": 1}, 0)):
            with self.assertRaises(ValueError):
                lc.LocalUnits(*wrong)


if __name__ == "__main__":
    unittest.main()
