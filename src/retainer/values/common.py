"""Field types that many resources share, each with its description: units, bank details, early-payment discounts."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from io import SEEK_END, BytesIO, IOBase
from typing import Annotated, BinaryIO, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from msgspec import Meta
from stdnum import bic, iban
from stdnum.exceptions import InvalidChecksum, ValidationError

from retainer.errors import InvalidValue, part
from retainer.values.kinds import Code191, Text50, UserId, exact, kind, read_text, read_url

COLOR = re.compile(r"#[0-9a-fA-F]{6}")


def read_color(value: object) -> str:
    text = read_text(value)
    if not COLOR.fullmatch(text):
        raise ValueError
    return text.lower()


def read_base64(value: object) -> BinaryIO:
    """Return a stream of the bytes of a Base64 text (RFC 4648, 4), in one line or several; that of a form as it is."""
    if isinstance(value, IOBase):
        if not value.seek(0, SEEK_END):
            raise InvalidValue("This file has no bytes. Send another one.")
        return cast("BinaryIO", value)
    try:
        found = b64decode("".join(read_text(value).split()), validate=True)
    except ValueError:
        raise ValueError from None
    if not found:
        raise InvalidValue(hint="this has no bytes.")
    return BytesIO(found)


BASE64: dict[str, object] = {"type": "string", "contentEncoding": "base64", "minLength": 4}
Base64 = Annotated[BinaryIO, kind(read_base64, "the bytes of a file in Base64", **BASE64, examples=["UmVjZWlwdA=="])]
Color = Annotated[str, kind(read_color, "a colour like #0a84ff", pattern="^#[0-9a-fA-F]{6}$", examples=["#0a84ff"])]

ActingUser = Annotated[
    UserId, "Defaults to the key's user. Only a key of an admin or manager can name another active user."
]
"""The user who worked the time or paid the expense."""
ExternalId = Annotated[
    Code191 | None, "The record's id in your own system, unique among the account's records of this type."
]
"""The id of a record in another system."""
Priority = Annotated[
    Literal["low", "normal", "high", "urgent"],
    Meta(title="Priority"),
    "Sorts from `low` to `urgent`; has no other effect.",
]
"""How urgent a task or ticket is."""


class Unit(NamedTuple):
    """Marks a value with what it counts or is; it changes nothing about the values that are accepted."""

    name: str


Minutes = Annotated[int, Unit("minutes")]
Milliseconds = Annotated[int, Unit("milliseconds")]
Seconds = Annotated[int, Unit("seconds")]
Days = Annotated[int, Unit("days")]
Phone = Annotated[Text50, Unit("phone")]
Share = Annotated[float, Unit("uptime")]
BudgetShare = Annotated[float, Unit("budget")]
"""The percentage of a budget that is used, which can be above 100."""

EARLY_PAYMENT = PERCENT, DAYS = "early_payment_discount_percent", "early_payment_discount_days"

DiscountPercent = Annotated[
    Decimal, exact(Decimal(0), Decimal(100), 2, "a percentage from 0 to 100 with at most 2 decimal places", "2.5")
]
"""XRechnung has two decimal places for it."""


RoundingMinutes = Annotated[int, Meta(ge=1, le=60), Unit("minutes")]
RoundingDirection = Annotated[
    Literal["up", "nearest"], Meta(title="RoundingDirection"), "Up, or to the nearest multiple, halves up."
]
RoundingUnit = Annotated[
    Literal["entry", "line"], Meta(title="RoundingUnit"), "Each time entry is rounded, or the sum of each line."
]


def missing_terms(percent: object, days: int | None) -> Iterator[tuple[str, str]]:
    """Yield the missing one of two fields, with its error. Without a discount, no days are needed."""
    if percent and days is None:
        yield DAYS, f"Is needed with {part(PERCENT)}: the days after an invoice in which clients can deduct it."
    if percent is None and days is not None:
        yield PERCENT, f"Is needed with {part(DAYS)}: the percentage that clients can deduct, or 0 for none."


IBAN_EXAMPLE = "DE89 3704 0044 0532 0130 00"


def checked(validate: Callable[[str], str], value: object) -> str:
    """Return bank details, checked by the rules of their standard; no bank is asked. Raises ValueError."""
    text = read_text(value)
    if not text.isascii():
        raise ValueError
    try:
        return validate(text)
    except InvalidChecksum:
        raise InvalidValue(hint="the check digits of this one are wrong. Compare it with a bank statement.") from None
    except ValidationError:
        raise ValueError from None


read_iban, read_bic = partial(checked, iban.validate), partial(checked, bic.validate)


def grouped(number: str) -> str:
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))


SORT_CODE, ACCOUNT_NUMBER = re.compile(r"(\d\d)[ -]?(\d\d)[ -]?(\d\d)", re.ASCII), re.compile(r"\d{4,20}", re.ASCII)


def read_sort_code(value: object) -> str:
    found = SORT_CODE.fullmatch(read_text(value))
    if found is None:
        raise ValueError
    return "-".join(found.groups())


def read_account_number(value: object) -> str:
    number = read_text(value).replace(" ", "").replace("-", "")
    if not ACCOUNT_NUMBER.fullmatch(number):
        raise ValueError
    return number


SortCode = Annotated[str, kind(read_sort_code, "a sort code like 20-00-00", examples=["20-00-00"])]
AccountNumber = Annotated[str, kind(read_account_number, "4 to 20 digits, like 55779911", examples=["55779911"])]

Iban = Annotated[str, kind(read_iban, f"an IBAN like {IBAN_EXAMPLE}", examples=[IBAN_EXAMPLE])]
BIC_FORM = "a BIC of 8 or 11 characters, like COBADEFFXXX"
Bic = Annotated[str, kind(read_bic, BIC_FORM, examples=["COBADEFFXXX"])]

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
PLACEHOLDERS = frozenset({"number", "amount", "currency"})
"""What an address at which clients pay names of an invoice."""


def read_payment_url(value: object) -> str:
    """Return an https address with placeholders. Refuses others, and those that could change the host."""
    text = read_url(value)
    url = urlsplit(text)
    names, rest = PLACEHOLDER.findall(text), PLACEHOLDER.sub("", text)
    if url.scheme != "https" or url.username is not None or {"{", "}"} & {*url.netloc, *rest}:
        raise ValueError
    if not PLACEHOLDERS.issuperset(names):
        raise ValueError
    return text


PAYMENT_ADDRESS = "https://pay.example/{number}?amount={amount}"
PAYMENT_FORM = f"an https URL that may name {{number}}, {{amount}} and {{currency}}, like {PAYMENT_ADDRESS}"
PaymentUrl = Annotated[str, kind(read_payment_url, PAYMENT_FORM, maxLength=2048, examples=[PAYMENT_ADDRESS])]
