"""Holds of budgets: units that are charged until the call says what it has used."""

import enum
import functools
import logging
import math
import operator
import os
import time
from fractions import Fraction
from typing import NamedTuple, Union

import redis

from .connection import is_unavailable, is_unsent
from .decision import Decision, read_decision
from .keys import bound
from .local import LOCAL_RETRY_SECONDS, LocalUnits
from .outbox import Cancellation, Charge, Settlement, commit, pairs

_log = logging.getLogger("limits_cellserver")

DAY_SECONDS = 86_400  # for which the server remembers a hold that is overdue
_EXTEND_AT = 0.5  # of its time a stream's hold gets all of its time again
_RETRY_AT = 0.1  # of its time is between two tries to extend


class State(enum.Enum):
    """What a hold is.

    from   to      when
    new    denied  a limit has fewer units left, or on_error="closed" decides
    new    held    the server has it
    new    local   LocalUnits has it
    new    free    on_error="open" allows it, and nobody has it
    held   ended   it is settled or cancelled: the server was told, or will be
    local  ended   the same, and the server charges its units when it answers again
    """

    NEW = "new"
    DENIED = "denied"
    HELD = "held"
    LOCAL = "local"
    FREE = "free"
    ENDED = "ended"


class Use(NamedTuple):
    """Units of a key under the name of a limit."""

    limit: str
    key: Union[str, bytes, int]
    units: int


def usd(dollars):
    """Returns the units, millionths of a dollar and rounded up, of a limit with unit usd."""
    units = math.ceil(Fraction(str(dollars)) * 1_000_000)  # str: 0.0123 is what its user wrote
    if units < 0:
        raise ValueError("usd requires dollars >= 0")
    return units


def read_uses(uses):
    """Reads {limit: (key, units)}, or triples of limit, key and units."""
    if isinstance(uses, dict):
        uses = [(limit, *of) for limit, of in uses.items()]
    uses = [Use(limit, key, operator.index(units)) for limit, key, units in uses]
    if not uses or any(use.units < 1 for use in uses):
        raise ValueError("a reservation requires uses, each with units >= 1")
    for use in uses:
        bound(use.key)
    return uses


def _new_id():
    return os.urandom(16).hex()


