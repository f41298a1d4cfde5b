"""Connections with time-outs that suit a limiter."""

import redis
import redis.asyncio
import redis.asyncio.retry
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT_SECONDS = 0.05

_SCHEMES = {"cellserver": "redis", "cellserver+tls": "rediss", "cellserver+unix": "unix"}
_PORT = 6380  # of cellserver:// and cellserver+tls:// without one

# Errors of the server that say nothing of the call: it is full, loading, no leader, or its store is away.
_UNAVAILABLE = {
    "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "STOREDOWN",
    "TOOMANYHOLDS", "TRYAGAIN",
}
# Of these the ones that refuse a call at the door.
_REFUSED = {"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "OOM", "READONLY", "TOOMANYHOLDS"}
_UNAVAILABLE_TEXTS = (
    "new keys per second from this address", "the store failed", "conflicts with other clients",
    "was ended before it was done", "max number of clients",
)
# redis-py cuts the code off the text where it has a class for the code.
_REFUSED_CLASSES = tuple(
    getattr(redis.exceptions, name)
    for name in ("BusyLoadingError", "ClusterDownError", "OutOfMemoryError", "ReadOnlyError")
    if hasattr(redis.exceptions, name)
)


def connect(url, **options):
    """Returns a redis.Redis for cellserver://, cellserver+tls://, cellserver+unix:// or an URL of redis-py.

    A call waits 50 ms and is not repeated, as it may have been counted. options are those of redis.Redis.
    """
    redis_url, defaults = _read(url)
    return redis.Redis.from_url(redis_url, **{**defaults, "retry": Retry(NoBackoff(), 0), **options})


def connect_async(url, **options):
    """Is connect for asyncio. The client belongs to the event loop that first uses it."""
    redis_url, defaults = _read(url)
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    return redis.asyncio.Redis.from_url(redis_url, **{**defaults, "retry": retry, **options})


def is_unavailable(error):
    """Reports whether an error of redis-py means that nobody decided; others are mistakes of the caller's."""
    if isinstance(error, (redis.AuthenticationError, redis.exceptions.AuthorizationError)):
        return False
    classes = redis.ConnectionError, redis.TimeoutError, redis.exceptions.TryAgainError, *_REFUSED_CLASSES
    if isinstance(error, classes):
        return True
    if not isinstance(error, redis.RedisError):
        return False
    text = str(error)
    return text.split(" ", 1)[0] in _UNAVAILABLE or any(part in text for part in _UNAVAILABLE_TEXTS)


def is_refused(error):
    """Reports whether an error means that the call has certainly not been counted, and may be repeated."""
    refused = isinstance(error, _REFUSED_CLASSES) or str(error).split(" ", 1)[0] in _REFUSED
    return refused and isinstance(error, redis.RedisError)


def is_unsent(error):
    """Reports whether an error certainly means that there is nothing to take back."""
    text = str(error)
    return is_refused(error) or not is_unavailable(error) or "connecting to" in text  # redis-py's words


def _read(url):
    """Returns a URL of redis-py, and options for what it does not say."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.removeprefix("async+")
    redis_scheme = _SCHEMES.get(scheme, scheme)
    if not separator or redis_scheme not in _SCHEMES.values():
        raise ValueError(
            "want a URL with cellserver://, cellserver+tls:// or cellserver+unix://,"
            " or redis-py's redis://, rediss:// or unix://"
        )
    defaults = {"socket_timeout": TIMEOUT_SECONDS}
    if redis_scheme != "unix":  # has no port, and no time-out to connect
        defaults["socket_connect_timeout"] = TIMEOUT_SECONDS
        if scheme in _SCHEMES:
            defaults["port"] = _PORT
    return redis_scheme + separator + rest, defaults
