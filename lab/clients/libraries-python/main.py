"""Uses Python's libraries for limits on a Redis as their users do, and prints what it saw."""

import importlib.metadata
import json
import logging
import os
import time

import django
import flask
import flask_limiter
import limits
from django.conf import settings
from flask_limiter.util import get_remote_address
from limits import strategies
from limits.storage import storage_from_string

URL = os.environ["REDIS_URL"]
GONE_URL = os.environ["REDIS_GONE_URL"]
POLLS = 3000  # of 20 ms: a minute, which hangs a part on no server

logging.getLogger("flask-limiter").setLevel(logging.CRITICAL)


def word(allowed):
    return "allowed" if allowed else "limited"


def part(library, package, name, run):
    """Prints what a part of a library's work saw; the part adds to it line by line."""
    line = {"library": library, "part": name, "saw": []}
    line["version"] = importlib.metadata.version(package)
    try:
        run(line["saw"])
    except Exception as e:  # any exception ends the part
        line["error"] = f"{type(e).__name__}: {e}"
    print(json.dumps(line), flush=True)


def again(saw, allowed, pause=0.02):
    """Makes calls until one is limited, and then until one is allowed: the window has passed."""
    for want, text in ((False, "limited"), (True, "allowed after the window")):
        for _ in range(POLLS):
            if allowed() == want:
                saw.append(text)
                break
            if want:
                time.sleep(pause)
        else:
            raise TimeoutError(f"not {text}")


def application(uri, limit, **options):
    """Returns the limiter and a test client of an application with one limit."""
    app = flask.Flask("libraries")
    app.logger.disabled = True
    app.config["PROPAGATE_EXCEPTIONS"] = uri == URL  # its text is a part's result
    options = {"storage_uri": uri, "headers_enabled": True, **options}
    limiter = flask_limiter.Limiter(get_remote_address, app=app, **options)
    app.route("/")(limiter.limit(limit)(lambda: ""))
    return limiter, app.test_client()


def told(answer):
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining")
    headers = [f"{n} {answer.headers[n]}" for n in names if n in answer.headers]
    return ", ".join([str(answer.status_code), *headers])


def under_flask(strategy):
    def run(saw):
        _, client = application(URL, "3/hour", strategy=strategy, key_prefix=strategy)
        saw.extend(told(client.get("/")) for _ in range(4))
        _, second = application(URL, "1/second", strategy=strategy, key_prefix=strategy + "-second")
        pause = 1.1 if "elastic" in strategy else 0.02  # a call renews the window
        again(saw, lambda: {200: True, 429: False}[second.get("/").status_code], pause)

    return run


def flask_reset(saw):
    limiter, client = application(URL, "1/hour", key_prefix="reset")
    saw.extend(told(client.get("/")) for _ in range(2))
    limiter.reset()
    saw.append(told(client.get("/")))


def flask_gone(saw):
    for options in ({}, {"swallow_errors": True}, {"in_memory_fallback_enabled": True}):
        saw.append(str(application(GONE_URL, "1/hour", **options)[1].get("/").status_code))


def strategy(kind):
    def run(saw):
        storage = storage_from_string(URL)  # the limiter has a weak reference
        limiter = kind(storage)
        limit = limits.parse("5/hour")
        for cost in (3, 2, 1):
            saw.append(f"cost {cost}: {word(limiter.hit(limit, kind.__name__, cost=cost))}")
        reset, remaining = limiter.get_window_stats(limit, kind.__name__)
        within = 0 < reset - time.time() <= 3600
        saw.append(f"remaining {remaining}, reset within an hour: {within}")
        saw.append(f"test: {word(limiter.test(limit, kind.__name__))}")
        limiter.clear(limit, kind.__name__)
        saw.append(word(limiter.hit(limit, kind.__name__)))

    return run


def limits_gone(saw):
    storage = storage_from_string(GONE_URL)
    limiter = strategies.FixedWindowRateLimiter(storage)
    try:
        saw.append(word(limiter.hit(limits.parse("1/hour"), "k")))
    except Exception:  # any
        saw.append("an error")


def cache(url, **options):
    """Returns Django's cache on the server."""
    from django.core.cache import caches

    backend = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": options}
    caches.settings = {"default": backend}
    return caches.create_connection("default")


def django_cache(saw):
    """Calls the cache as django-ratelimit 4 does: add counts the first, incr the others, get none."""
    store = cache(URL)
    for _ in range(4):
        count = 1 if store.add("rl:k", 1, 3605) else store.incr("rl:k")
        saw.append(f"{word(count <= 3)}, count {count}")
    saw.append(f"count {store.get('rl:k', 0)}, of none {store.get('rl:other', 0)}")

    def second():
        return (1 if store.add("rl:second", 1, 1) else store.incr("rl:second")) <= 1

    again(saw, second)
    saw.append(f"deleted: {store.delete('rl:k')}, count {store.get('rl:k', 0)}")


def django_gone(saw):
    for options in ({}, {"IGNORE_EXCEPTIONS": True}):
        try:
            saw.append(f"add: {cache(GONE_URL, **options).add('rl:k', 1, 3605)}")
        except Exception:  # any
            saw.append("an error")


settings.configure()
django.setup()

for name in ("fixed-window", "fixed-window-elastic-expiry", "moving-window"):
    part("Flask-Limiter", "Flask-Limiter", name, under_flask(name))
part("Flask-Limiter", "Flask-Limiter", "Limiter.reset()", flask_reset)
part("Flask-Limiter", "Flask-Limiter", "gone", flask_gone)
part("limits", "limits", "FixedWindowRateLimiter", strategy(strategies.FixedWindowRateLimiter))
part("limits", "limits", "MovingWindowRateLimiter", strategy(strategies.MovingWindowRateLimiter))
part("limits", "limits", "gone", limits_gone)
part("django-redis", "django-redis", "as django-ratelimit calls it", django_cache)
part("django-redis", "django-redis", "gone", django_gone)
