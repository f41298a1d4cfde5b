import asyncio
import os
import random
import subprocess
import tempfile
import unittest

import support
from support import TestCase, serve

import limits
import limits.aio.storage
import limits.aio.strategies
import redis
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import STRATEGIES

import limits_cellserver

DAY = 86_400  # so long a window that none ends during a test
NAMES = [n for n in STRATEGIES if n != "fixed-window-elastic-expiry"]


class Async:
    """An async storage or strategy, called as the other one is."""

    def __init__(self, of):
        self._of = of

    def __getattr__(self, name):
        def run(*args, **kwargs):
            async def whole():
                client = getattr(self._of, "storage", self._of)
                client = getattr(client, "storage", client)
                try:
                    return await getattr(self._of, name)(*args, **kwargs)
                finally:
                    await client.connection_pool.disconnect()  # they belong to this loop

            return asyncio.run(whole())

        return run


def both(storage):
    """Returns a storage to call without await."""
    return Async(storage) if isinstance(storage, limits.aio.storage.Storage) else storage


class Storages(TestCase):
    def strategies(self, name):
        """Yields the strategy and the storage, for threads and for asyncio; the last has to live as long."""
        for url in (self.server.url, "async+" + self.server.url):
            storage = storage_from_string(url, key_prefix=f"{self.id()}:{url[:5]}:{name}:")
            if url.startswith("async+"):
                yield Async(limits.aio.strategies.STRATEGIES[name](storage)), Async(storage), storage
            else:
                yield STRATEGIES[name](storage), storage, storage

    def test_decides_as_the_memory_storage(self):
        for name in NAMES:
            for cellserver, storage, _keep in self.strategies(name):
                with self.subTest(name, storage=type(storage).__name__):
                    memory_storage = MemoryStorage()
                    memory = STRATEGIES[name](memory_storage)
                    numbers = random.Random(33)
                    for _ in range(100):
                        item = limits.parse(f"{numbers.choice((1, 5, 9))}/day")
                        who, cost = numbers.choice("abc"), numbers.choice((1, 1, 1, 2, 3))
                        if cost > item.amount:  # limits 2.8 pushes them in part
                            continue
                        want = memory.hit(item, who, cost=cost)
                        self.assertEqual(cellserver.hit(item, who, cost=cost), want)
                        self.assertEqual(cellserver.test(item, who), memory.test(item, who))
                        got, want = cellserver.get_window_stats(item, who), memory.get_window_stats(item, who)
                        self.assertEqual(got[1], want[1])

    def test_reset_times(self):
        for name in NAMES:
            for cellserver, _storage, _keep in self.strategies(name):
                with self.subTest(name):
                    item = limits.parse("2/day")
                    before = cellserver.get_window_stats(item, "k")
                    self.assertEqual(before[1], 2)
                    cellserver.hit(item, "k")
                    first = cellserver.get_window_stats(item, "k")
                    self.assertEqual(first[1], 1)
                    cellserver.hit(item, "k")
                    self.assertFalse(cellserver.hit(item, "k"))
                    full = cellserver.get_window_stats(item, "k")
                    self.assertEqual(full[1], 0)
                    for at in (first[0], full[0]):
                        self.assertTrue(before[0] + DAY - 120 < at < before[0] + DAY + 120, at - before[0])
                    cellserver.clear(item, "k")
                    self.assertTrue(cellserver.hit(item, "k"))

    def test_a_look_has_the_limit_of_the_hit(self):
        """Else the page shows another limit than the application's."""
        client = limits_cellserver.connect(self.server.url)
        for name in NAMES:
            for cellserver, _storage, _keep in self.strategies(name):
                for text in ("3/second", "3/minute", "2 per 2 hour", "5/day", "7/month", "9 per 3 year"):
                    item = limits.parse(text)
                    with self.subTest(name, limit=text), client.monitor() as monitor:
                        cellserver.hit(item, "k")
                        cellserver.get_window_stats(item, "k")
                        client.echo("end")
                        seen = iter(lambda: monitor.next_command()["command"].split(), ["ECHO", "end"])
                        calls = [words for words in seen if words[0].upper().endswith("WINDOW")]
                        hit, look = calls[0], calls[-1]
                        self.assertEqual([hit[3], hit[4], look[4]], [str(item.get_expiry()), "1", "0"], calls)
                        self.assertEqual(look[:4] + look[5:], hit[:4] + hit[5:])

    def test_counts_without_a_limit_in_the_key(self):
        for _, storage, _keep in self.strategies("fixed-window"):
            self.assertEqual([storage.incr("k", DAY), storage.incr("k", DAY, amount=5)], [1, 6])
            self.assertEqual([storage.get("k"), storage.get("none")], [6, 0])
            self.assertFalse(storage.acquire_entry("w", 3, DAY, amount=4))

    def test_zero_allows_nothing(self):
        for name in NAMES:
            for cellserver, _storage, _keep in self.strategies(name):
                self.assertFalse(cellserver.hit(limits.RateLimitItemPerDay(0), "k"), name)

    def test_sliding_window_counter(self):
        for _, storage, _keep in self.strategies("fixed-window"):
            hits = [storage.acquire_sliding_window_entry("k/3/1/day", 3, DAY) for _ in range(4)]
            self.assertEqual(hits, [True, True, True, False])
            self.assertFalse(storage.acquire_sliding_window_entry("other", 3, DAY, amount=4))
            previous, _, count, ttl = storage.get_sliding_window("k/3/1/day", DAY)
            self.assertEqual((previous, count), (0, 3))
            self.assertTrue(DAY < ttl <= 2 * DAY, ttl)
            storage.clear_sliding_window("k/3/1/day", DAY)
            self.assertEqual(storage.get_sliding_window("k/3/1/day", DAY), (0, 0.0, 0, 0.0))

    def test_large_windows_and_long_keys(self):
        long = "x" * 10_000
        for cellserver, storage, _keep in self.strategies("moving-window"):
            self.assertTrue(storage.acquire_entry("w", 100_000, DAY, amount=100_000))
            self.assertFalse(storage.acquire_entry("w", 100_000, DAY))
            self.assertEqual([cellserver.hit(limits.parse("1/day"), long) for _ in range(2)], [True, False])
            self.assertEqual([storage.incr(long + "/1/1/day", DAY) for _ in range(2)], [1, 2])
            self.assertEqual(storage.get(long + "/1/1/day"), 1)

    def test_reset(self):
        client = limits_cellserver.connect(self.server.url)
        for _, storage, _keep in self.strategies("fixed-window"):
            client.execute_command("CL.THROTTLE", "other", 15, 1, DAY)
            for i in range(3):
                storage.incr(f"k{i}", DAY)
            self.assertEqual([storage.reset(), storage.get("k0"), client.exists("other")], [3, 0, 1])

    def test_elastic_expiry(self):
        for _, storage, _keep in self.strategies("fixed-window"):
            with self.assertRaisesRegex(NotImplementedError, "moving-window"):
                storage.incr("k", DAY, elastic_expiry=True)

    def test_rights(self):
        """Those of the README suffice."""
        hits = "on nopass ~limits:* +ping +pttl +cl.fixedwindow +cl.slidingwindow"
        server = support.serve_users(self, f"hits {hits}", f"admin {hits} +cl.reset +scan")
        item = limits.parse("1/day")
        for user in ("hits", "admin"):
            storage = storage_from_string(server.url, username=user, password="x")
            self.assertTrue(storage.check())
            for name in NAMES:
                limiter = STRATEGIES[name](storage)
                self.assertEqual([limiter.hit(item, user) for _ in range(2)], [True, False])
                self.assertEqual(limiter.get_window_stats(item, user)[1], 0)
                if user == "admin":
                    limiter.clear(item, user)
                    self.assertTrue(limiter.hit(item, user))
        self.assertGreater(storage.reset(), 0)

    def test_server_gone_hung_and_back(self):
        server = serve(self)
        for scheme in ("", "async+"):
            patient = both(storage_from_string(scheme + server.url))
            hasty = both(storage_from_string(scheme + server.hasty_url))
            self.assertTrue(patient.check())
            server.hang()
            self.assertFalse(hasty.check())
            with self.assertRaises(redis.TimeoutError):
                hasty.incr("k", DAY)
            server.go_on()
            server.stop()
            for storage in (patient, hasty):
                self.assertFalse(storage.check())
                with self.assertRaises(redis.ConnectionError):
                    storage.incr("k", DAY)
            server.start()
            self.assertEqual([patient.check(), patient.incr("k", DAY)], [True, 1])

    def test_server_full(self):
        server = serve(self, *support.FULL)
        client = limits_cellserver.connect(server.url)
        storage = storage_from_string(server.url)
        self.assertEqual(storage.incr("old", DAY), 1)
        support.fill(client, "CL.FIXEDWINDOW", None, 1, DAY)
        with self.assertRaisesRegex(redis.ResponseError, "maxmemory"):
            storage.incr("new", DAY)
        self.assertEqual(storage.incr("old", DAY), 2)