class BaseHold:
    """What Hold and AsyncHold have in common: all but the way to the server.

    Its steps are generators: they yield commands, are sent replies or errors, and return a result. What ends
    their caller while it waits, such as a task's cancellation, is thrown into them.
    """

    def __init__(self, limiter, uses, ttl, charge=False, id=None, state=State.NEW):
        self.uses, self.ttl, self.charge = read_uses(uses), ttl, charge
        self.id, self._own_id = id or _new_id(), id is None
        self.decisions, self.error, self.counted = [], None, None
        self._limiter, self._state = limiter, state
        self._ends = time.monotonic() + ttl
        self._extend_at = math.inf
        if ttl < 0.001:
            raise ValueError("ttl is seconds, at least 0.001")

    @property
    def allowed(self):
        """Whether the call may go on."""
        return self._state is not State.DENIED

    @property
    def local(self):
        """Whether LocalUnits has it, as no server has answered."""
        return self._state is State.LOCAL

    @property
    def denied(self):
        """The uses that were denied, each with its decision."""
        return [(use, d) for use, d in zip(self.uses, self.decisions) if not d.allowed]

    @property
    def retry_after(self):
        """Seconds until the same reservation may be allowed; -1 is never, or needless."""
        seconds = [d.retry_after for _, d in self.denied]
        return -1 if not seconds or -1 in seconds else max(seconds)

    def near(self, share=0.8):
        """Returns the names of the limits of which that share is used."""
        return list(dict.fromkeys(use.limit for use, d in zip(self.uses, self.decisions) if d.near(share)))

    def record(self):
        """Returns what limiter.resume needs to settle it in another process, for json.dumps."""
        def text(key):
            return bound(key).decode("utf-8", "surrogateescape")

        uses = [[limit, text(key), units] for limit, key, units in self.uses]
        return {"id": self.id, "uses": uses, "ttl": self.ttl, "local": self.local}

    def reserve(self):
        """Yields the reservation, and returns itself."""
        words = ["CL.MRESERVE", len(self.uses), *pairs(self.uses, self._held())]
        words += ["TTL", math.ceil(self.ttl * 1000), *(["CHARGE"] if self.charge else []), "ID", self.id]
        self._ends = time.monotonic() + self.ttl
        try:
            reply = yield tuple(words)
        except BaseException:
            self._cancel_later()
            raise
        if isinstance(reply, redis.RedisError):
            if not is_unsent(reply):
                self._cancel_later()
            self._decide_without(reply)
        else:
            self.decisions = [read_decision(r) for r in reply[1:-1]]
            self._state = State.DENIED if reply[0] else State.HELD
        return self

    def _decide_without(self, error):
        if not is_unavailable(error):
            raise error
        self._report(error)
        self.error, mode = error, self._limiter.on_error
        if isinstance(mode, LocalUnits):
            self.id = _new_id()  # the server may have a hold of the other one, which is canceled
            self.decisions = [read_decision(r, error) for r in mode.take(self.id, self.uses, self._ends)]
            self._state = State.DENIED if self.denied else State.LOCAL
        elif mode == "open":
            self.decisions = [Decision(True, 0, 0, -1, -1, error)] * len(self.uses)
            self._state = State.FREE
        else:
            self.decisions = [Decision(False, 0, 0, LOCAL_RETRY_SECONDS, -1, error)] * len(self.uses)
            self._state = State.DENIED

    def _settle(self, units=None):
        units = self._units_of(units)
        if self._state is State.DENIED:
            raise RuntimeError("the reservation was denied: look at allowed before the call")
        if self._state is State.LOCAL:
            self._state = State.ENDED
            self._charge_later(units)
        if self._state is not State.HELD:
            return None
        self._state = State.ENDED
        try:
            reply = yield commit(self.id, self.uses, units)
        except BaseException:
            self._later(units)
            raise
        if is_unavailable(reply):
            self._report(reply)
            self._later(units)
            return None
        if isinstance(reply, redis.RedisError):
            self._state = State.HELD
            raise reply
        self._limiter.note(self.id, "settled")
        return reply

    def _units_of(self, units):
        """Returns the units of each use by a number for all, {limit: units}, or a list."""
        if units is None:
            units = self.counted
            if units is None:
                raise TypeError("settle requires units, as no stream was counted")
        if isinstance(units, dict):
            unknown = set(units) ^ {use.limit for use in self.uses}
            if unknown:
                raise ValueError(f"settle requires the units of each of the hold's limits: {sorted(unknown)}")
            units = [units[use.limit] for use in self.uses]
        elif not isinstance(units, (list, tuple)):
            units = [units] * len(self.uses)
        units = [operator.index(n) for n in units]
        if len(units) != len(self.uses) or min(units) < 0:
            raise ValueError("units are >= 0, one for all uses or one for each")
        return units

    def _extend(self, ttl):
        """Yields the command, and returns whether the hold was open."""
        now = time.monotonic()
        self._extend_at = now + self.ttl * _RETRY_AT
        if self._state is State.HELD:
            keys = [word for use in self.uses for word in (use.limit, bound(use.key))]
            reply = yield ("CL.MEXTEND", self.id, math.ceil(ttl * 1000), len(self.uses), *keys)
            if is_unavailable(reply):
                self._report(reply)
                return False
            if isinstance(reply, redis.RedisError):
                raise reply
            if not reply:
                return False
        elif self._state is State.LOCAL and not self._limiter.on_error.extend(self.id, now + ttl):
            return False
        self._ends, self._extend_at = now + ttl, now + ttl * _EXTEND_AT
        return self._state in (State.HELD, State.LOCAL, State.FREE)

    def _keep(self):
        """Extends a stream's hold. The answer goes on if that is a mistake."""
        try:
            yield from self._extend(self.ttl)
        except redis.RedisError as mistake:
            _log.warning("a hold of %s is not extended: %r", self.uses, mistake)

    def _leave(self, error):
        """Ends a block, or a stream that fails, with what was counted.

        If nothing was, an Exception settles 0, a hang-up (another BaseException) all, and None nothing.
        """
        if self._state not in (State.HELD, State.LOCAL):
            return
        if error is None and self.counted is None:
            self._limiter.warn_unsettled(self.uses)
            return
        units = self.counted
        if units is None:
            units = 0 if isinstance(error, Exception) else self._held()
        try:
            yield from self._settle(units)
        except redis.RedisError as mistake:
            if error is None:
                raise
            _log.warning("a hold of %s is not settled: %r", self.uses, mistake)

    def _count(self, chunk, count):
        """Counts a chunk, and returns whether to extend."""
        if count is not None:
            self.counted = list(map(operator.add, self.counted, self._units_of(count(chunk))))
        return time.monotonic() >= self._extend_at

    def _begin_stream(self, count):
        self.counted = None if count is None else [0] * len(self.uses)
        self._extend_at = self._ends - self.ttl * _EXTEND_AT

    def _held(self):
        return [use.units for use in self.uses]

    def _later(self, units):
        note = functools.partial(self._limiter.note, self.id, "settled")
        self._limiter.post(Settlement(self.id, self.uses, units, self._ends + DAY_SECONDS, settled=note))

    def _cancel_later(self):
        """Cancels a reservation that the server may have made. Without CHARGE its time does the same.

        Whoever gave the id may repeat the call, which is then the same hold.
        """
        if not self._own_id:
            return
        until = self._ends + (DAY_SECONDS if self.charge else 0)
        self._limiter.post(Cancellation(self.id, self.uses, [0] * len(self.uses), until))

    def _charge_later(self, units):
        counts, note = self._limiter.on_error, functools.partial(self._limiter.note, self.id)
        if not isinstance(counts, LocalUnits):  # of another process
            counts = LocalUnits({})
        counts.settle(self.id, self.uses, units)
        if not any(units):
            note("settled")
            return
        self._limiter.post(Charge(
            self.id, self.uses, list(units), self._ends + DAY_SECONDS,
            settled=functools.partial(note, "settled"), kept=functools.partial(note, "held"),
            ended=functools.partial(counts.told, self.uses, units)))

    def _report(self, error):
        self._limiter.report(error, ", ".join(use.limit for use in self.uses))


