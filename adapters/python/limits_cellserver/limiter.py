"""Named limits of cellserver, asked by CL.CHECK and CL.MRESERVE."""

import asyncio
import logging
import math
import threading
import time

import redis

from .connection import is_unavailable
from .decision import Decision, read_decision
from .hold import AsyncHold, Hold, State
from .keys import bound
from .local import LOCAL_RETRY_SECONDS, Local, LocalUnits
from .outbox import Outbox

_log = logging.getLogger("limits_cellserver")

_MOST_WAITING = 10_000  # settlements


class _Base:
    """What both limiters have in common."""

    _hold = None  # the class of its holds

    def __init__(self, client, limit=None, on_error="open", max_waiting=_MOST_WAITING, note=None):
        if on_error not in ("open", "closed") and not isinstance(on_error, (Local, LocalUnits)):
            raise ValueError('on_error must be "open", "closed", a Local or, to reserve, a LocalUnits')
        self.client, self.limit, self.on_error = client, limit, on_error
        self._outbox, self._note = Outbox(max_waiting), note
        self._reported = self._warned = -math.inf

    @property
    def waiting(self):
        """How many settlements are waiting and given up, and units lost."""
        return self._outbox.numbers()

    def resume(self, record):
        """Returns the hold of a record() of another process, to settle it."""
        state = State.LOCAL if record["local"] else State.HELD
        return self._hold(self, record["uses"], record["ttl"], id=record["id"], state=state)

    def post(self, letter):
        """Sends it in the background until it is answered."""
        if self._outbox.add(letter):
            self._start_sender()

    def note(self, id, stage):
        """Tells the caller's journal what has become of a hold. Its failure keeps nothing from being sent."""
        try:
            if self._note is not None:
                self._note(id, stage)
        except Exception:
            _log.exception("note has failed: %s %s", id, stage)

    def _new_hold(self, uses, ttl, charge, id):
        if isinstance(self.on_error, Local):
            raise ValueError("reserve has other numbers than a Local: give on_error a LocalUnits")
        return self._hold(self, uses, ttl, charge, id)

    def _words(self, key, quantity):
        return "CL.CHECK", self.limit, bound(key), quantity

    def _failed(self, error, key, quantity):
        if not is_unavailable(error):
            raise error
        self.report(error, self.limit)
        if isinstance(self.on_error, Local):
            return read_decision(self.on_error.check(bound(key), quantity), error)
        if self.on_error == "open":
            return Decision(True, 0, 0, -1, -1, error)
        return Decision(False, 0, 0, LOCAL_RETRY_SECONDS, -1, error)

    def report(self, error, limit):
        """Logs at most one line a second."""
        now = time.monotonic()
        if now - self._reported >= 1:
            self._reported = now
            _log.warning("no server decides about the limit %s: %r", limit, error)

    def warn_unsettled(self, uses):
        """Logs at most one line a second."""
        now = time.monotonic()
        if now - self._warned >= 1:
            self._warned = now
            _log.warning("a hold is left unsettled until its time is over, call settle or cancel: %s", uses)


class Limiter(_Base):
    """Asks for named limits. Safe for threads, as the client is; a hold is for one thread at a time.

    limit is what check asks for. on_error decides without the server: "open" (allow), "closed" (deny), a
    Local for check, or a LocalUnits for reserve, by which check is denied. Mistakes, such as an unknown
    limit, are raised.

    At most max_waiting settlements that have not been answered are kept. note, for a journal of holds, is
    called with an id and "settled" when a settlement was answered, and before it with "held" when the server
    has a hold in place of one that was local or lost. It is called in the sender's thread, too.
    """

    _hold = Hold
    _sender = None

    def check(self, key, quantity=1):
        """Requests units and returns a Decision. A quantity of 0 only looks."""
        try:
            return read_decision(self.client.execute_command(*self._words(key, quantity)))
        except redis.RedisError as error:
            return self._failed(error, key, quantity)

    def reserve(self, uses, ttl, charge=False, id=None):
        """Holds units of all limits or of none, for ttl seconds, and returns a Hold.

        uses is {limit: (key, units)}, or triples of limit, key and units. With charge the units stay charged
        when the time is over. id, 1 to 32 bytes, is for a caller that repeats a call without an answer: that
        is the same hold.
        """
        return self.run(self._new_hold(uses, ttl, charge, id).reserve())

    def close(self, timeout=1):
        """Waits for what is waiting, at most so many seconds, and returns how many still are."""
        if self._outbox.start():
            self._start_sender()
        if self._sender is not None:
            self._sender.join(timeout)
        self._outbox.stop()
        return self.waiting.waiting

    def run(self, steps):
        """Executes the commands of a generator, sends it their replies or errors, and returns its result."""
        result = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            try:
                result = time.sleep(step) if isinstance(step, float) else self.client.execute_command(*step)
            except redis.RedisError as error:
                result = error
            except BaseException as error:
                steps.throw(error)
                raise

    def _start_sender(self):
        self._sender = threading.Thread(target=self.run, args=(self._outbox.deliver(),), daemon=True)
        self._sender.start()


class AsyncLimiter(_Base):
    """Is Limiter for asyncio."""

    _hold = AsyncHold
    _sender = None

    async def check(self, key, quantity=1):
        """Requests units and returns a Decision. A quantity of 0 only looks."""
        try:
            return read_decision(await self.client.execute_command(*self._words(key, quantity)))
        except redis.RedisError as error:
            return self._failed(error, key, quantity)

    def reserve(self, uses, ttl, charge=False, id=None):
        """Is Limiter.reserve: async with it, or await it."""
        return self._new_hold(uses, ttl, charge, id)

    async def aclose(self, timeout=1):
        """Is Limiter.close."""
        if self._outbox.start():
            self._start_sender()
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=timeout)
            self._sender.cancel()
            await asyncio.wait([self._sender])
        return self.waiting.waiting

    async def run(self, steps):
        """Is Limiter.run."""
        result = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            try:
                if isinstance(step, float):
                    result = await asyncio.sleep(step)
                else:
                    result = await self.client.execute_command(*step)
            except redis.RedisError as error:
                result = error
            except BaseException as error:
                steps.throw(error)
                raise

    def _start_sender(self):
        self._sender = asyncio.get_running_loop().create_task(self.run(self._outbox.deliver()))
