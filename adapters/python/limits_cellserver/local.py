"""What decides in this process while no server answers: a funnel, or a number of units."""

import heapq
import threading
import time
from collections import OrderedDict

SECOND_NS = 1_000_000_000
_SPARE_ENDS = 1000  # of holds that are settled or were extended
LOCAL_RETRY_SECONDS = 1  # nobody knows when the server is back


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


class LocalUnits:
    """Counts what reservations take while no server answers, at most so many units for each key of a limit.

    most has a limit's units by its name; a limit without them is closed. Units count until the server has
    been told of them, or unsettled ones until their hold's time is over. Of more than max_keys keys further
    ones are closed. Safe for threads.
    """

    def __init__(self, most, max_keys=10_000):
        if any(units < 1 for units in most.values()) or max_keys < 1:
            raise ValueError("LocalUnits requires units and max_keys >= 1")
        self._most, self._max_keys = dict(most), max_keys
        self._lock = threading.Lock()  # guards the rest
        self._used = {}
        self._held = {}  # uses of the holds that are not settled, and their ends, by id
        self._ends = []  # a heap of ends, the ids behind them; those that were moved have older ones, too

    def take(self, id, uses, ends):
        """Holds the units of all uses, or of none, until a time of time.monotonic.

        Returns the five integers of each.
        """
        with self._lock:
            self._return_overdue_locked()
            replies = [self._look_locked(use) for use in uses]
            if any(reply[0] for reply in replies):
                return replies
            for use in uses:
                self._add_locked(use, use.units)
            self._hold_locked(id, uses, ends)
            return [(0, most, left - use.units, -1, -1) for use, (_, most, left, *_) in zip(uses, replies)]

    def extend(self, id, ends):
        """Moves the end of a hold, and reports whether it was open."""
        with self._lock:
            self._return_overdue_locked()
            if id in self._held:
                self._hold_locked(id, self._held[id][0], ends)
            return id in self._held

    def settle(self, id, uses, used):
        """Counts what was used in place of what was held."""
        with self._lock:
            self._return_overdue_locked()
            self._return_locked(id)
            for use, units in zip(uses, used):
                self._add_locked(use, units)

    def told(self, uses, used):
        """Ends that units count, as the server was told."""
        with self._lock:
            for use, units in zip(uses, used):
                self._add_locked(use, -units)

    def _hold_locked(self, id, uses, ends):
        self._held[id] = uses, ends
        heapq.heappush(self._ends, (ends, id))
        if len(self._ends) > 2 * len(self._held) + _SPARE_ENDS:
            self._ends = [(ends, id) for id, (_, ends) in self._held.items()]
            heapq.heapify(self._ends)

    def _return_overdue_locked(self):
        while self._ends and self._ends[0][0] <= time.monotonic():
            ends, id = heapq.heappop(self._ends)
            if self._held.get(id, (None, None))[1] == ends:
                self._return_locked(id)

    def _return_locked(self, id):
        for use in self._held.pop(id, ((), 0))[0]:
            self._add_locked(use, -use.units)

    def _look_locked(self, use):
        most, used = self._most.get(use.limit, 0), self._used.get((use.limit, use.key))
        if not most or used is None and len(self._used) >= self._max_keys:
            return 1, 0, 0, LOCAL_RETRY_SECONDS, -1
        remaining = max(0, most - (used or 0))
        limited = use.units > remaining
        return int(limited), most, remaining, LOCAL_RETRY_SECONDS if limited else -1, -1

    def _add_locked(self, use, units):
        left = self._used.pop((use.limit, use.key), 0) + units
        if left > 0:
            self._used[use.limit, use.key] = left


def _whole_seconds(ns):
    return -(-ns // SECOND_NS)
