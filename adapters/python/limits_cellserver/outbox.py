"""What is still to be told to the server: settlements that have not been answered."""

import enum
import logging
import os
import threading
import time
from collections import deque
from typing import NamedTuple

import redis

from .connection import is_refused, is_unavailable, is_unsent
from .keys import bound

_log = logging.getLogger("limits_cellserver")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between tries
_CHARGE_TTL = "60s"  # of a hold in which something is charged afterwards


class Outcome(enum.Enum):
    """What has become of a letter that was sent."""

    DONE = "done"
    AGAIN = "again"
    MISTAKE = "mistake"  # an error that no repetition mends


class Waiting(NamedTuple):
    """Numbers of an outbox.

    waiting are settlements to be sent. given_up had no answer for a day after their hold's end, were a
    mistake, or found the outbox full. lost are units
    that were debited without an answer, or not at all.
    """

    waiting: int
    given_up: int
    lost: int


def pairs(uses, units):
    return [word for use, n in zip(uses, units) for word in (use.limit, bound(use.key), n)]


def commit(id, uses, units):
    return "CL.MCOMMIT", id, len(uses), *pairs(uses, units)


class Settlement:
    """Settles a hold. It may be repeated: the server settles an id once.

    from     to       when
    commit   reserve  the server has lost the hold, and nobody has settled it
    reserve  commit   it has a hold of a unit of each use, so that what is charged may be repeated
    reserve  debit    a limit has no unit left: each use is debited, once, as that may not be repeated

    until is the time of time.monotonic at which it is given up. alone is whether nobody else may have settled
    the id, nor an earlier try. kept is called when the server has a new hold of that id, or a debit is about
    to be sent; ended in any case, and settled when it was answered.
    """

    silent = False

    def __init__(
            self, hold_id, uses, units, until, alone=False,
            kept=lambda: None, settled=lambda: None, ended=lambda: None):
        self.id, self.uses, self.units, self.until, self.alone = hold_id, uses, list(units), until, alone
        self.kept, self.settled, self.ended = kept, settled, ended
        self.lost = 0
        self._step = self._commit

    def send(self):
        """Yields commands, is sent replies or errors, and returns an Outcome."""
        outcome = None
        while outcome is None:
            outcome = yield from self._step()
        return outcome

    def read(self, reply):
        """Returns the Outcome of a commit's reply, or None if there is more to send."""
        alone, self.alone = self.alone, self.alone and is_unsent(reply)
        if reply == 0 and alone and any(self.units):
            self._step, self.alone = self._reserve, False
            return None
        return _outcome(reply)

    def _commit(self):
        return self.read((yield commit(self.id, self.uses, self.units)))

    def _reserve(self):
        ones = pairs(self.uses, [1] * len(self.uses))
        reply = yield ("CL.MRESERVE", len(self.uses), *ones, "TTL", _CHARGE_TTL, "ID", self.id)
        earlier = isinstance(reply, redis.ResponseError) and "whose time is over" in str(reply)
        if isinstance(reply, redis.RedisError) and not earlier:
            return _outcome(reply)
        self._step = self._debit if not earlier and reply[0] else self._commit
        self.kept()
        return None

    def _debit(self):
        for i, use in enumerate(self.uses):
            units = self.units[i]
            if not units:
                continue
            if isinstance((yield ("PING",)), redis.RedisError):
                return Outcome.AGAIN
            self.units[i] = 0
            self.lost += units
            reply = yield ("CL.CHECK", use.limit, bound(use.key), units, "DEBIT")
            if is_refused(reply):
                self.units[i] = units
            if is_refused(reply) or not isinstance(reply, redis.RedisError):
                self.lost -= units
            if isinstance(reply, redis.RedisError):
                return _outcome(reply)
        return Outcome.DONE


class Cancellation(Settlement):
    """Settles a reservation that was not answered with 0.

    The server may read that one later, so it is sent again if it finds no hold. The end of the hold's time
    does much the same, so it is the first to be left out, silently.
    """

    silent = True
    _seen = False

    def read(self, reply):
        if reply == 0 and not self._seen:
            self._seen = True
            return Outcome.AGAIN
        return _outcome(reply)


class Charge(Settlement):
    """Charges what LocalUnits counted, of which the server has no hold yet."""

    def __init__(self, *of, **options):
        super().__init__(*of, **options)
        self._step = self._reserve


def _outcome(reply):
    if is_unavailable(reply):
        return Outcome.AGAIN
    return Outcome.MISTAKE if isinstance(reply, redis.RedisError) else Outcome.DONE


class Outbox:
    """Keeps at most so many settlements in their order. Safe for threads; it has no I/O of its own."""

    def __init__(self, most):
        self._most = most
        self._lock = threading.Lock()  # guards the rest
        self._letters = deque()
        self._given_up = self._lost = 0
        self._running = self._stopped = False
        self._process = os.getpid()

    def numbers(self):
        with self._lock:
            self._leave_to_parent_locked()
            return Waiting(len(self._letters), self._given_up, self._lost)

    def add(self, letter):
        """Returns whether the caller has to start a deliver."""
        with self._lock:
            self._leave_to_parent_locked()
            fits = len(self._letters) < (self._most // 2 if letter.silent else self._most)
            if fits:
                self._letters.append(letter)
        if not fits:
            self._end(letter, "the outbox is full")
        return fits and self.start()

    def start(self):
        """Returns whether letters are waiting and the caller has to start a deliver for them."""
        with self._lock:
            self._leave_to_parent_locked()
            start = bool(self._letters) and not self._running
            self._running, self._stopped = self._running or start, False
            return start

    def stop(self):
        """Has deliver end before its next letter."""
        with self._lock:
            self._stopped = True

    def deliver(self):
        """Yields commands, and is sent their replies or errors; and yields seconds to wait, as a float.

        It ends when nothing is left. What its caller throws ends it, too, and leaves letters.
        """
        pause = _FIRST_PAUSE
        try:
            while (letter := self._next()) is not None:
                outcome = yield from letter.send()
                with self._lock:
                    self._letters.remove(letter)
                    if outcome is Outcome.AGAIN:
                        self._letters.append(letter)  # behind others, which may fare better
                if outcome is Outcome.AGAIN:
                    yield pause
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    continue
                self._end(letter, None if outcome is Outcome.DONE else "the server refuses it")
                pause = _FIRST_PAUSE
        except BaseException:
            with self._lock:
                self._running = False
            raise

    def _leave_to_parent_locked(self):
        """Forgets, after a fork, what the other process sends."""
        if self._process != os.getpid():
            self._process, self._running = os.getpid(), False
            self._letters.clear()
            self._given_up = self._lost = 0

    def _next(self):
        while True:
            with self._lock:
                if self._stopped or not self._letters:
                    self._running = False  # with the lock, so that the next add starts another
                    return None
                letter = self._letters[0]
                if time.monotonic() < letter.until:
                    return letter
                self._letters.popleft()
            self._end(letter, "it was not answered in time")

    def _end(self, letter, given_up):
        with self._lock:
            self._lost += letter.lost
            self._given_up += bool(given_up) and not letter.silent
        if letter.lost or given_up and not letter.silent:
            why = given_up or "a debit was not answered"
            _log.warning("a settlement is lost: %s %s: %s", letter.uses, letter.units, why)
        letter.ended()
        if not given_up:
            letter.settled()
