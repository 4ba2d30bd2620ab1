"""The records that the texts of a form name, and the currency that follows from them: found before the form is written.

One statement finds those of a table, however many fields name them.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Select, Table, bindparam, func, select

from retainer.console.catalogue import noun_of
from retainer.console.names import Offer, Only, limits_of, load_names, name_columns, read_choice
from retainer.console.page_context import PageContext
from retainer.errors import InvalidValue
from retainer.schema.crm import clients
from retainer.schema.filters import SEARCH, searched
from retainer.schema.work import projects
from retainer.store.constraints import singular
from retainer.store.engines.sql import listed
from retainer.store.tx import Tx
from retainer.values.collation import base_letters, sort_key
from retainer.web.direction import plain

NAMED = re.compile(r"(?:.*\(#|#?)([1-9][0-9]{0,14})\)?", re.DOTALL)
"""A record by its number, or as a search field names it: `Bergmann Optik (#12)`."""
MAX_LENGTH = 255
"""The longest name of a record."""
MAX_FOUND, MATCHES = 100, 6
"""Records that are compared with a typed name, those with the shortest texts; and those that a message names."""
CURRENCIES = {
    f"{singular(table)}_id": select(table.c.currency).where(table.c.id == bindparam("id"))
    for table in (projects, clients)
}
"""Whose currency the amounts of a new record have."""


class WantedRecord(NamedTuple):
    """A record of a table that a text names. With an `owner`, it is one whose field names the user."""

    table: Table
    only: Only
    owner: str
    text: str


class ReferenceLookup:
    """The records that texts name. Each text is looked up once."""

    def __init__(self, tx: Tx, context: PageContext, wanted: Iterable[WantedRecord]) -> None:
        self.context = context
        self.found = dict[WantedRecord, list[Offer]]()
        self.own = dict[tuple[Table, str], set[int]]()
        """The ids that the form may use only because they are of the user's own records, by table and owner."""
        by_name, by_id = (defaultdict[tuple[Any, ...], set[str]](set) for _ in range(2))
        for table, only, owner, text in {each for each in wanted if len(each.text) <= MAX_LENGTH}:
            if number := NAMED.fullmatch(text):
                by_id[table, owner].add(number[1])
            else:
                by_name[table, only, owner].add(text)
        for (table, owner), ids in by_id.items():
            if owner:
                self.own[table, owner] = {*load_names(tx, table, map(int, ids), owner)}
        for (table, only, owner), texts in by_name.items():
            self.found |= _search(tx, table, only, owner, texts)

    def id_of(self, wanted: WantedRecord) -> int:
        """Return the id of the record that a text names. Raises InvalidValue, also for what the role does not see."""
        table, _, owner, text = wanted
        if len(text) > MAX_LENGTH:
            raise InvalidValue(f"Must be a name or a number of at most {MAX_LENGTH} characters.")
        noun, number = noun_of(table), NAMED.fullmatch(text)
        if number is not None:
            record_id = int(number[1])
            if owner and record_id not in self.own[table, owner]:
                raise InvalidValue(f"There is no {noun} like that.")
            return record_id
        matches = self.found[wanted]
        if table.name not in self.context.catalogue.by_table:  # the role sees nothing but the names
            matches = [match for match in matches if base_letters(text) in base_letters(plain(match.text))]
        exact = [match for match in matches if plain(match.text).casefold() == text.casefold()]
        chosen = exact if len(exact) == 1 else matches
        if not chosen:
            raise InvalidValue(f"There is no {noun} like that.")
        if len(chosen) > 1:
            listed = ", ".join(f"{match.text} (#{match.id})" for match in matches[:MATCHES])
            raise InvalidValue(f"Matches several. Write one of them: {listed}.")
        record_id = int(chosen[0].id)
        if owner:
            self.own.setdefault((table, owner), set()).add(record_id)
        return record_id

    def are_own(self, tx: Tx) -> bool:
        """Return whether the records that only their user may name are still the user's."""
        return all(ids == {*load_names(tx, table, ids, owner)} for (table, owner), ids in self.own.items())


def number_in(text: str) -> str:
    """Return the number of a record that a text has, as its field shows it; any other text as it is."""
    found = NAMED.fullmatch(text) if len(text) <= MAX_LENGTH else None
    return found[1] if found else text


def currency_of(tx: Tx, texts: dict[str, str]) -> str:
    """Return the currency of the amounts of a new record: that of its project or client, else the account's."""
    numbers = ((statement, NAMED.fullmatch(texts.get(name, ""))) for name, statement in CURRENCIES.items())
    found = (tx.value(statement, id=int(number[1])) for statement, number in numbers if number)
    return next(filter(None, found), tx.actor.currency)


def _search(tx: Tx, table: Table, only: Only, owner: str, texts: Iterable[str]) -> dict[WantedRecord, list[Offer]]:
    by_search = defaultdict[str, list[str]](list)
    for text in texts:
        by_search[searched(text)].append(text)
    found = dict[WantedRecord, list[Offer]]((WantedRecord(table, only, owner, text), []) for text in texts)
    rows = tx.all(_matches(table, owner, only), texts=json.dumps([*by_search]), me=tx.actor.user_id)
    for typed, *row in rows:
        for text in by_search[typed]:
            found[WantedRecord(table, only, owner, text)].append(read_choice(table, row))
    for matches in found.values():
        matches.sort(key=lambda match: (sort_key(match.text), int(match.id)))
    return found


@cache
def _matches(table: Table, owner: str, only: Only) -> Select[Any]:
    """Select the records that contain one of `texts`, with the text: of each text, those with the least other text."""
    texts = listed("texts").subquery()
    (typed,) = texts.c
    order = (func.length(table.c.search), table.c.id.desc())
    place = func.row_number().over(partition_by=typed, order_by=order).label("place")
    joined = texts.join(table, SEARCH.condition(table, typed))
    ranked = select(typed.label("typed"), *name_columns(table), place).select_from(joined)
    found = ranked.where(*limits_of(table, owner, only)).subquery()
    return select(*(column for column in found.c if column.name != "place")).where(found.c.place <= MAX_FOUND)
