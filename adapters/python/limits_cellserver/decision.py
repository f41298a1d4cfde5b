"""An answer of the server, or of what decides in its place."""

import math
from typing import NamedTuple, Optional

import redis

UNLIMITED = 2**63 - 1  # the limit of an override that is unlimited
_MAX_INTEGER = 999_999_999_999_999  # of structured fields (RFC 9651)


class Decision(NamedTuple):
    """An answer. retry_after and reset_after are seconds; -1 is never, or needless.

    error is what kept the server from deciding, or None. Then limit is 0, unless a Local or LocalUnits
    decided.
    """

    allowed: bool
    limit: int
    remaining: int
    retry_after: int
    reset_after: int
    error: Optional[redis.RedisError] = None

    @property
    def decided(self):
        """Whether the server has decided, or a Local or LocalUnits."""
        return self.error is None or self.limit > 0

    def near(self, share=0.8):
        """Reports whether that share of the limit is used: without another, the server's own for near."""
        if not self.decided or self.limit in (0, UNLIMITED):
            return False
        return self.limit - self.remaining >= math.ceil(self.limit * share)

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


def read_decision(reply, error=None):
    """Reads the five integers of a decision."""
    return Decision(not reply[0], *reply[1:5], error)


def _integer(n):
    return max(0, min(n, _MAX_INTEGER))
