"""Controls of texts, numbers and choices."""

import re
from collections.abc import Sequence
from decimal import Decimal

from retainer.console import typed
from retainer.console.controls.control import MAX_TYPED, NOT_OFFERED, Control, Field, FormPlace, Options, Place
from retainer.console.labels import word_of
from retainer.errors import InvalidValue
from retainer.kernel.uploads import MAX_FILE_BYTES
from retainer.values.exact import DIGITS
from retainer.web.forms import YES_OR_NO

ID = re.compile(r"[1-9][0-9]{0,14}")


class LongText(Control, frozen=True):
    macro, cell, is_wide = "long", "textarea", True


class Url(Control, frozen=True):
    type: str = "url"

    def value(self, text: str, _: FormPlace, __: str) -> object:
        return typed.with_scheme(text)


class Color(Control, frozen=True):
    placeholder = "#0a84ff"

    def type_of(self, field: Field) -> str:
        """Return the picker of browsers, which knows no blank, only for a field that has a default."""
        return "text" if field.default is None else "color"


class Secret(Control, frozen=True):
    type: str = "password"
    autocomplete: str = "current-password"
    is_shown_again: bool = False

    def stripped(self, texts: Sequence[str]) -> str:
        return texts[-1] if texts else ""


class FileInput(Control, frozen=True, kw_only=True):
    accept: str = ""
    """The types that a browser offers."""
    max_bytes: int = MAX_FILE_BYTES
    is_shown_again: bool = False
    macro, verb = "file", "Choose"


class Number(Control, frozen=True):
    unit: str = ""
    inputmode = "decimal"
    max_typed = MAX_TYPED

    def write(self, value: object, at: Place) -> str:
        return typed.number_text(value, at.language) if isinstance(value, Decimal) else str(value)

    def value(self, text: str, at: FormPlace, name: str) -> object:
        return self.query(text, at, name)

    def query(self, text: str, at: Place, _: str) -> str:
        return typed.read_number(typed.without_unit(text, self.unit), at.language)


class Amount(Number, frozen=True):
    """An amount in the currency of the form."""

    placeholder = " "  # so that a style can depend on whether something was typed

    def write(self, value: object, at: Place) -> str:
        return typed.number_text(value, at.language, is_money=True) if isinstance(value, Decimal) else str(value)

    def query(self, text: str, at: Place, _: str) -> str:
        return typed.read_number(typed.without_unit(text, at.currency), at.language, DIGITS.get(at.currency, 2))

    def label(self, text: str, at: FormPlace) -> str:
        return f"{text}, {at.shown_currency}" if at.shown_currency else text


class Whole(Control, frozen=True):
    unit: str = ""
    inputmode = "numeric"
    max_typed = MAX_TYPED

    def value(self, text: str, _: FormPlace, __: str, /) -> object:
        return typed.read_whole(text, self.unit)


class Hours(Control, frozen=True):
    """A number of minutes within bounds, which people type as hours."""

    low: int = 0
    high: int = 0
    placeholder = "1:30, 1.5 or 90m"
    max_typed = MAX_TYPED

    def write(self, value: int, _: Place) -> str:
        return typed.minutes_text(value)

    def value(self, text: str, at: FormPlace, _: str) -> object:
        return typed.read_minutes(text, at.language, self.low, self.high)

    def label(self, text: str, _: FormPlace) -> str:
        return text if "hours" in text.lower() else f"{text}, hours"


class Numbers(Control, frozen=True):
    """Whole numbers, which a comma separates."""

    def write(self, value: list[int], _: Place) -> str:
        return ", ".join(map(str, value))

    def value(self, text: str, _: FormPlace, __: str) -> object:
        return [int(part) if ID.fullmatch(part) else part for part in re.split(r"[,;\s]+", text)]


class Flag(Control, frozen=True):
    """A box; a choice of three if the server decides about a new record where nothing is chosen."""

    macro, cell, labels_itself = "flag", "tick", True
    max_typed = MAX_TYPED

    def write(self, value: object, _: Place) -> str:
        return "yes" if value else "no"

    def value(self, text: str, _: FormPlace, __: str) -> object:
        return YES_OR_NO.get(text, text)

    def as_filter(self) -> Control:
        return Choice((("true", "Yes"), ("false", "No")))


class Choice(Control, frozen=True):
    options: Options = ()
    macro, verb = "choice", "Choose"

    def value(self, text: str, _: FormPlace, __: str) -> object:
        if all(text != value for value, _ in self.options):
            raise InvalidValue(NOT_OFFERED)
        return text


class IdChoice(Choice, frozen=True):
    """A choice of few records by their ids."""

    def value(self, text: str, at: FormPlace, name: str) -> object:
        super().value(text, at, name)
        return int(text)


class Currency(Control, frozen=True):
    """A choice of currencies, those in use first."""

    options: Options = ()
    macro, verb = "choice", "Choose"


class SeveralValues(Control, frozen=True):
    """Several values, in any order."""

    is_wide, is_several = True, True

    def texts(self, value: object, _: Place) -> list[str]:
        return [str(each) for each in value] if isinstance(value, list | tuple) else []

    def is_other(self, texts: Sequence[str], stored: Sequence[str], _: FormPlace, __: str) -> bool:
        return sorted(filter(None, texts)) != sorted(stored)


class Choices(SeveralValues, frozen=True):
    """Several of some values. Those with a point are drawn in groups, by what stands before it."""

    options: Options = ()
    macro = "choices"

    def read(self, texts: Sequence[str], _: FormPlace, __: str) -> object:
        chosen = [text for text in texts if text]
        if not dict(self.options).keys() >= {*chosen}:
            raise InvalidValue(NOT_OFFERED)
        return chosen

    def groups(self) -> dict[str, list[tuple[str, str]]]:
        groups = dict[str, list[tuple[str, str]]]()
        for value, text in self.options:
            group, _, rest = value.rpartition(".")
            groups.setdefault(word_of(group), []).append((value, word_of(rest) if group else text))
        return groups


class Scopes(Choices, frozen=True):
    """The scopes of a key: its options are resources, each to be read and written."""

    presets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Scopes that a button selects together, with its label."""
    macro = "scopes"

    def read(self, texts: Sequence[str], _: FormPlace, __: str) -> object:
        return [text for text in texts if text]
