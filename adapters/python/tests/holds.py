"""Limiters of both kinds, to be tested alike."""

import asyncio
import contextlib

from support import TestCase

import limits_cellserver as lc

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

    _connect = staticmethod(lc.connect)

    def __init__(self, url, *args, **options):
        self.limiter = lc.Limiter(self._connect(url), *args, **options)
        self._clients = [self.limiter.client]

    def reserve(self, *args, **options):
        return self.limiter.reserve(*args, **options)

    def resume(self, record):
        return self.limiter.resume(record)

    def finish(self, timeout=30):
        return self.limiter.close(timeout)

    @property
    def waiting(self):
        return self.limiter.waiting

    @contextlib.contextmanager
    def hasty(self, url):
        """Has another client meanwhile, which the sender may use a little longer."""
        patient, self.limiter.client = self.limiter.client, self._connect(url)
        self._clients.append(self.limiter.client)
        try:
            yield
        finally:
            self.limiter.client = patient

    def end(self):
        self.limiter.close(0)
        for client in self._clients:
            client.connection_pool.disconnect()


class Async(Sync):
    """An AsyncLimiter, called as a Limiter is; its loop runs while it is called."""

    _connect = staticmethod(lc.connect_async)

    def __init__(self, url, *args, **options):
        self.loop = asyncio.new_event_loop()
        self.limiter = lc.AsyncLimiter(self._connect(url), *args, **options)
        self._clients = [self.limiter.client]

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
        for client in self._clients:
            self.run(client.connection_pool.disconnect())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
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
            chunk_of, end = iter(chunks), object()
            while True:
                chunk = await self._of.loop.run_in_executor(None, next, chunk_of, end)
                if chunk is end:
                    return
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
        keys = ("org", "acme"), ("user", "ann"), ("spend", "acme")
        self.assertEqual(tuple(self.used(*key, client) for key in keys), want)
