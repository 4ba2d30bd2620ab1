"""Fields and controls of forms: how a control shows a value, and what the texts mean that people type.

The macro of `control_kinds.html` that a control names draws it.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
from sqlalchemy import Table

from retainer.console.names import Only
from retainer.errors import InvalidValue
from retainer.store.tx import Tx
from retainer.web.forms import Form

Options = tuple[tuple[str, str], ...]
MAX_TYPED = 100
"""Characters of a number, a time or a day."""
NOT_OFFERED = "Is no longer offered. Check the choices, and select again."


class Place(Protocol):
    """Where people type: how they write numbers there, when a day begins, and the currency of amounts."""

    @property
    def language(self) -> str: ...
    @property
    def timezone(self) -> str: ...
    @property
    def currency(self) -> str: ...


class FormPlace(Place, Protocol):
    """A form, and the record that it is about."""

    tx: Tx
    form: Form
    record: Any

    @property
    def shown_currency(self) -> str:
        """The currency that labels of amounts name; empty if it is not known before the form is filled in."""

    def find(self, table: Table, only: Only, text: str) -> int:
        """Return the id of the record that a text names. Raises InvalidValue."""


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A text of one line; the other controls say what differs."""

    length: int = 0
    """The most characters; 0 without a limit."""
    options: Options = ()
    """Values with their texts, of which one can be chosen."""
    type: str = "text"
    autocomplete: str = "off"
    is_shown_again: bool = True
    """Whether a refused form shows what was typed."""
    macro: ClassVar[str] = "line"
    cell: ClassVar[str] = "input"
    """The macro that draws it in a row."""
    inputmode: ClassVar[str] = ""
    placeholder: ClassVar[str] = ""
    verb: ClassVar[str] = "Enter"
    """What people do to fill it in."""
    labels_itself: ClassVar[bool] = False
    is_wide: ClassVar[bool] = False
    is_several: ClassVar[bool] = False
    """Whether the form sends a text for each value, and a blank one for none."""
    max_typed: ClassVar[int] = 0

    def texts(self, value: object, at: Place) -> list[str]:
        """Return a stored value as the texts that the form sends if it is not changed; blank for none."""
        return ["" if value is None or value is msgspec.UNSET else self.write(value, at)]

    def write(self, value: Any, _: Place, /) -> str:
        return str(value)

    def read(self, texts: Sequence[str], at: FormPlace, name: str) -> object:
        """Return what the field `name` says, as JSON would have it; None if it is blank. Raises InvalidValue."""
        text = self.stripped(texts)
        if self.max_typed and len(text) > self.max_typed:
            raise InvalidValue(f"Must have at most {self.max_typed} characters.")
        return self.value(text, at, name) if text else None

    def stripped(self, texts: Sequence[str]) -> str:
        return texts[-1].strip() if texts else ""

    def value(self, text: str, _: FormPlace, __: str, /) -> object:
        return text

    def query(self, text: str, _: Place, __: str, /) -> str:
        """Return the text of a filter as the API reads it. Raises InvalidValue."""
        return text

    def is_other(self, texts: Sequence[str], stored: Sequence[str], _: FormPlace, __: str, /) -> bool:
        """Whether texts say something else than is stored."""
        return [*texts] != [*stored]

    def as_filter(self) -> "Control":
        """Return the control of a filter by such a value."""
        return self

    def type_of(self, _: "Field", /) -> str:
        return self.type

    def label(self, text: str, _: FormPlace, /) -> str:
        return text

    def blanks(self, field: "Field") -> list[tuple[str, str]]:
        """Return the option for no value, if there is one."""
        if field.empty:
            return [("", field.empty)]
        usual = field.usual or ("Default" if field.is_filled_in else "None")
        return [] if field.is_required or field.default is not None else [("", usual)]


class Field(NamedTuple):
    """A field of a form; `default` is the value of a new record."""

    name: str
    label: str
    control: Control
    hint: str = ""
    is_required: bool = False
    is_filled_in: bool = False
    """Whether the server fills it in if it is blank."""
    default: object = None
    empty: str = ""
    """What a choice says before one is chosen, if it does not follow from the field."""
    usual: str = ""
    """What a blank choice stands for, with `{currency}` or `{language}` of the account."""
