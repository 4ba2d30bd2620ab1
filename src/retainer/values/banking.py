"""Bank details: IBAN (ISO 13616) and BIC (ISO 9362), checked by their rules; no bank is asked."""

from typing import Annotated

from stdnum import bic, iban
from stdnum.exceptions import InvalidChecksum, ValidationError

from retainer.errors import InvalidValue
from retainer.values.kinds import kind, read_text

EXAMPLE = "DE89 3704 0044 0532 0130 00"


def read_iban(value: object) -> str:
    text = read_text(value)
    if not text.isascii():
        raise ValueError
    try:
        checked: str = iban.validate(text)
    except InvalidChecksum:
        raise InvalidValue(hint="the check digits of this one are wrong. Compare it with a bank statement.") from None
    except ValidationError:
        raise ValueError from None
    return checked


def read_bic(value: object) -> str:
    text = read_text(value)
    if not text.isascii():
        raise ValueError
    try:
        checked: str = bic.validate(text)
    except ValidationError:
        raise ValueError from None
    return checked


def grouped(number: str) -> str:
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))


Iban = Annotated[str, kind(read_iban, f"an IBAN like {EXAMPLE}", examples=[EXAMPLE])]
Bic = Annotated[str, kind(read_bic, "a BIC of 8 or 11 characters, like COBADEFFXXX", examples=["COBADEFFXXX"])]
