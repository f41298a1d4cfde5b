"""Holds of budgets: units that are charged until the call says what it has used."""

import asyncio
import contextlib
import enum
import functools
import logging
import math
import operator
import os
import threading
import time

import redis

from .connection import is_unavailable, is_unsent
from .decision import UNLIMITED, Decision, read_decision
from .keys import bound
from .local import LOCAL_RETRY_SECONDS, LocalUnits
from .outbox import Cancellation, Charge, Outcome, Settlement, commit, pairs
from .uses import read_units, read_uses

_log = logging.getLogger("limits_cellserver")

DAY_SECONDS = 86_400  # a hold lasts at most that long, and the server remembers it as long when it is overdue
_EXTEND_AT = 0.5  # of its time a stream's hold gets all of its time again
_RETRY_AT = 0.1  # of its time is between two tries


class State(enum.Enum):
    """What a hold is.

    from   to      when
    new    denied  a limit has fewer units left, or on_error="closed" decides
    new    held    the server has it
    new    local   LocalUnits has it
    new    free    nobody has it: on_error="open" allows it, or its keys are unlimited
    held   ended   it is settled or cancelled: the server was told, or will be
    local  ended   the same, and the server charges its units when it answers again
    """

    NEW = "new"
    DENIED = "denied"
    HELD = "held"
    LOCAL = "local"
    FREE = "free"
    ENDED = "ended"


def _new_id():
    return os.urandom(16).hex()


def _check_ttl(ttl):
    if not 0.001 <= ttl <= DAY_SECONDS:
        raise ValueError("ttl is seconds, 0.001 to those of a day")


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
        self._alone = self._own_id and state is State.NEW  # nobody else settles it
        self._ends = time.monotonic() + ttl
        self._streaming, self._mistake = False, None
        _check_ttl(ttl)

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
        """Returns what limiter.resume needs to settle it when this process is dead, for json.dumps."""
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
            if self._own_id:
                self._cancel_later(self.id)
            raise
        if isinstance(reply, redis.RedisError):
            asked = self.id
            self._decide_without(reply)
            # Whoever gave the id may repeat the call, which is then the same hold, unless it goes on without.
            if not is_unsent(reply) and (self._own_id or self.allowed):
                self._cancel_later(asked)
        else:
            self.decisions = [read_decision(r) for r in reply[1:-1]]
            unlimited = all(d.limit == UNLIMITED for d in self.decisions)
            self._state = State.DENIED if reply[0] else State.FREE if unlimited else State.HELD
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
        if self._state is State.DENIED:
            raise RuntimeError("the reservation was denied: look at allowed before the call")
        try:
            if units is None and self.counted is None:
                raise TypeError("settle requires units, as no stream was counted")
            units = read_units(self.counted if units is None else units, self.uses)
            if self._state is State.LOCAL:
                self._state = State.ENDED
                self._charge_later(units)
            return (yield from self._commit(units)) if self._state is State.HELD else None
        except Exception as mistake:
            self._mistake = mistake
            raise

    def _commit(self, units):
        self._state = State.ENDED
        note = functools.partial(self._limiter.note, self.id, "settled")
        settlement = Settlement(
            self.id, self.uses, units, self._ends + DAY_SECONDS, self._alone, settled=note,
            kept=functools.partial(self._limiter.note, self.id, "held"))
        try:
            reply = yield commit(self.id, self.uses, units)
        except BaseException:
            settlement.alone = False
            self._limiter.post(settlement)
            raise
        outcome = settlement.read(reply)
        if outcome is Outcome.DONE:
            note()
            return reply
        if outcome is Outcome.MISTAKE:
            self._state = State.HELD
            raise reply
        if outcome is Outcome.AGAIN:
            self._report(reply)
        self._limiter.post(settlement)
        return None

    def _extend(self, ttl):
        """Yields the command, and returns whether the hold was open."""
        _check_ttl(ttl)
        now = time.monotonic()
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
        elif self._state is State.LOCAL and not self._counts().extend(self.id, now + ttl):
            return False
        self._ends = now + ttl
        return self._state in (State.HELD, State.LOCAL, State.FREE)

    def _keep(self):
        """Extends a stream's hold, and returns whether to do so again. The answer goes on in any case."""
        try:
            yield from self._extend(self.ttl)
        except redis.RedisError as mistake:
            _log.warning("a hold of %s is not extended: %r", self.uses, mistake)
            return False
        return self._state in (State.HELD, State.LOCAL)

    def _pause(self):
        """Returns the seconds until a stream extends its hold."""
        return max(self._ends - time.monotonic() - self.ttl * _EXTEND_AT, self.ttl * _RETRY_AT)

    def _leave(self, error):
        """Ends a block, or a stream that fails, with what was counted.

        If nothing was, an Exception settles 0, a hang-up (another BaseException, or a stream that was left)
        all, and None nothing. Nor does a mistake of settle, as the answer was there.
        """
        if self._state not in (State.HELD, State.LOCAL) or error is not None and error is self._mistake:
            return
        units = self.counted
        if units is None and error is None and not self._streaming:
            self._limiter.warn_unsettled(self.uses)
            return
        if units is None:
            units = 0 if isinstance(error, Exception) and not self._streaming else self._held()
        try:
            yield from self._settle(units)
        except redis.RedisError as mistake:
            if error is None:
                raise
            _log.warning("a hold of %s is not settled: %r", self.uses, mistake)

    def _begin_stream(self, count):
        self._streaming = True
        if count is None or self.counted is None:  # else it is a further one
            self.counted = None if count is None else [0] * len(self.uses)

    def _count(self, chunk, count):
        if count is not None:
            self.counted = list(map(operator.add, self.counted, read_units(count(chunk), self.uses)))

    def _held(self):
        return [use.units for use in self.uses]

    def _cancel_later(self, id):
        """Cancels a reservation that the server may have made. Without CHARGE its time does the same."""
        until = self._ends + (DAY_SECONDS if self.charge else 0)
        self._limiter.post(Cancellation(id, self.uses, [0] * len(self.uses), until))

    def _charge_later(self, units):
        counts, note = self._counts(), functools.partial(self._limiter.note, self.id)
        counts.settle(self.id, self.uses, units)
        if not any(units):
            note("settled")
            return
        self._limiter.post(Charge(
            self.id, self.uses, units, self._ends + DAY_SECONDS, self._alone,
            settled=functools.partial(note, "settled"), kept=functools.partial(note, "held"),
            ended=functools.partial(counts.told, self.uses, units)))

    def _counts(self):
        """Returns what has a local hold, or of another process's nothing."""
        on_error = self._limiter.on_error
        return on_error if isinstance(on_error, LocalUnits) else LocalUnits({})

    def _report(self, error):
        self._limiter.report(error, ", ".join(use.limit for use in self.uses))


