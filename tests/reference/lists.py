"""A model of lists: which records pass their filters and in which order, from the OpenAPI document alone.

A filter `X` compares the field X, `X_from` and `X_to` its days, `X_since` and `X_before` its timestamps. RULES has the
others: a new filter of another kind fails the tests until it has a rule.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from retainer.kernel.resource import Operation
from tests.contract.cases import UNKNOWN_ID, bare, described, kinds, query_parameters
from tests.contract_checker import resolved

Row = dict[str, Any]
PAGING = {"page", "per_page", "sort", "totals", "cursor", "include", "fields"}
CLOSED = {"done", "cancelled", "completed", "archived"}
RESOLVED = {"resolved", "closed"}
SORTS_AND_SEARCHES = {
    "/clients": ("name", "name number email notes"),
    "/external-contacts": ("last_name", "first_name last_name name email"),
    "/tags": ("name", "name"),
    "/projects": ("name", "name code description"),
    "/projects/{project_id}/milestones": ("position", "name description"),
    "/tasks": ("-created_at", "title description"),
    "/time-entries": ("-date", "description"),
    "/expenses": ("-date", "description vendor"),
    "/quotes": ("-created_at", "number title client"),
    "/invoices": ("-created_at", "number subject purchase_order client"),
    "/payments": ("-paid_date", "reference notes"),
    "/credit-notes": ("-created_at", "number description"),
    "/tickets": ("-created_at", "number subject description"),
    "/tickets/{ticket_id}/replies": ("created_at", "body"),
    "/sites": ("name", "name url"),
    "/files": ("created_at", "name"),
    "/messages": ("-created_at", "to subject"),
    "/quotes/{quote_id}/links": ("-created_at", ""),
    "/invoices/{invoice_id}/links": ("-created_at", ""),
    "/users": ("name", "name"),
}
"""The default order of each list, and the fields that `q` searches."""
DEFAULT_FILTERS = {"is_template": "false"}
"""The defaults of filters."""
LEFT_OUT = {"/tasks": ("in_template", {"project_id", "ids"})}
"""Fields whose records a list excludes, unless one of these filters is used."""
LADDER = ("trunk", "9.0", "9.1-beta", "9.1-rc1", "9.1 9.1.0", "9.1.1", "9.2", "9.9.2", "9.10", "10.0 10", "2026.3")
"""Versions of software, the oldest first; those in one entry are equal."""
RUNGS = {version: place for place, step in enumerate(LADDER) for version in step.split()}
VERSIONS = tuple(RUNGS)
PLUGINS = ("woocommerce", "akismet", "wordpress-seo")
NEEDED = {"plugin_version_lt": {"plugin": PLUGINS[0]}}
"""Filters that need others."""
PAID_DAYS = ("2026-01-01", "2026-01-31", "2026-02-01", "2026-03-02", "2026-03-30", "2026-03-31", "2026-04-01")
CREATED_DAYS = tuple(str(date(2026, 1, 29) + timedelta(days=days)) for days in range(0, 62, 2))
TRIED = {
    "plugin": (*PLUGINS, PLUGINS[0].upper(), "no-such-plugin"),
    "plugin_version_lt": tuple(version for version in VERSIONS if re.search("[0-9]", version)),
    "budget_used_percent_min": ("0", "50", "80", "100", "101"),
    "paid_date_from": PAID_DAYS,
    "paid_date_to": PAID_DAYS,
    "created_from": CREATED_DAYS,
    "created_to": CREATED_DAYS,
}
"""Values of filters that compare no field of the list."""
MONEY = (r"^[0-9]+(\.[0-9]{1,4})?$", r"^-?[0-9]+(\.[0-9]{1,4})?$")
UNUSED = {"^[A-Z]{2}$": "IS", "^[A-Z]{3}$": "ISK", "email": "no-such@text.example"}
"""Values of a pattern or format that no record has."""


class Asked(NamedTuple):
    """A query, with the day and the time of its request."""

    query: dict[str, str]
    today: str
    now: datetime


class Rule(NamedTuple):
    """Whether a record passes a filter, by its `members`, the value of the filter and the query."""

    members: set[str]
    passes: Callable[[Row, Any, Asked], bool]


def is_late(invoice: Row, today: str) -> bool:
    """Return whether an invoice is overdue."""
    due, is_open = invoice["due_date"], invoice["status"] in {"sent", "partially_paid"}
    return is_open and Decimal(invoice["balance_due"]) > 0 and due < today


def has_status(invoice: Row, words: list[str], asked: Asked) -> bool:
    """Return whether an invoice has one of these statuses, of which `open` and `overdue` are derived."""
    is_open = invoice["status"] in {"sent", "partially_paid"}
    late = is_late(invoice, asked.today)
    return invoice["status"] in words or ("open" in words and is_open) or ("overdue" in words and late)


def day_in_berlin(instant: str) -> str:
    """Return the day of a moment in the time zone of the account."""
    return datetime.fromisoformat(instant).astimezone(ZoneInfo("Europe/Berlin")).date().isoformat()


def expires(quote: Row, words: list[str], asked: Asked) -> bool:
    """Return whether a quote has one of these statuses; a sent one expires with its last day."""
    was_sent = quote["status"] in {"sent", "expired"}
    return (("expired" if quote["valid_until"] < asked.today else "sent") if was_sent else quote["status"]) in words


def billing_status(work: Row) -> str:
    """Return the billing status of time or an expense; only time can be covered, or have no price."""
    is_billed = work["invoice_id"] is not None or work["is_settled"]
    if is_billed or not work["billable"]:
        return "billed" if is_billed else "non_billable"
    return "covered" if work.get("is_covered") else "unpriced" if work["amount"] is None else "unbilled"


def awaiting(ticket: Row) -> str | None:
    """Return who answers next: us, until the last reply is ours."""
    return None if ticket["status"] in RESOLVED else "requester" if ticket["last_reply_by"] == "user" else "us"


def site_status(site: Row, asked: Asked) -> str:
    """Return the observed status of a site, unless it is paused or in maintenance."""
    until = site["maintenance_until"]
    if not site["monitoring_enabled"]:
        return "paused"
    return "maintenance" if until is not None and moment(until) > asked.now else site["observed"]


def runs_older(site: Row, than: str, asked: Asked) -> bool:
    """Return whether the named plugin has an older version; one without a version has not."""
    versions = [plugin["version"] for plugin in site["plugins"] if plugin["slug"] == asked.query["plugin"]]
    return any(version is not None and RUNGS[version] < RUNGS[than] for version in versions)


def has_overdue(client: Row, wanted: bool, asked: Asked) -> bool:
    return any(is_late(invoice, asked.today) for invoice in client["invoices"]) == wanted


def is_paid_within(invoice: Row, _: Any, asked: Asked) -> bool:
    """Return whether one payment of an invoice lies within the range."""
    first, last = asked.query.get("paid_date_from", "0"), asked.query.get("paid_date_to", "9")
    return any(first <= day <= last for day in invoice["paid_dates"])


def caseless(*names: str) -> Rule:
    """Return a rule that compares the texts of some fields without case; one of them must be among those asked for."""

    def passes(row: Row, texts: list[str], _: Asked) -> bool:
        return any((row[name] or "").casefold() in {text.casefold() for text in texts} for name in names)

    return Rule(set(names), passes)


def letters(text: str) -> str:
    """Return a text without case and accents."""
    return "".join(
        sign for sign in unicodedata.normalize("NFKD", text.casefold()) if unicodedata.category(sign) != "Mn"
    )


RULES = {
    "ids": Rule({"id"}, lambda row, ids, _: row["id"] in ids),
    "tag_id": Rule({"tag_ids"}, lambda row, ids, _: not set(ids).isdisjoint(row["tag_ids"])),
    "open": Rule({"status"}, lambda row, yes, _: (row["status"] not in CLOSED) == yes),
    "overdue": Rule(
        {"status", "due_date"},
        lambda row, yes, asked: (row["status"] not in CLOSED and (row["due_date"] or asked.today) < asked.today) == yes,
    ),
    "converted": Rule(
        {"converted_project_id", "invoice_id"},
        lambda row, yes, _: ({row["converted_project_id"], row["invoice_id"]} != {None}) == yes,
    ),
    "has_overdue": Rule({"id"}, has_overdue),
    "has_refund_due": Rule({"refund_due"}, lambda row, yes, _: (Decimal(row["refund_due"]) > 0) == yes),
    "billing_status": Rule(
        {"invoice_id", "is_settled", "billable"}, lambda row, words, _: billing_status(row) in words
    ),
    "/quotes status": Rule({"status", "valid_until"}, expires),
    "/invoices status": Rule({"status", "due_date", "balance_due"}, has_status),
    "over_budget": Rule({"budget_used_percent"}, lambda row, yes, _: ((row["budget_used_percent"] or 0) > 100) == yes),
    "budget_used_percent_min": Rule(
        {"budget_used_percent"},
        lambda row, least, _: row["budget_used_percent"] is not None and row["budget_used_percent"] >= least,
    ),
    "/tickets status": Rule(
        {"status"},
        lambda row, words, _: row["status"] in words or ("unresolved" in words and row["status"] not in RESOLVED),
    ),
    "awaiting": Rule({"status", "last_reply_by"}, lambda row, words, _: awaiting(row) in words),
    "unanswered": Rule(
        {"status", "first_response_at"},
        lambda row, yes, _: (row["status"] not in RESOLVED and row["first_response_at"] is None) == yes,
    ),
    "/tickets overdue": Rule(
        {"status", "due_at"},
        lambda row, yes, asked: (
            (row["status"] not in RESOLVED and row["due_at"] is not None and moment(row["due_at"]) < asked.now) == yes
        ),
    ),
    "/sites status": Rule(
        {"monitoring_enabled", "maintenance_until"}, lambda row, words, asked: site_status(row, asked) in words
    ),
    "has_updates": Rule(
        {"plugin_updates_count", "core_update_available"},
        lambda row, yes, _: (row["plugin_updates_count"] > 0 or row["core_update_available"]) == yes,
    ),
    "plugin": Rule({"id"}, lambda row, slugs, _: not {plugin["slug"] for plugin in row["plugins"]}.isdisjoint(slugs)),
    "plugin_version_lt": Rule({"id"}, runs_older),
    "has_rate": Rule({"hourly_rate"}, lambda row, yes, _: (row["hourly_rate"] is not None) == yes),
    "paid_date_from": Rule({"balance_due"}, is_paid_within),
    "paid_date_to": Rule({"balance_due"}, is_paid_within),
    "created_from": Rule({"created_at"}, lambda row, day, _: day_in_berlin(row["created_at"]) >= day),
    "created_to": Rule({"created_at"}, lambda row, day, _: day_in_berlin(row["created_at"]) <= day),
    "requester_email": caseless("requester_email"),
    "/tags name": caseless("name"),
    "/external-contacts email": caseless("email"),
    "/clients email": caseless("email", "invoice_email"),
    **{f"/{kind} number": caseless("number") for kind in ("clients", "quotes", "invoices", "credit-notes")},
}
"""Filters that do more than compare a field; those of one list have its path before their name."""
ORDERS = {
    "/external-contacts last_name": lambda row: "\n".join(
        filter(None, (row["last_name"], row["first_name"], row["email"]))
    )
}
"""Sort keys that are more than a field."""
NAMES = {"name", "last_name", "category"}
"""Fields that are sorted without accents, which decide only between equals."""


class ListModel:
    """The expected pages of one list, for the key of a user, at a time and on its day in the account's zone."""

    def __init__(self, operation: Operation, rows: list[Row], user_id: int, today: str, now: datetime) -> None:
        assert operation.path in SORTS_AND_SEARCHES, f"{operation} needs an entry in SORTS_AND_SEARCHES."
        self.path = operation.path
        self.default_sort, searched = SORTS_AND_SEARCHES[self.path]
        self.searched = searched.split()
        self.rows = rows
        self.user_id = user_id
        self.today = today
        self.now = now
        self.filters = filters_of(operation)
        self.defaults = {name: text for name, text in DEFAULT_FILTERS.items() if name in self.filters}
        whole, _ = described(operation)["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"]
        self.members: Row = resolved(resolved(whole)["properties"]["data"]["items"])["properties"]
        self.fullest = max(
            self.found({}), key=lambda row: sum(value not in (None, [], False) for value in row.values())
        )

    # Which records

    def found(self, query: dict[str, str]) -> list[Row]:
        """Return the records that pass all filters of a query and the defaults of the others."""
        asked = Asked(self.complete(query), self.today, self.now)
        tests = [self.test(name, text, asked) for name, text in (self.defaults | asked.query).items()]
        left_out, unless = LEFT_OUT.get(self.path, ("", set()))
        rows = self.rows if query.keys() & unless else [row for row in self.rows if not row.get(left_out)]
        return [row for row in rows if all(test(row) for test in tests)]

    def complete(self, query: dict[str, str]) -> dict[str, str]:
        """Return a query with the filters that its filters need."""
        return {other: text for name in query for other, text in NEEDED.get(name, {}).items()} | query

    def test(self, name: str, text: str, asked: Asked) -> Callable[[Row], bool]:
        """Return the test of one filter."""
        stem, _, end = name.rpartition("_")
        wanted = self.wanted(self.filters[name], text)
        rule = RULES.get(f"{self.path} {name}", RULES.get(name))
        if rule and rule.members <= self.members.keys():
            return lambda row: rule.passes(row, wanted, asked)
        if name == "q":
            return lambda row: any(letters(text) in letters(str(row[field] or "")) for field in self.searched)
        if name in self.members:
            return lambda row: row[name] in (wanted if isinstance(wanted, list) else [wanted])
        if end in {"from", "to"} and stem in self.members:
            return lambda row: row[stem] is not None and (row[stem] >= wanted if end == "from" else row[stem] <= wanted)
        if end in {"min", "max"} and stem in self.members:
            return lambda row: Decimal(row[stem]) >= wanted if end == "min" else Decimal(row[stem]) <= wanted
        if end in {"since", "before"} and f"{stem}_at" in self.members:
            at = f"{stem}_at"
            return lambda row: row[at] is not None and (moment(row[at]) >= moment(wanted)) == (end == "since")
        raise self.unknown(name)

    def unknown(self, name: str) -> AssertionError:
        """Return the error for a filter without a rule."""
        return AssertionError(
            f"The list {self.path} has the filter {name}: say in RULES what passes it; and unless it is a flag or has "
            "the name of a member, in TRIED which values to try."
        )

    def wanted(self, schema: Row, text: str) -> Any:
        """Return the value of a text: `none` is null, `me` the user of the key, a comma list a list."""
        if "items" in schema:
            return [self.wanted(schema["items"], part) for part in text.split(",")]
        if text == "none" and "none" in schema.get("pattern", ""):
            return None
        if text == "me" and takes_me(schema):
            return self.user_id
        if "boolean" in kinds(schema):
            return text == "true"
        if schema.get("pattern") in MONEY:
            return Decimal(text)
        return int(text) if "integer" in kinds(schema) else text

    # Which values are tried

    def tried(self, name: str, random: Random) -> list[str]:
        """Return texts for a filter that the fullest record passes, or others, or none, and those at its bounds."""
        schema = self.filters[name]
        stem, _, end = name.rpartition("_")
        if "boolean" in kinds(schema):
            return ["true", "false"]
        if name == "q":
            return list(self.words(random))
        if name in TRIED:
            return list(TRIED[name])
        if name not in self.members and end in {"since", "before"}:
            return list(instants(*self.chosen(name, f"{stem}_at", random)))
        if name not in self.members and end in {"min", "max"}:
            return self.chosen(name, stem, random)
        if name not in self.members and end in {"from", "to"}:
            return list(days(*self.chosen(name, stem, random)))
        if "items" in schema:
            return list(self.lists(name, schema["items"], random))
        one, *_, last = self.chosen(name, name, random)
        return [one, last, "no-such@text.example", *([one.swapcase()] if schema.get("format") != "email" else [])]

    def chosen(self, name: str, member: str, random: Random) -> list[Any]:
        """Return values of a filter's field: of the fullest record, of two others, the least, and the greatest."""
        if member not in self.members:
            raise self.unknown(name)
        found = sorted({row[member] for row in self.rows} - {None})
        if not found:
            return []
        fullest = self.fullest[member] if self.fullest[member] is not None else random.choice(found)
        others = random.sample(found, 2) if len(found) > 1 else found * 2
        return [fullest, *others, found[0], found[-1]]

    def words(self, random: Random) -> Iterator[str]:
        """Yield parts of texts in another case, wildcards of SQL, and a text of no record."""
        for name in self.searched:
            text = random.choice([str(text) for row in self.rows if (text := row[name])])
            start = random.randrange(max(1, len(text) - 3))
            yield text[start : start + min(4, len(text) - 1)].strip().swapcase() or text
        yield from ("STRAßE", "%", "_", "no such text")

    def lists(self, name: str, schema: Row, random: Random) -> Iterator[str]:
        """Yield a value, a comma list, every word, a value of no record, and the words that stand for others."""
        if name == "tag_id":
            tags = sorted({tag for row in self.rows for tag in row["tag_ids"]})
            found = (*self.fullest["tag_ids"], *random.sample(tags, min(3, len(tags))))
        else:
            found = tuple(self.chosen(name, "id" if name == "ids" else name, random))
        one, two, three = (*found[:3], *[None] * 3)[:3]
        unused = UNUSED.get(schema.get("format", schema.get("pattern", "")), str(UNKNOWN_ID))
        if one is None:
            yield unused  # no record has any
            return
        present = {row.get(name) for row in self.rows}
        yield from (str(one), f"{two},{three}")
        words = schema.get("enum", [unused])
        yield from words
        known = [word for word in words if word in present] or [one]
        yield from [f"{word},{other}" for word in words if word not in present for other in known] or [f"{three},{one}"]
        if "none" in schema.get("pattern", ""):
            yield from ("none", f"{two},none,{UNKNOWN_ID}")
        if takes_me(schema):
            yield from ("me", f"{UNKNOWN_ID},me")

    # In which order

    def ordered(self, rows: list[Row], sort: str) -> list[Row]:
        """Return records in an order, nulls last; ids decide ties, in the direction of the last key."""
        keys = sort.split(",")
        for key in ("-id" if keys[-1].startswith("-") else "id", *reversed(keys)):
            ranked = [(self.rank(row, key.removeprefix("-")), row) for row in rows]
            present = [pair for pair in ranked if pair[0] is not None]
            present.sort(key=lambda pair: pair[0], reverse=key[0] == "-")
            rows = [row for _, row in present] + [row for rank, row in ranked if rank is None]
        return rows

    def rank(self, row: Row, name: str) -> Any:
        """Return the sort key of a record: the rank of a word, or a text without case."""
        order = ORDERS.get(f"{self.path} {name}")
        value, words = order(row) if order else row[name], bare(self.members[name]).get("enum")
        if words and value is not None:
            return words.index(value)
        if self.members[name].get("pattern") in MONEY and value is not None:
            return Decimal(value)
        if name in {"number", "code"} and isinstance(value, str):
            parts = re.findall("[0-9]+|.", unicodedata.normalize("NFKC", value).casefold(), re.DOTALL)
            return [("0", int(part)) if re.fullmatch("[0-9]+", part) else (part,) for part in parts]
        if name in NAMES:
            parts = unicodedata.normalize("NFD", value.casefold())
            return "".join(sign for sign in parts if unicodedata.category(sign) != "Mn"), value.casefold()
        return value.casefold() if isinstance(value, str) else value


def filters_of(operation: Operation) -> dict[str, Row]:
    """Return the schemas of a list's filters."""
    return {name: schema for name, schema in query_parameters(operation).items() if name not in PAGING}


def sorts_of(operation: Operation) -> list[str]:
    """Return the sort keys of a list."""
    return [name for name in query_parameters(operation)["sort"]["items"]["enum"] if not name.startswith("-")]


def takes_me(schema: Row) -> bool:
    """Return whether a filter accepts `me`."""
    return "me" in schema.get("items", schema).get("pattern", "")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def instants(*chosen: str) -> Iterator[str]:
    """Yield timestamps of records, one written in another zone, and one after all of them."""
    fullest, other, _, first, last = chosen
    yield from (fullest, first, last)
    yield moment(other).astimezone(timezone(timedelta(hours=-3))).isoformat()
    yield (moment(last) + timedelta(microseconds=1)).isoformat()


def days(*chosen: str) -> Iterator[str]:
    """Yield days of records, and the days before the first and after the last."""
    fullest, _, _, first, last = chosen
    yield from (fullest, first, last)
    for day, step in ((first, -1), (last, 1)):
        yield (moment(day) + timedelta(days=step)).date().isoformat()
