#!/usr/bin/env python3
"""Writes vectors.csv: windows by the calendar from Python's zoneinfo, for TestVectors.

Usage: python3 vectors.py > vectors.csv

The method is brute force, independent of the Go code: the clock of a zone is read minute by minute until it
shows a boundary, and a window is found among the boundaries of all dates nearby.
"""

import calendar
import functools
import random
import sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Apia",
    "Asia/Kathmandu", "Africa/Casablanca", "America/Sao_Paulo", "America/Havana", "Africa/Cairo", "Asia/Tehran",
    "America/St_Johns", "Europe/Dublin", "Pacific/Chatham", "Pacific/Kwajalein",
]
FIRST, LAST = 0, int(datetime(2100, 1, 1, tzinfo=timezone.utc).timestamp())
EPOCH = datetime(1970, 1, 1)
FIXED = {"second": 1, "minute": 60, "hour": 3600}
SINCE_EPOCH = dict(FIXED, day=86400, week=7 * 86400, month=30 * 86400, year=365 * 86400)
STARTS = {
    "day": ["", "", "00:30", "02:30", "06:00", "23:59", "00:01"],
    "week": ["", "", "7", "3"],
    "month": ["", "", "15", "29", "30", "31"],
    "year": ["", "", "02-29", "04-01", "12-31", "10-26"],
}


@functools.lru_cache(None)
def zone(name):
    return ZoneInfo(name)


def clock(name, t):
    """Returns what a clock of the zone shows, as a datetime without zone."""
    return datetime.fromtimestamp(t, zone(name)).replace(tzinfo=None)


@functools.lru_cache(None)
def first_shown(name, civil):
    """Returns the first second at which the clock shows civil or a later time."""
    t = int((civil - EPOCH).total_seconds()) - 30 * 3600
    while clock(name, t) < civil:
        t += 60
    while clock(name, t - 1) >= civil:
        t -= 1
    return t


def dates(around, days):
    d = around.date()
    return [d + timedelta(n) for n in range(-days, days + 1)]


def boundaries(every, start, around):
    """Returns the civil boundaries near a civil time."""
    if every == "day":
        hour, minute = map(int, (start or "00:00").split(":"))
        return [datetime(d.year, d.month, d.day, hour, minute) for d in dates(around, 3)]
    if every == "week":
        found = [d for d in dates(around, 20) if d.isoweekday() == int(start or "1")]
    elif every == "month":
        firsts = sorted({d.replace(day=1) for d in dates(around, 75)})
        found = [d.replace(day=min(int(start or "1"), calendar.monthrange(d.year, d.month)[1])) for d in firsts]
    else:
        month, day = map(int, (start or "01-01").split("-"))
        found = []
        for year in range(around.year - 2, around.year + 3):
            if (month, day) == (2, 29) and not calendar.isleap(year):
                found.append(date(year, 2, 28))
            else:
                found.append(date(year, month, day))
    return [datetime(d.year, d.month, d.day) for d in found]


def window(name, every, start, epoch, wall):
    length = (SINCE_EPOCH if epoch else FIXED).get(every)
    if length:
        begin = wall - wall % length
        return begin, begin + length
    instants = [first_shown(name, c) for c in boundaries(every, start, clock(name, wall))]
    return max(t for t in instants if t <= wall), min(t for t in instants if t > wall)


def changes(name):
    """Returns the seconds at which the zone's offset changes."""
    found, step = [], 6 * 3600
    offset = lambda t: datetime.fromtimestamp(t, zone(name)).utcoffset()
    for t in range(FIRST, LAST, step):
        if offset(t) == offset(t + step):
            continue
        low, high = t, t + step
        while high - low > 1:
            middle = (low + high) // 2
            if offset(middle) == offset(low):
                low = middle
            else:
                high = middle
        found.append(high)
    return found


def main():
    rng = random.Random(20260101)
    rows = set()

    def add(name, every, start, epoch, wall):
        """Adds the windows of a time and of the seconds at its ends."""
        begin, end = window(name, every, start, epoch, wall)
        for t in {wall, begin, end - 1, rng.choice([begin - 1, end])}:
            if FIRST <= t < LAST:
                rows.add((name, every, start, int(epoch), t, *window(name, every, start, epoch, t)))

    for name in ZONES:
        found = changes(name)
        near = [t + rng.choice([-90000, -3600, -1800, -1, 0, 1, 1800, 3599, 90000])
                for t in rng.sample(found, min(25, len(found)))]
        if name == "Pacific/Apia":
            lost = int(datetime(2011, 12, 30, 10, tzinfo=timezone.utc).timestamp())
            near += [lost - 1, lost, lost + 1, lost - 86400, lost + 86399]
        near += [rng.randrange(FIRST, LAST) for _ in range(12)]
        for year in (1972, 2000, 2024, 2096):  # leap years: 31 December and the end of February
            near += [int(datetime(year, m, d, rng.randrange(24), tzinfo=timezone.utc).timestamp())
                     for m, d in ((2, 28), (2, 29), (12, 31))]
        for wall in near:
            if not FIRST <= wall < LAST:
                continue
            for every in ("day", rng.choice(["week", "month", "year"])):
                add(name, every, rng.choice(STARTS[every]), False, wall)
    for _ in range(25):
        for every in SINCE_EPOCH:
            add("", every, "", True, rng.randrange(FIRST, LAST))
        for every in FIXED:
            add("", every, "", False, rng.randrange(FIRST, LAST))

    print("zone,every,start,epoch,wall,start_sec,end_sec")
    for row in sorted(rows):
        print(*row, sep=",")


if __name__ == "__main__":
    sys.exit(main())