class Hold(BaseHold):
    """Is what reserve returns: leave its block by settle or cancel."""

    def settle(self, units=None):
        """Tells what was used: a number for all uses, {limit: units}, or a list; else what a stream counted.

        Returns 1; 2 if the time was over, which debits the units; 0 if there is no such hold; None if it was
        settled before, or the server has not answered: then the limiter goes on trying.
        """
        return self._limiter.run(self._settle(units))

    def cancel(self):
        """Settles 0."""
        return self.settle(0) if self.allowed else None

    def extend(self, ttl):
        """Moves the end to so many seconds from now. Returns False if it is over, or no server answers."""
        return self._limiter.run(self._extend(ttl))

    def stream(self, chunks, count=None):
        """Yields the chunks, and extends the hold after half of its time.

        count returns the units of a chunk as settle takes them. If chunks fail, what was counted is settled
        at once, or 0; if the caller closes the generator, what was counted, or without count the whole hold.
        """
        self._begin_stream(count)
        try:
            for chunk in chunks:
                if self._count(chunk, count):
                    self._limiter.run(self._keep())
                yield chunk
        except BaseException as error:
            self._limiter.run(self._leave(error))
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self._limiter.run(self._leave(error))


class AsyncHold(BaseHold):
    """Is Hold for asyncio: async with limiter.reserve(...), or await it."""

    async def settle(self, units=None):
        """Is Hold.settle."""
        return await self._limiter.run(self._settle(units))

    async def cancel(self):
        """Settles 0."""
        return await self.settle(0) if self.allowed else None

    async def extend(self, ttl):
        """Is Hold.extend."""
        return await self._limiter.run(self._extend(ttl))

    async def stream(self, chunks, count=None):
        """Is Hold.stream."""
        self._begin_stream(count)
        try:
            async for chunk in chunks:
                if self._count(chunk, count):
                    await self._limiter.run(self._keep())
                yield chunk
        except BaseException as error:
            await self._limiter.run(self._leave(error))
            raise

    def __await__(self):
        return self.__aenter__().__await__()

    async def __aenter__(self):
        return await self._limiter.run(self.reserve()) if self._state is State.NEW else self

    async def __aexit__(self, kind, error, traceback):
        await self._limiter.run(self._leave(error))
