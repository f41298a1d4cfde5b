"""Rate limits by cellserver. If limits is installed, an import registers its storage, cellserver://."""

import importlib.util

from .asgi import RateLimitMiddleware
from .connection import connect, connect_async
from .decision import Decision
from .hold import AsyncHold, Hold
from .keys import by_address, by_header, by_user
from .limiter import AsyncLimiter, Limiter
from .local import Local, LocalUnits
from .outbox import Waiting
from .uses import Use, usd

if importlib.util.find_spec("limits"):
    from . import storage  # noqa: F401

__all__ = [
    "AsyncHold", "AsyncLimiter", "Decision", "Hold", "Limiter", "Local", "LocalUnits", "RateLimitMiddleware",
    "Use", "Waiting", "by_address", "by_header", "by_user", "connect", "connect_async", "usd",
]
