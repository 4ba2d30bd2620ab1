"""Inputs: what the controls of a form, or of the filters of a list or a report, offer for choice."""

import re
from collections.abc import Collection, Mapping
from types import NoneType
from typing import get_args

from sqlalchemy import Table

from retainer.console.editing.fields import Field, control_of, options_of
from retainer.console.forms import Form
from retainer.console.labels import field_label
from retainer.console.names import Choice, load_choices, load_names, used_first
from retainer.console.page_context import PageContext
from retainer.console.shapes import declared
from retainer.kernel.query import Query, parameters
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.values.exact import local_day
from retainer.values.records import Record

ID = re.compile(r"[1-9][0-9]{0,14}")
AS_THE_API = {"money": "number", "percent": "number", "budget": "number", "hours": "whole", "moment": "day"}
"""The controls of filters, whose numbers are written as the API reads them."""


class Inputs:
    """The inputs of a page; the records of a table are read once."""

    only_open = True
    """Whether a choice leaves out what new records cannot refer to."""
    record: Record | None = None

    def __init__(self, tx: Tx, context: PageContext, form: Form) -> None:
        self.tx, self.context, self.form = tx, context, form
        self.choices: dict[Table, list[Choice] | None] = {}

    def label(self, field: Field) -> str:
        return field.label

    def stored(self, _: Field) -> str:
        """Return the text of a field before it is edited."""
        return ""

    def is_stale(self, _: Field) -> bool:
        """Return whether a refused form differs from a record that somebody else has changed meanwhile."""
        return False

    def values(self, field: Field, text: str) -> list[tuple[str, str]]:
        found = used_first(self.tx, field.options) if field.shape == "currency" else field.options
        options = [Choice(*option) for option in (*field.blanks, *found)]
        return [(choice.id, choice.text) for choice in with_chosen(options, text, {})]

    def options(self, field: Field, text: str) -> list[Choice] | None:
        """Return the records that a reference offers, with the chosen ones; None if they are too many."""
        table = field.target
        if table is None:
            return []
        if table not in self.choices:
            self.choices[table] = self._load_choices(table)
        found = self.choices[table]
        if found is None:
            return None
        options = [*(Choice(*option) for option in field.options), *found]
        is_known = not text or any(choice.id == text for choice in options)
        return options if is_known else with_chosen(options, text, self._named(table, text))

    def name_of(self, field: Field, text: str) -> str:
        """Return a record as a search field names it: `Bergmann Optik (#12)`."""
        found = self._named(field.target, text) if field.target is not None else {}
        return f"{found[text]} (#{text})" if text in found else text

    def owner_of(self, table: Table, _: str) -> str:
        """Return the field that says whose a record is, if the role sees only its user's own."""
        return self.context.catalogue.owner_of(table)

    def _named(self, table: Table, text: str) -> dict[str, str]:
        """Return the names of records by their ids, which a comma separates, as far as the role sees them."""
        ids = [int(part) for part in text.split(",") if ID.fullmatch(part.strip())]
        return {f"{each}": name for each, name in load_names(self.tx, table, ids, self.owner_of(table, text)).items()}

    def _load_choices(self, table: Table) -> list[Choice] | None:
        owner = self.context.catalogue.owner_of(table)
        found = load_choices(self.tx, table, owner, only_open=self.only_open)
        if found is None or not self.only_open or not any(choice.client_id for choice in found):
            return found
        names = load_names(self.tx, clients, {choice.client_id for choice in found if choice.client_id})
        return [
            choice._replace(text=f"{choice.text} ({names[choice.client_id]})") if choice.client_id in names else choice
            for choice in found
        ]


def with_chosen(options: list[Choice], text: str, names: Mapping[str, str]) -> list[Choice]:
    """Return the options, with one more for a text that is none of them, such as several of them."""
    known = {**{choice.id: choice.text for choice in options}, **names}
    if not text or any(choice.id == text for choice in options):
        return options
    return [*options, Choice(text, ", ".join(known.get(part.strip(), part) for part in text.split(",")))]


class Filters(Inputs):
    """The filters of a list or of a report as fields, with what the query of the page says.

    A filter by records of a kind that is not offered has no field: it stays as a link has set it.
    """

    only_open = False

    def __init__(
        self,
        tx: Tx,
        context: PageContext,
        model: type[Query],
        targets: Mapping[str, Table],
        offered: Collection[str],
        without: Collection[str] = (),
    ) -> None:
        super().__init__(tx, context, Form())
        self.form.errors = context.query.errors
        self.targets = targets
        hints = {name: each.hint for name, each in parameters(model).items() if name not in {"q", "ids", *without}}
        self.fields = [
            self.field(name, hint)
            for name, hint in hints.items()
            if name not in targets or targets[name].name in offered
        ]
        for field in self.fields:
            text = ",".join(context.query.texts_of(field.name))
            self.form.texts[field.name] = [self.day(text) if field.shape == "day" else text]

    def field(self, name: str, hint: object) -> Field:
        """Return the field of a filter; one by records also takes none of them, or the user, where the API does."""
        found, target = declared(hint), self.targets.get(name)
        field = Field(name, field_label(name), "text", empty="Any", target=target)
        if target is not None:
            is_me = self.context.query.text(name) == "me"
            none = [("none", "None")] if NoneType in get_args(get_args(hint)[0]) else []
            me = [("me", f"Me ({self.context.person.name})")] if is_me else []
            return field._replace(shape="reference", options=(*none, *me))
        options, shape = tuple(options_of(found)), control_of(found, None)
        if options:
            return field._replace(shape="currency" if shape == "currency" else "choice", options=options)
        return field._replace(shape=AS_THE_API.get(shape, shape or "text"))

    def label(self, field: Field) -> str:
        is_id = field.target is not None and self.options(field, "") is None
        return f"{field.label} (ID)" if is_id else field.label

    def name_of(self, _: Field, text: str) -> str:
        return text

    def day(self, text: str) -> str:
        """Return the day of an instant in the account's time zone, or a day as it is."""
        try:
            return local_day(text, self.context.person.timezone) if "T" in text else text
        except (ValueError, OverflowError):
            return ""
