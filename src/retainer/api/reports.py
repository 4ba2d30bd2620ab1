"""What all five reports have in common: what they can be asked for, and how they begin and end."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

import msgspec

from retainer.domain import periods
from retainer.domain.periods import Period
from retainer.domain.values import Currency, Day, Id, Instant
from retainer.kernel.query import Query
from retainer.kernel.resource import Told
from retainer.store.tx import Tx

ONLY = ("client_id", "project_id", "user_id", "currency")


class ReportQuery(Query):
    """What every report can be asked for."""

    from_: Day | None = msgspec.field(default=None, name="from")
    to: Day | None = None
    currency: Currency | None = None
    client_id: Id | None = None

    def only(self) -> dict[str, Any]:
        """What limits the rows that are summed, beside the days."""
        return {name: its for name in ONLY if (its := getattr(self, name, None)) is not None}


class Generated(msgspec.Struct):
    """The moment whose state of the database is told."""

    generated_at: Instant


def begin(tx: Tx, asked: ReportQuery, usual: Callable[[date], date] | None) -> Period:
    """The period of a report; all that is read from here on is of one state of the database."""
    tx.snapshot()
    return periods.settle(tx, asked.from_, asked.to, usual)


def told(tx: Tx, report: Any) -> Told[Any, Generated]:
    """A report with the moment of its making."""
    return Told(report, Generated(tx.now))


def usual(tx: Tx, asked: ReportQuery) -> str:
    """The currency of what has none: the one that is asked for, or the account's."""
    return asked.currency or tx.actor.currency


def by_currency(rows: Iterable[tuple[str, Sequence[int]]]) -> dict[str, list[int]]:
    """What rows sum up to in each currency, in the order of their codes."""
    found: dict[str, list[int]] = {}
    for currency, its in rows:
        found[currency] = [sum(pair) for pair in zip(found.get(currency, [0] * len(its)), its, strict=True)]
    return dict(sorted(found.items()))
