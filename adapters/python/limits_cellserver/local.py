"""A funnel in this process, for while no server answers."""

import threading
import time
from collections import OrderedDict

SECOND_NS = 1_000_000_000


class Local:
    """Decides as CL.THROTTLE does, for this process alone. Safe for threads.

    max_burst, count and period (seconds) are those of CL.THROTTLE. Of more than max_keys keys it forgets the
    one that was charged longest ago.
    """

    def __init__(self, max_burst, count, period, max_keys=10_000):
        if max_burst < 0 or count < 1 or period < 1 or max_keys < 1:
            raise ValueError("Local requires max_burst >= 0, count, period and max_keys >= 1")
        self._limit = max_burst + 1
        self._interval_ns = period * SECOND_NS // count
        self._max_keys = max_keys
        self._lock = threading.Lock()  # guards _tats_ns
        self._tats_ns = OrderedDict()

    def check(self, key, quantity=1, now_ns=None):
        """Returns the five integers of CL.THROTTLE."""
        if now_ns is None:
            now_ns = time.monotonic_ns()
        with self._lock:
            return self._check_locked(key, quantity, now_ns)

    def _check_locked(self, key, quantity, now_ns):
        tolerance_ns = self._limit * self._interval_ns
        tat_ns = max(self._tats_ns.get(key, now_ns), now_ns)
        new_ns = max(tat_ns + quantity * self._interval_ns, now_ns)
        over_ns = new_ns - now_ns - tolerance_ns
        limited = quantity > 0 and over_ns > 0
        if not limited and quantity != 0:
            tat_ns = new_ns
            self._tats_ns[key] = tat_ns
            self._tats_ns.move_to_end(key)
            if len(self._tats_ns) > self._max_keys:
                self._tats_ns.popitem(last=False)
        remaining = max(0, tolerance_ns - (tat_ns - now_ns)) // self._interval_ns
        retry_after = _whole_seconds(over_ns) if limited and quantity <= self._limit else -1
        return int(limited), self._limit, remaining, retry_after, _whole_seconds(tat_ns - now_ns)


def _whole_seconds(ns):
    return -(-ns // SECOND_NS)