class Hold(BaseHold):
    """Is what reserve returns: leave its block by settle or cancel."""

    def settle(self, units=None):
        """Tells what was used: a number for all uses, {limit: units}, or a list; else what a stream counted.

        Returns 1; 2 if the time was over, which debits the units; 0 if there is no such hold and another may
        have settled it; None if it was settled before, or the limiter goes on with it in the background: the
        server has not answered, or has lost the hold, and is to charge the units.
        """
        return self._limiter.run(self._settle(units))

    def cancel(self):
        """Settles 0."""
        return self.settle(0) if self.allowed else None

    def extend(self, ttl):
        """Moves the end to so many seconds from now. Returns False if it is over, or no server answers."""
        return self._limiter.run(self._extend(ttl))

    def stream(self, chunks, count=None):
        """Yields the chunks, and meanwhile extends the hold in a thread.

        count returns the units of a chunk as settle takes them. If chunks fail, what was counted is settled
        at once, or 0; if the caller leaves the loop, what was counted, or without count the whole hold.
        """
        self._begin_stream(count)
        try:
            with self._kept():
                for chunk in chunks:
                    self._count(chunk, count)
                    yield chunk
            self._streaming = False
        except BaseException as error:
            self._streaming = False
            self._limiter.run(self._leave(error))
            raise

    @contextlib.contextmanager
    def _kept(self):
        ended = threading.Event()
        threading.Thread(target=self._keep_until, args=(ended,), daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _keep_until(self, ended):
        while not ended.wait(self._pause()) and self._limiter.run(self._keep()):
            pass

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
        """Is Hold.stream, with a task in place of a thread."""
        self._begin_stream(count)
        try:
            with self._kept():
                async for chunk in chunks:
                    self._count(chunk, count)
                    yield chunk
            self._streaming = False
        except BaseException as error:
            self._streaming = False
            await self._limiter.run(self._leave(error))
            raise

    @contextlib.contextmanager
    def _kept(self):
        task = asyncio.get_running_loop().create_task(self._keep_on())
        try:
            yield
        finally:
            task.cancel()

    async def _keep_on(self):
        while True:
            await asyncio.sleep(self._pause())
            if not await self._limiter.run(self._keep()):
                return

    def __await__(self):
        return self.__aenter__().__await__()

    async def __aenter__(self):
        return await self._limiter.run(self.reserve()) if self._state is State.NEW else self

    async def __aexit__(self, kind, error, traceback):
        await self._limiter.run(self._leave(error))
