"""Storages for limits: cellserver decides, in one call for each hit."""

import re
import time
from contextvars import ContextVar

import redis
from limits.aio.storage import base as aio_base
from limits.limits import GRANULARITIES
from limits.storage import base

from .connection import connect, connect_async
from .keys import bound

# limits has it since 4.1.
_Sliding = getattr(base, "SlidingWindowCounterSupport", object)
_AsyncSliding = getattr(aio_base, "SlidingWindowCounterSupport", object)

_MOST = 2**53 - 1
_MAX_EXACT = 4096  # of CL.SLIDINGWINDOW without APPROX
_SCAN_COUNT = 1000

# The limit is at the end of a key: RateLimitItem.key_for writes amount/multiples/granularity.
_LIMIT = re.compile(r"/([1-9]\d{0,14})/([1-9]\d{0,8})/(\w+)$")

# The key that this thread or task was denied last, and the time at which to try again: limits asks for the
# start of a full window in a call of its own, which has no such answer.
_denied = ContextVar("limits_cellserver_denied", default=(None, 0.0))


class _Words:
    """The commands. Replies are limited, limit, remaining, retry after and reset after, in seconds."""

    def __init__(self, prefix):
        self._prefix = prefix

    def name(self, kind, key):
        return f"{self._prefix}{kind}:".encode() + bound(key)

    def fixed(self, key, expiry, amount):
        # A denied hit counts, as in limits' other storages. One unit need not: the window is full.
        words = ["CL.FIXEDWINDOW", self.name("fixed", key), _most(key), expiry, amount]
        return words + ["COUNTDENIED"] if amount > 1 else words

    def look(self, key):
        return self.fixed(key, _period(key), 0)

    def moving(self, key, limit, expiry, amount):
        words = ["CL.SLIDINGWINDOW", self.name("moving", key), limit, expiry, amount]
        return words if limit <= _MAX_EXACT else words + ["APPROX"]

    def sliding(self, key, limit, expiry, amount):
        return ["CL.SLIDINGWINDOW", self.name("sliding", key), limit, expiry, amount, "APPROX"]

    def forget(self, key):
        return ["CL.RESET", self.name("fixed", key), self.name("moving", key)]

    def pattern(self):
        return re.sub(r"([*?\[\]\\])", r"\\\1", self._prefix) + "*"


def _most(key):
    """Returns the limit of a fixed window. Without it the server only counts, and limits denies."""
    found = _LIMIT.search(key)
    return int(found[1]) if found else _MOST


def _period(key):
    """Returns the seconds of a fixed window. The page shows those of the last call, which may be a look."""
    found = _LIMIT.search(key)
    unit = GRANULARITIES.get(found[3]) if found else None
    return int(found[2]) * unit.GRANULARITY.seconds if unit else 1


def _count(reply):
    limited, most, remaining = reply[:3]
    return most - remaining + limited


def _acquired(key, reply):
    if reply[0] and reply[3] >= 0:
        _denied.set((key, time.time() + reply[3]))
    return not reply[0]


def _moving_window(key, limit, expiry, reply):
    used, now = limit - reply[2], time.time()
    denied, retry_at = _denied.get()
    if not reply[2] and denied == key and retry_at > now:
        return retry_at - expiry, used
    return now + reply[4] - expiry, used


def _sliding_window(key, reply, ttl_ms):
    """Returns the weighted count as the present window's. The key expires a period after its end."""
    return 0, 0.0, _most(key) - reply[2], max(0, ttl_ms) / 1000


