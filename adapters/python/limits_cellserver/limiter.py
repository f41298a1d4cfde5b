"""Named limits of cellserver, asked by CL.CHECK."""

import logging
import math
import time
from typing import NamedTuple, Optional

import redis

from .connection import is_unavailable
from .keys import bound
from .local import Local

_log = logging.getLogger("limits_cellserver")

UNLIMITED = 2**63 - 1  # the limit of an override that is unlimited
_MAX_INTEGER = 999_999_999_999_999  # of structured fields (RFC 9651)
_CLOSED_RETRY_SECONDS = 1


class Decision(NamedTuple):
    """An answer. retry_after and reset_after are seconds; -1 is never, or needless.

    error is what kept the server from deciding, or None. Then limit is 0, unless a Local decided.
    """

    allowed: bool
    limit: int
    remaining: int
    retry_after: int
    reset_after: int
    error: Optional[redis.RedisError] = None

    @property
    def decided(self):
        """Whether the server has decided, or a Local."""
        return self.error is None or self.limit > 0

    def headers(self, name):
        """Returns RateLimit-Policy, RateLimit and Retry-After for a limit's name, as a dict."""
        fields = {}
        if self.decided and self.limit != UNLIMITED:
            seconds = self.reset_after if self.allowed else self.retry_after
            after = f";t={_integer(seconds)}" if seconds >= 0 and self.limit > 0 else ""
            fields["RateLimit-Policy"] = f'"{name}";q={_integer(self.limit)}'
            fields["RateLimit"] = f'"{name}";r={_integer(self.remaining)}{after}'
        if not self.allowed and self.retry_after >= 0:
            fields["Retry-After"] = str(self.retry_after)
        return fields


class _Base:
    """What both limiters have in common."""

    def __init__(self, client, limit, on_error="open"):
        if on_error not in ("open", "closed") and not isinstance(on_error, Local):
            raise ValueError('on_error must be "open", "closed" or a Local')
        self.client, self.limit, self.on_error = client, limit, on_error
        self._reported = -math.inf

    def _words(self, key, quantity):
        return "CL.CHECK", self.limit, bound(key), quantity

    def _failed(self, error, key, quantity):
        if not is_unavailable(error):
            raise error
        self._report(error)
        if isinstance(self.on_error, Local):
            return _decision(self.on_error.check(bound(key), quantity), error)
        if self.on_error == "open":
            return Decision(True, 0, 0, -1, -1, error)
        return Decision(False, 0, 0, _CLOSED_RETRY_SECONDS, -1, error)

    def _report(self, error):
        """Logs at most one line a second."""
        now = time.monotonic()
        if now - self._reported >= 1:
            self._reported = now
            _log.warning("no server decides about the limit %s: %r", self.limit, error)


class Limiter(_Base):
    """Asks for one named limit. Safe for threads, as the client is.

    on_error decides without the server: "open" (allow), "closed" (deny), or a Local. Mistakes, such
    as an unknown limit, are raised.
    """

    def check(self, key, quantity=1):
        """Requests units and returns a Decision. A quantity of 0 only looks."""
        try:
            return _decision(self.client.execute_command(*self._words(key, quantity)))
        except redis.RedisError as error:
            return self._failed(error, key, quantity)


class AsyncLimiter(_Base):
    """Is Limiter for asyncio."""

    async def check(self, key, quantity=1):
        """Requests units and returns a Decision. A quantity of 0 only looks."""
        try:
            return _decision(await self.client.execute_command(*self._words(key, quantity)))
        except redis.RedisError as error:
            return self._failed(error, key, quantity)


def _decision(reply, error=None):
    return Decision(not reply[0], *reply[1:5], error)


def _integer(n):
    return max(0, min(n, _MAX_INTEGER))
