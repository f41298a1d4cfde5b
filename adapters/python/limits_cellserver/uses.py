"""What is held and settled: units of keys under the names of limits."""

import decimal
import operator
from typing import NamedTuple, Union

from .decision import UNLIMITED
from .keys import bound

_MICRODOLLAR = decimal.Decimal("0.000001")


class Use(NamedTuple):
    """Units of a key under the name of a limit."""

    limit: str
    key: Union[str, bytes, int]
    units: int


def usd(dollars):
    """Returns the units, millionths of a dollar and rounded up, of a limit with unit usd."""
    if isinstance(dollars, float):
        dollars = format(dollars, ".15g")  # without what floating point adds to 0.1 + 0.2
    try:
        units = int(decimal.Decimal(str(dollars)).quantize(_MICRODOLLAR, decimal.ROUND_CEILING) / _MICRODOLLAR)
    except decimal.InvalidOperation:
        units = -1
    if not 0 <= units <= UNLIMITED:
        raise ValueError(f"usd requires dollars >= 0, of at most 64 bits in millionths, not {dollars!r}")
    return units


def read_uses(uses):
    """Reads {limit: (key, units)}, or triples of limit, key and units."""
    if isinstance(uses, dict):
        uses = [(limit, *of) for limit, of in uses.items()]
    uses = [Use(limit, key, operator.index(units)) for limit, key, units in uses]
    if not uses or any(use.units < 1 for use in uses):
        raise ValueError("a reservation requires uses, each with units >= 1")
    if len({(use.limit, bound(use.key)) for use in uses}) < len(uses):
        raise ValueError("a reservation requires each limit and key once, with all its units")
    return uses


def read_units(units, uses):
    """Returns the units of each use by a number for all, {limit: units}, or a list."""
    if isinstance(units, dict):
        unknown = set(units) ^ {use.limit for use in uses}
        if unknown:
            raise ValueError(f"settle requires the units of each of the hold's limits: {sorted(unknown)}")
        units = [units[use.limit] for use in uses]
    elif not isinstance(units, (list, tuple)):
        units = [units] * len(uses)
    units = [operator.index(n) for n in units]
    if len(units) != len(uses) or min(units) < 0:
        raise ValueError("units are >= 0, one for all uses or one for each")
    return units