class CellserverStorage(base.Storage, base.MovingWindowSupport, _Sliding):
    """Keeps limits' counters in cellserver.

    uri is cellserver://[user:password@]host[:port][/database], cellserver+tls://... or
    cellserver+unix:///path.
    options are those of redis.Redis, such as socket_timeout (0.05 s). connection_pool replaces both.
    """

    STORAGE_SCHEME = ["cellserver", "cellserver+tls", "cellserver+unix"]

    def __init__(self, uri, connection_pool=None, key_prefix="limits:", wrap_exceptions=False, **options):
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self._words = _Words(key_prefix)
        if connection_pool:
            self.storage = redis.Redis(connection_pool=connection_pool)
        else:
            self.storage = connect(uri, **options)

    @property
    def base_exceptions(self):
        return redis.RedisError

    def incr(self, key, expiry, elastic_expiry=False, amount=1):
        if elastic_expiry:
            raise _elastic()
        return _count(self.storage.execute_command(*self._words.fixed(key, expiry, amount)))

    def get(self, key):
        return _count(self.storage.execute_command(*self._words.look(key)))

    def get_expiry(self, key):
        return time.time() + max(0, self.storage.pttl(self._words.name("fixed", key))) / 1000

    def acquire_entry(self, key, limit, expiry, amount=1):
        if amount > limit:
            return False
        return _acquired(key, self.storage.execute_command(*self._words.moving(key, limit, expiry, amount)))

    def get_moving_window(self, key, limit, expiry):
        reply = self.storage.execute_command(*self._words.moving(key, limit, expiry, 0))
        return _moving_window(key, limit, expiry, reply)

    def acquire_sliding_window_entry(self, key, limit, expiry, amount=1):
        if amount > limit:
            return False
        return not self.storage.execute_command(*self._words.sliding(key, limit, expiry, amount))[0]

    def get_sliding_window(self, key, expiry):
        reply = self.storage.execute_command(*self._words.sliding(key, _most(key), expiry, 0))
        return _sliding_window(key, reply, self.storage.pttl(self._words.name("sliding", key)))

    def clear_sliding_window(self, key, expiry):
        self.storage.execute_command("CL.RESET", self._words.name("sliding", key))

    def clear(self, key):
        self.storage.execute_command(*self._words.forget(key))

    def check(self):
        try:
            return self.storage.ping()
        except redis.RedisError:
            return False

    def reset(self):
        deleted = 0
        for name in self.storage.scan_iter(self._words.pattern(), count=_SCAN_COUNT):
            deleted += self.storage.execute_command("CL.RESET", name)
        return deleted


class AsyncCellserverStorage(aio_base.Storage, aio_base.MovingWindowSupport, _AsyncSliding):
    """Is CellserverStorage for asyncio, by redis.asyncio."""

    STORAGE_SCHEME = ["async+cellserver", "async+cellserver+tls", "async+cellserver+unix"]

    def __init__(self, uri, connection_pool=None, key_prefix="limits:", wrap_exceptions=False, **options):
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self._words = _Words(key_prefix)
        if connection_pool:
            self.storage = redis.asyncio.Redis(connection_pool=connection_pool)
        else:
            self.storage = connect_async(uri, **options)

    @property
    def base_exceptions(self):
        return redis.RedisError

    async def incr(self, key, expiry, elastic_expiry=False, amount=1):
        if elastic_expiry:
            raise _elastic()
        return _count(await self.storage.execute_command(*self._words.fixed(key, expiry, amount)))

    async def get(self, key):
        return _count(await self.storage.execute_command(*self._words.look(key)))

    async def get_expiry(self, key):
        ttl_ms = await self.storage.pttl(self._words.name("fixed", key))
        return time.time() + max(0, ttl_ms) / 1000

    async def acquire_entry(self, key, limit, expiry, amount=1):
        if amount > limit:
            return False
        reply = await self.storage.execute_command(*self._words.moving(key, limit, expiry, amount))
        return _acquired(key, reply)

    async def get_moving_window(self, key, limit, expiry):
        reply = await self.storage.execute_command(*self._words.moving(key, limit, expiry, 0))
        return _moving_window(key, limit, expiry, reply)

    async def acquire_sliding_window_entry(self, key, limit, expiry, amount=1):
        if amount > limit:
            return False
        return not (await self.storage.execute_command(*self._words.sliding(key, limit, expiry, amount)))[0]

    async def get_sliding_window(self, key, expiry):
        reply = await self.storage.execute_command(*self._words.sliding(key, _most(key), expiry, 0))
        return _sliding_window(key, reply, await self.storage.pttl(self._words.name("sliding", key)))

    async def clear_sliding_window(self, key, expiry):
        await self.storage.execute_command("CL.RESET", self._words.name("sliding", key))

    async def clear(self, key):
        await self.storage.execute_command(*self._words.forget(key))

    async def check(self):
        try:
            return await self.storage.ping()
        except redis.RedisError:
            return False

    async def reset(self):
        deleted = 0
        async for name in self.storage.scan_iter(self._words.pattern(), count=_SCAN_COUNT):
            deleted += await self.storage.execute_command("CL.RESET", name)
        return deleted


def _elastic():
    return NotImplementedError("cellserver has no elastic expiry: use the strategy moving-window")
