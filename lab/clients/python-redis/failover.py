"""Calls the leader of a pair through redis-py, which follows Sentinel. See lab/clients/README.md."""

import json
import os
import queue
import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

INTERVAL = int(os.environ["INTERVAL_MS"]) / 1000
INCR = os.environ["CALL"] == "incr"
# A section is the time between two lines of standard input. Refused and unsent calls were not charged.
COUNTS = ("ok", "allowed", "refused", "unsent", "unknown")


def open_client(sentinels, name, password):
    # sentinel: begin
    # sentinels is [("10.0.0.1", 26379), ("10.0.0.2", 26379), ("10.0.0.3", 26379)], and name is "mymaster"
    sentinel = Sentinel(sentinels, socket_timeout=0.5)
    client = sentinel.master_for(name, password=password, socket_timeout=3, retry=Retry(NoBackoff(), 0))
    # sentinel: end
    return client


def call(key):
    """Reports whether the call is allowed. Practically nothing leaks: a burst of 200,000, and five hours a unit."""
    if INCR:
        return client.incr(key) > 0
    return client.execute_command("CL.THROTTLE", key, 199_999, 1, 18_000)[0] == 0


def kind(error):
    text = str(error)
    if text.startswith(("READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS")):
        return "refused"
    if isinstance(error, (redis.ReadOnlyError, redis.BusyLoadingError)):
        return "refused"
    if text == "The previous master is now a slave":  # redis-py's own words for READONLY
        return "refused"
    if isinstance(error, MasterNotFoundError) or "connecting to" in text:
        return "unsent"
    return "unknown"


def read_keys():
    for line in sys.stdin:
        keys.put(line.rstrip("\n"))
    keys.put(None)


def run():
    key = keys.get()
    last = time.monotonic()  # success
    while key is not None:
        counts, errors, longest = dict.fromkeys(COUNTS, 0), {}, 0
        while keys.empty():
            try:
                counts["allowed"] += call(key)
                counts["ok"] += 1
                now = time.monotonic()
                longest, last = max(longest, now - last), now
            except redis.RedisError as e:
                counts[kind(e)] += 1
                text = f"{type(e).__name__}: {e}"[:100]
                errors[text] = errors.get(text, 0) + 1
            time.sleep(INTERVAL)
        next_key = keys.get()
        since = time.monotonic() - last
        section = {"library": "redis-py", "version": redis.__version__, "key": key, "errors": errors, **counts}
        section |= {"longest_ms": max(longest, since) * 1000, "since_ms": since * 1000}
        if next_key is not None:
            print(json.dumps(section), flush=True)
        key = next_key


def addresses(text):
    return [(host, int(port)) for host, port in (a.split(":") for a in text.split(","))]


client = open_client(addresses(os.environ["SENTINELS"]), os.environ["NAME"], os.environ["PASSWORD"])
keys = queue.SimpleQueue()
threading.Thread(target=read_keys, daemon=True).start()
run()