class Schemes(unittest.TestCase):
    def test_unix_socket_and_pool(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "socket")
            server = serve(self, f"--unixsocket={path}")
            for scheme in ("cellserver+unix", "async+cellserver+unix"):
                storage = storage_from_string(f"{scheme}://{path}?socket_timeout=60")
                self.assertTrue(both(storage).check(), scheme)
            pool = redis.ConnectionPool(port=server.port)
            self.assertTrue(storage_from_string("cellserver://", connection_pool=pool).check())
            pool.disconnect()

    def test_tls(self):
        with tempfile.TemporaryDirectory() as directory:
            cert, key = os.path.join(directory, "cert"), os.path.join(directory, "key")
            command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
            command += f" -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
            subprocess.run(command.split(), check=True, stderr=subprocess.DEVNULL)
            server = serve(self, "--tls-addr=127.0.0.1:0", f"--tls-cert={cert}", f"--tls-key={key}")
            url = f"cellserver+tls://127.0.0.1:{server.ports['tls']}{support.PATIENCE}"
            for scheme in (url, "async+" + url):
                self.assertTrue(both(storage_from_string(scheme, ssl_ca_certs=cert)).check(), scheme)
            with self.assertRaises(redis.ConnectionError):
                storage_from_string(url).incr("k", 1)


if __name__ == "__main__":
    unittest.main()
