"""Places: how the accounts share what a loop may do at the same time."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Protocol, TypeVar

from msgspec.json import encode

CLOCK_DIFFERENCE = timedelta(minutes=1)
"""How much the clocks of servers may differ: a lease that ends later than that is of a clock that was ahead."""


class Leased(Protocol):
    """Work that no other process does before its lease ends."""

    @property
    def account_id(self) -> int:
        """Return the account whose place it takes."""

    @property
    def id(self) -> int:
        """Return what it is about."""


Work = TypeVar("Work", bound=Leased)


class Places:
    """The places of a loop, and who holds them.

    An account always gets one place, so it never waits for another account. Of the `total` of further places it gets
    one only while it holds fewer than are free (dynamic thresholds; Choudhury and Hahne, 1998): a single account at
    most half of them, two in the long run a third each.
    """

    def __init__(self, total: int, held: Iterable[int]) -> None:
        self.total = total
        self._held = Counter(held)
        self._free = total - sum(count - 1 for count in self._held.values())

    @property
    def sated(self) -> str:
        """Return the accounts that get no further place now, as JSON."""
        return encode([account_id for account_id in self._held if not self._has_room(account_id)]).decode()

    def fill(self, find: Callable[[], Iterable[Work]], lease: Callable[[Work], Work | None]) -> list[Work]:
        """Return what could be leased; `find` returns work of accounts that are not sated, the oldest first."""
        leased: list[Work] = []
        is_filling = True
        while is_filling:
            is_filling = False
            for work in find():
                if self._has_room(work.account_id) and (mine := lease(work)) is not None:
                    leased.append(mine)
                    self._free -= self._held[mine.account_id] > 0
                    self._held[mine.account_id] += 1
                    is_filling = True
        return leased

    def _has_room(self, account_id: int) -> bool:
        return self._held[account_id] - 1 < self._free
