"""The filters of lists and reports as fields, as the types of the API declare them."""

from collections.abc import Collection, Mapping
from types import NoneType
from typing import Any, Generic, TypeVar, get_args

from sqlalchemy import Table

from retainer.console.controls.control import Control, Field
from retainer.console.controls.days import Day
from retainer.console.controls.records import Reference, reference_of
from retainer.console.displays import DISPLAYS
from retainer.console.editing.fields import control_of
from retainer.console.editing.inputs import Inputs
from retainer.console.labels import field_label
from retainer.console.page_context import PageContext
from retainer.console.shapes import declared
from retainer.identity.actors import Person
from retainer.kernel.query import Query, parameters
from retainer.schema.crm import clients
from retainer.schema.identity import api_keys, users
from retainer.store.tx import Tx
from retainer.values.exact import local_day
from retainer.values.kinds import read_day, read_likely
from retainer.web.forms import Form

Q = TypeVar("Q", bound=Query)
TARGETS = {"user_id": users, "client_id": clients, "key_id": api_keys}
"""The tables of ids in filters of reports and logs; those of lists follow from the table of their records."""
OFFERED = {"users", "api_keys", *(name for name, display in DISPLAYS.items() if display.is_offered)}
"""The tables whose records a filter offers for choice."""


def filter_control(hint: object) -> Control:
    """Return the control that reads a filter, which people type as in forms."""
    return control_of(declared(hint)) or Control()


def read_filters(model: type[Q], form: Form, person: Person) -> Q:
    """Return the filters of a list; an invalid one is noted in the form, and left out."""
    values = dict[str, object]()
    for name, each in parameters(model).items():
        control = filter_control(each.hint)
        try:
            if text := form.text(name):
                value = each.read(control.query(text, person, name))
                values[each.field] = read_likely(read_day)(value) if isinstance(control, Day) else value
        except ValueError as error:
            form.errors[name] = [str(error)]
    return model(**values)


class Filters(Inputs, Generic[Q]):
    """The filters of a list or of a report as fields, with what the query of the page says.

    A filter by records of a kind that is not offered has no field: it stays as a link has set it.
    """

    def __init__(
        self,
        tx: Tx,
        context: PageContext,
        model: type[Q],
        targets: Mapping[str, Table] = TARGETS,
        without: Collection[str] = (),
    ) -> None:
        super().__init__(tx, context, Form())
        self.form.errors = context.query.errors
        self.model, self.targets = model, targets
        unseen = {"q", "ids", *without, *(name for name, table in targets.items() if table.name not in OFFERED)}
        self.fields = [self.field(name, each.hint) for name, each in parameters(model).items() if name not in unseen]
        for field in self.fields:
            text = ",".join(context.query.texts_of(field.name))
            self.form.texts[field.name] = [self.day(text) if isinstance(field.control, Day) else text]
        self.load()

    def read(self) -> Q:
        return read_filters(self.model, self.context.query, self.context.person)

    def change(self, changes: Mapping[str, Mapping[str, Any]]) -> "Filters[Q]":
        """Let a page say something else about fields than their types."""
        self.fields = [field._replace(**changes.get(field.name, {})) for field in self.fields]
        return self

    def field(self, name: str, hint: object) -> Field:
        """Return the field of a filter; one by records also takes none of them, or the user, where the API does."""
        target = self.targets.get(name)
        field = Field(name, field_label(name), filter_control(hint).as_filter(), empty="Any")
        if target is None:
            return field
        is_me = self.context.query.text(name) == "me"
        none = [("none", "None")] if any(NoneType in get_args(part) for part in get_args(hint)[:1]) else []
        me = [("me", f"Me ({self.context.person.name})")] if is_me else []
        return field._replace(control=Reference(target, "", options=(*none, *me)))

    def label(self, field: Field) -> str:
        is_id = reference_of(field) is not None and self.options(field, "") is None
        return f"{field.label} (ID)" if is_id else field.label

    def name_of(self, _: Field, text: str) -> str:
        return text

    def day(self, text: str) -> str:
        """Return the day of an instant in the account's time zone, or a day as it is."""
        try:
            return local_day(text, self.context.person.timezone) if "T" in text else text
        except (ValueError, OverflowError):
            return ""
