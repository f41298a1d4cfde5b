#!/usr/bin/env python3
"""Writes quota.csv: calls of quotas, and debits of them, of funnels and of windows, for TestQuotaVectors.

Usage: python3 quota.py > quota.csv

The method is independent of the Go code: units are in lists, levels are fractions, times to retry are found by
bisection, and the ends of quotas are those of calendar/testdata/vectors.py, from Python's zoneinfo. The flags
are 1 for COUNTDENIED and 2 for DEBIT.
"""

import math
import os
import random
import sys
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../calendar/testdata"))
from vectors import window  # noqa: E402

SEC = 10**9
T0 = 1_700_000_000 * SEC
MOST_NS = 2**62
COUNT_DENIED, DEBIT = 1, 2
CALENDARS = [
    ("", "second", "", False), ("", "minute", "", False), ("", "hour", "", False), ("", "day", "", False),
    ("", "day", "", True), ("", "week", "", True), ("", "month", "", True), ("", "year", "", True),
    ("Europe/Berlin", "day", "", False), ("Europe/Berlin", "day", "02:30", False), ("Europe/Berlin", "month", "31", False),
    ("America/New_York", "day", "06:00", False), ("America/New_York", "week", "7", False),
    ("Australia/Lord_Howe", "day", "", False), ("Asia/Kathmandu", "day", "", False),
    ("America/Sao_Paulo", "year", "04-01", False), ("Pacific/Chatham", "week", "", False),
]


def whole_seconds(ns):
    return math.ceil(Fraction(ns, SEC))


def seconds(ns):
    """Rounds as redis-cell: up, but for a remainder of less than a millisecond."""
    return ns // SEC + (ns % SEC >= SEC // 1000)


def first(after, most, fits):
    """Returns the first time after one, at most so much later, at which it fits from then on."""
    if fits(after):
        return after
    low, high = after, after + most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


class Counted:
    """A list of units that ends at once: a fixed window or a quota."""

    def __init__(self):
        self.units, self.end = [], None

    def call(self, now, end, most, quantity, flags):
        """end(now) returns when a window that begins, or goes on, ends."""
        if self.end is None or self.end <= now:
            self.units, self.end = [], None
        limited = quantity >= 0 and len(self.units) + quantity > most
        if quantity < 0:
            del self.units[max(0, len(self.units) + quantity):]
        elif quantity > 0 and (not limited or flags):
            self.units += [now] * quantity
            self.end = end(now) if self.end is None else self.later(self.end, end(now))
        reset = whole_seconds(self.end - now) if self.end is not None else 0
        retry = reset if limited and quantity <= most else -1
        if flags & DEBIT:
            retry = reset if len(self.units) >= most else -1
        return limited, most, max(0, most - len(self.units)), retry, reset, False


class Fixed(Counted):
    def later(self, end, _):
        return end


class Quota(Counted):
    def later(self, end, other):
        return max(end, other)


class Approx:
    """Units by the number of their period, of which the last counts by the share that is left of it."""

    def __init__(self):
        self.start, self.periods = None, {}

    def used(self, now, period):
        if self.start is None:
            return 0
        n = (now - self.start) // period
        share = 1 - Fraction(now - self.start - n * period, period)
        return self.periods.get(n, 0) + math.ceil(self.periods.get(n - 1, 0) * share)

    def call(self, now, period, most, quantity, flags):
        if self.used(now, period) == 0:
            self.start, self.periods = now, {}
        n = (now - self.start) // period
        limited = quantity >= 0 and self.used(now, period) + quantity > most
        if quantity >= 0 and (not limited or flags):
            self.periods[n] = self.periods.get(n, 0) + quantity
        for one in (n, n - 1):  # a refund
            taken = min(self.periods.get(one, 0), max(0, -quantity))
            self.periods[one] = self.periods.get(one, 0) - taken
            quantity = quantity + taken if quantity < 0 else quantity
        left = most - self.used(now, period)
        empty = first(now, 2 * period, lambda t: self.used(t, period) == 0)
        retry = -1
        units = 1 if flags & DEBIT else quantity
        if (left <= 0 if flags & DEBIT else limited) and units <= most:
            retry = whole_seconds(first(now, 2 * period, lambda t: self.used(t, period) + units <= most) - now)
        return limited, most, max(0, left), retry, whole_seconds(empty - now), False


