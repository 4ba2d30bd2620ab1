"""Values of records as people read them: amounts with their currency, days, hours, names instead of ids."""

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from sqlalchemy import Table

from retainer.console import words
from retainer.console.labels import word_of
from retainer.console.names import Link, Names
from retainer.console.page_context import PageContext
from retainer.console.reports.tables import hours
from retainer.console.statuses import badge_of, shown_status
from retainer.documents.wording import country_name
from retainer.schema.crm import tags
from retainer.store.constraints import reference_columns
from retainer.values.records import Record

PARAGRAPH_LENGTH = 100
"""Characters beyond which a text is a paragraph."""
INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?Z")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
PERCENTAGES = {"tax_rate", "discount_percent", "markup_percent"}
LINKED = ("https://", "http://")
UNITS = {
    "payment_terms_days": "day",
    "early_payment_discount_days": "day",
    "days_overdue": "day",
    "check_interval_seconds": "second",
    "reopened_count": "time",
}
NEAR, FULL = 80, 100
"""Percent of a budget from which on it is nearly used, and used up."""


class Value(NamedTuple):
    """A value for display; `tone` is the colour of a badge or a bar, `share` the width of a bar in percent."""

    kind: Literal[
        "text", "day", "number", "long", "moment", "since", "badge", "link", "links", "address", "share", "none"
    ]
    text: str = ""
    link: Link | None = None
    links: Sequence[Link] = ()
    moment: words.Moment | None = None
    tone: str = ""
    share: int = 0


NOTHING = Value("none")


class Values:
    """Formats the fields of records for a page."""

    def __init__(self, context: PageContext, names: Names) -> None:
        self.context, self.names = context, names

    def field(self, record: msgspec.Struct, name: str, table: Table | None = None) -> Value:
        """Return a field of a record of a table; `label` is its name, with a link to its page."""
        if isinstance(record, Record) and table is not None and name in {"label", "opened"}:
            if name == "label":
                return Value("link", link=self.names.own(table, record))
            return Value("since", moment=self.context.moment(record.created_at))
        value = getattr(record, name)
        if value is None or value is msgspec.UNSET or value in ("", []):
            return NOTHING
        target = dict(reference_columns(table)).get(name) if table is not None else None
        if name == "tag_ids":
            return Value("links", links=[self.names.refer(tags, tag_id) for tag_id in value])
        if target is not None:
            return Value("link", link=self.names.refer(target, value))
        if name in literal_fields(type(record)):
            if name == "status":
                value = "overdue" if getattr(record, "is_overdue", False) else shown_status(record)
            return self.word(name, value)
        return self.plain(record, name, value)

    def word(self, name: str, value: str) -> Value:
        """Return a word of an enumeration; a status is a badge, and so is a party that has to answer."""
        if name.endswith("status"):
            badge = badge_of(value)
            return Value("badge", badge.word, tone=badge.tone)
        if name == "awaiting":
            return Value("badge", word_of(value), tone="warn" if value == "us" else "")
        return Value("text", word_of(value))

    def plain(self, record: msgspec.Struct, name: str, value: object) -> Value:
        """Return a value by its type and the unit that its name ends with."""
        if isinstance(value, bool):
            return Value("text", "Yes" if value else "No")
        if isinstance(value, Decimal):
            return self.decimal(record, name, value)
        if isinstance(value, str):
            return self.text(name, value)
        if name == "budget_used_percent":
            return budget_share(value)
        if "percent" in name:
            return Value("number", f"{percent_text(value)}%")
        if isinstance(value, int):
            return Value("number", number_text(name, value))
        return Value("text", ", ".join(map(str, value)) if isinstance(value, list) else str(value))

    def decimal(self, record: msgspec.Struct, name: str, value: Decimal) -> Value:
        """Return an amount with its currency, a percentage, or a quantity."""
        if name in PERCENTAGES:
            return Value("number", f"{percent_text(value)}%")
        if name == "quantity":
            return Value("number", f"{value.normalize():,f}")
        return Value("number", words.money(value, getattr(record, "currency", "")))

    def text(self, name: str, value: str) -> Value:
        """Return a text: an instant, a day, an address of the web or of mail, a country, or a paragraph."""
        if name.endswith(("_at", "_until", "_since")) and INSTANT.fullmatch(value):
            return Value("moment", moment=self.context.moment(value))
        if (name.endswith("date") or name == "valid_until") and DAY.fullmatch(value):
            return Value("day", words.short_day(value))
        if name.endswith(("url", "website")) and value.startswith(LINKED):
            return Value("address", value, Link(value, value))
        if name == "country":
            return Value("text", country_name(value, "en"))
        if name.endswith("email"):
            return Value("address", value, Link(value, f"mailto:{value}"))
        return Value("long" if "\n" in value or len(value) > PARAGRAPH_LENGTH else "text", value)


@cache
def literal_fields(model: type[msgspec.Struct]) -> frozenset[str]:
    """Return the fields of a type that take words of an enumeration."""
    return frozenset(
        name
        for name, hint in get_type_hints(model).items()
        if any(get_origin(part) is Literal for part in (hint, *get_args(hint)))
    )


def number_text(name: str, value: int) -> str:
    """Return a whole number with the unit that its name says."""
    if name.endswith("minutes"):
        return f"{hours(value)} h"
    if name.endswith("_ms"):
        return f"{value:,} ms"
    if name.endswith("_seconds") and value % 60 == 0:
        return words.count(value // 60, "minute")
    if name in UNITS:
        return words.count(value, UNITS[name])
    return f"{value}" if name in {"number", "last_status_code"} else f"{value:,}"


def percent_text(value: object) -> str:
    """Return a percentage without trailing zeros."""
    text = f"{Decimal(str(value)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def budget_share(value: object) -> Value:
    percent = int(Decimal(str(value)))
    tone = "bad" if percent > FULL else "warn" if percent >= NEAR else "good"
    return Value("share", f"{percent_text(value)}%", tone=tone, share=min(percent, FULL))


def span(start: str, end: str) -> str:
    """Return the time between two instants in words: `2 hours`."""
    text = words.distance(start, end).removesuffix(" ago")
    return "a moment" if text == "just now" else text
