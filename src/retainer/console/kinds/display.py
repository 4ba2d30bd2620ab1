"""The declaration of a kind of record: its list, the headline facts of its page, its blocks, and related records."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from retainer.console.records.page import AnyPage
from retainer.console.values import AnyBlock, Column, Fact, as_columns
from retainer.rollups.list_sums import Sum


class Lock(NamedTuple):
    """The fields that cannot change, whether the record cannot be deleted, and the reason; empty without a lock."""

    fields: Collection[str] = ()
    stays: bool = False
    reason: str = ""


FREE = Lock()


class Display(NamedTuple):
    """What a kind of record shows. All that is not declared here follows from the types of its fields."""

    columns: tuple[str | Column, ...]
    """The columns of its list, and of its records on the pages of others. The first one leads to the record."""
    filters: tuple[str, ...] = ()
    """The filters that are always visible; all others are under "More filters"."""
    views: tuple[tuple[str, str], ...] = ()
    """Titles and queries of the tabs above the list; the list begins with the first of them."""
    sums: tuple[Sum, ...] = ()
    """The sums below the list, each of which is in one of its columns."""
    facts: tuple[str, ...] | Callable[[AnyPage], list[Fact]] = ()
    blocks: Callable[[AnyPage], Iterable[AnyBlock]] = lambda _: ()
    forms: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """The forms on its page: the path of an action, a title, and the fields that stand elsewhere on the page."""
    lock: Callable[[Any], Lock] = lambda _: FREE
    """What the API no longer changes of a record, and what to do instead."""
    rare: tuple[str, ...] = ()
    """The fields that its form shows under "More fields", beside the external id."""
    preset_only: tuple[str, ...] = ()
    """The fields that an action sets, or that a site itself reports; a link can preset them."""
    related: tuple[str, ...] = ()
    """The kinds whose records come first on its pages; others follow."""
    is_counted: bool = True
    """Whether the pages of others say how many there are; a record may have very many."""
    is_offered: bool = False
    """Whether filters offer its records for choice; a filter by any other stays as a link has set it."""

    def without(self, left_out: Collection[str]) -> "Display":
        return self._replace(
            columns=tuple(column for column in as_columns(self.columns) if column.field not in left_out),
            filters=tuple(name for name in self.filters if name not in left_out),
            views=tuple(view for view in self.views if not any(f"{name}=" in view[1] for name in left_out)),
            sums=tuple(each for each in self.sums if each.field not in left_out),
        )