class Funnel:
    """A level in fractions of a unit."""

    def __init__(self):
        self.level, self.seen = Fraction(0), 0

    def call(self, now, interval, capacity, quantity, flags):
        self.level = max(Fraction(0), self.level - Fraction(now - self.seen, interval))
        self.seen = now
        over = self.level + quantity > capacity and quantity >= 0
        cut, retry = False, -1
        if flags & DEBIT:
            most = max(self.level, Fraction(MOST_NS, interval))
            cut = self.level + quantity > most
            self.level = min(self.level + quantity, most)
            if self.level > capacity - 1:
                retry = seconds(int((self.level - capacity + 1) * interval))
        elif over:
            retry = -1 if quantity > capacity else seconds(int((self.level + quantity - capacity) * interval))
        else:
            self.level = max(Fraction(0), self.level + quantity)
        left = max(0, math.floor(capacity - self.level))
        return over, capacity, left, retry, seconds(int(self.level * interval)), cut


def bounds(spec, now):
    """Returns the window of a time, in seconds."""
    zone, *rest = spec
    return window(zone or "UTC", *rest, now // SEC)


def end_of(spec):
    return lambda now: bounds(spec, now)[1] * SEC


def row(now, key, kind, flags, most, count, period, spec, quantity, answer):
    zone, every, start, epoch = spec
    print(now, key, kind, flags, most, count, period, every, zone, start, int(epoch), quantity,
          *map(int, answer), sep=",")


NO_SPEC = ("", "", "", False)


def quantity_of(rng, flags, most):
    if flags & DEBIT:
        return rng.choice([1, 1, 2, 3, most, most + 5])
    return rng.choice([1, 1, 1, 1, 2, 2, 3, 0, -1, -2, -most - 3, most + 1, most])


def quotas(rng):
    for n in range(25):
        q, key = Quota(), "quota:%d" % n
        specs = rng.sample(CALENDARS, rng.choice([1, 1, 2, 3, 4]))
        now = T0 + rng.randrange(2 * 365 * 86400 * SEC)
        most = rng.randrange(1, 9)
        for _ in range(80):
            spec = rng.choice(specs)
            flags = rng.choice([0, 0, 0, COUNT_DENIED, DEBIT])
            if rng.randrange(6) == 0:
                most = rng.randrange(1, 9)
            begin, end = bounds(spec, now)
            live = q.end is not None and q.end > now
            ends = [end * SEC] + ([q.end] if live else [])
            step = rng.choice([
                0, rng.randrange(1, 1000), rng.randrange((end - begin) * SEC // 8), rng.randrange(SEC),
                rng.choice(ends) - now + rng.choice([-SEC, -1, 0, 1]), -rng.choice([1, rng.randrange(2 * SEC)]),
            ])
            now += step if live else max(step, 0)
            quantity = quantity_of(rng, flags, most)
            row(now, key, "cl-quota", flags, most, 0, 0, spec, quantity, q.call(now, end_of(spec), most, quantity, flags))


def windows(rng):
    for n in range(12):
        kind, state = (("cl-window", Fixed()), ("cl-approxwindow", Approx()))[n % 2]
        period, most, now = rng.choice([1, 2, 10, 60, 3600]), rng.randrange(1, 30), T0 + rng.randrange(10**12)
        for _ in range(50):
            flags = rng.choice([0, 0, COUNT_DENIED, DEBIT, DEBIT])
            now += rng.choice([0, 1, rng.randrange(period * SEC // 4), rng.randrange(period * SEC // 4), rng.randrange(2 * period * SEC)])
            quantity = quantity_of(rng, flags, most)
            if kind == "cl-window":
                answer = state.call(now, lambda at: at + period * SEC, most, quantity, flags)
            else:
                answer = state.call(now, period * SEC, most, quantity, flags)
            row(now, "window:%d" % n, kind, flags, most, 0, period, NO_SPEC, quantity, answer)


def funnels(rng):
    for n in range(10):
        f, now = Funnel(), T0 + rng.randrange(10**12)
        capacity, count, period = rng.randrange(1, 30), rng.choice([1, 3, 7, 10, 30]), rng.choice([1, 2, 60, 3600])
        interval = period * SEC // count
        for _ in range(50):
            flags = rng.choice([0, DEBIT])
            now += rng.choice([0, 1, rng.randrange(2 * interval), rng.randrange(2 * interval), rng.randrange(2 * capacity * interval)])
            quantity = quantity_of(rng, flags, capacity)
            if n < 2 and flags and rng.randrange(12) == 0:
                quantity = rng.choice([2**62, 2**63 - 1, MOST_NS // interval, MOST_NS // interval + 1])
            if n < 2 and not flags and rng.randrange(4) == 0:
                quantity = -2**63
            row(now, "funnel:%d" % n, "funnel", flags, capacity, count, period, NO_SPEC, quantity,
                f.call(now, interval, capacity, quantity, flags))


def main():
    print("at_ns,key,kind,flags,max_count,count,period,every,zone,start,epoch,quantity,limited,limit,remaining,retry_after,reset_after,cut")
    for of in (quotas, windows, funnels):
        of(random.Random(20261124))


if __name__ == "__main__":
    sys.exit(main())
