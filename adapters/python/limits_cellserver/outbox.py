"""What is still to be told to the server: settlements and debits that have not been answered."""

import logging
import threading
import time
from collections import deque
from typing import Callable, NamedTuple

import redis

from .connection import is_refused, is_unavailable

_log = logging.getLogger("limits_cellserver")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between tries


class Letter(NamedTuple):
    """A command, and the time of time.monotonic at which it is given up.

    A settlement is repeated until it is answered: the server settles an id once. A debit is sent once, as
    the server may have counted one that it did not answer. A doubtful one is the end of a reservation that was
    not answered, which the server may read after it: if it finds no hold, it is sent once more. The hold's own
    end does much the same, so it is the first to be left out.
    """

    words: tuple
    until: float
    debit: bool = False
    doubtful: bool = False
    ended: Callable = lambda: None  # is called when it is answered, given up or lost


class Waiting(NamedTuple):
    """Numbers of an outbox.

    waiting are to be sent. given_up are settlements that had no answer for a day after their hold's end, got an
    error that no repetition mends, or found the outbox full. lost are debits of which nobody knows.
    """

    waiting: int
    given_up: int
    lost: int


class Outbox:
    """Keeps at most so many letters in their order. Safe for threads; it has no I/O of its own."""

    def __init__(self, most):
        self._most = most
        self._lock = threading.Lock()  # guards the rest
        self._letters = deque()
        self._given_up = self._lost = 0
        self._running = self._stopped = False

    def numbers(self):
        with self._lock:
            return Waiting(len(self._letters), self._given_up, self._lost)

    def add(self, letter):
        """Returns whether the caller has to start a deliver."""
        with self._lock:
            if len(self._letters) < (self._most // 2 if letter.doubtful else self._most):
                self._letters.append(letter)
                start, self._running, self._stopped = not self._running, True, False
                return start
        self._drop(letter, "the outbox is full")
        return False

    def start(self):
        """Returns whether letters are waiting and the caller has to start a deliver for them."""
        with self._lock:
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
                if (yield from (self._send_debit if letter.debit else self._settle)(letter)):
                    pause = _FIRST_PAUSE
                    continue
                yield pause
                pause = min(2 * pause, _LONGEST_PAUSE)
        except BaseException:
            with self._lock:
                self._running = False
            raise

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
            self._drop(letter, "it was not answered in time")

    def _settle(self, letter):
        """Returns whether to go on at once."""
        reply = yield letter.words
        self._take(letter)
        if is_unavailable(reply):
            self._put(letter)  # at the end: others may fare better
            return False
        if letter.doubtful and reply == 0:
            self._put(letter._replace(doubtful=False))
            return False
        if isinstance(reply, redis.RedisError):
            self._drop(letter, reply)
        else:
            letter.ended()
        return True

    def _send_debit(self, letter):
        """Is _settle of a debit. It goes to a server that answers, and out of the box before."""
        if isinstance((yield ("PING",)), redis.RedisError):
            return False
        self._take(letter)
        try:
            reply = yield letter.words
        except BaseException as error:
            self._drop(letter, repr(error))
            raise
        if is_refused(reply):
            self._put(letter)
            return False
        if isinstance(reply, redis.RedisError):
            self._drop(letter, reply)
        else:
            letter.ended()
        return not isinstance(reply, redis.RedisError)

    def _put(self, letter):
        with self._lock:
            self._letters.append(letter)

    def _take(self, letter):
        with self._lock:
            self._letters.remove(letter)

    def _drop(self, letter, why):
        if letter.doubtful:
            return
        with self._lock:
            if letter.debit:
                self._lost += 1
            else:
                self._given_up += 1
        _log.warning("a %s is lost: %s: %s", "debit" if letter.debit else "settlement", letter.words, why)
        letter.ended()
