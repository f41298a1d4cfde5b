"""Rate limits by cellserver. If limits is installed, an import registers its storage, cellserver://."""

import importlib.util

from .asgi import RateLimitMiddleware
from .connection import connect, connect_async
from .keys import by_address, by_header, by_user
from .limiter import AsyncLimiter, Decision, Limiter
from .local import Local

if importlib.util.find_spec("limits"):
    from . import storage  # noqa: F401

__all__ = [
    "AsyncLimiter", "Decision", "Limiter", "Local", "RateLimitMiddleware",
    "by_address", "by_header", "by_user", "connect", "connect_async",
]
