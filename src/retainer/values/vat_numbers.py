"""VAT numbers: which texts are VAT identification numbers of the European Union, by the patterns of its member states.

No register is asked. A number whose check digits are wrong has the pattern all the same: its owner mistyped it.
"""

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from stdnum import get_cc_module
from stdnum.eu.vat import MEMBER_STATES as LOWER_CASE_STATES
from stdnum.exceptions import InvalidFormat, InvalidLength, ValidationError
from stdnum.util import clean

NORTHERN_IRELAND = "XI"
"""Its prefix is for goods. Services to Northern Ireland are services to the United Kingdom."""
MEMBER_STATES: AbstractSet[str] = frozenset(code.upper() for code in LOWER_CASE_STATES) - {NORTHERN_IRELAND}
"""The countries whose VAT is that of the European Union, by their ISO 3166-1 codes."""
PREFIXES = {state: state for state in (*MEMBER_STATES, NORTHERN_IRELAND)} | {"EL": "GR"}
"""The state of each prefix of a VAT number. Greece writes EL, and its numbers are often entered with GR."""
SAME_TERRITORY = {"MC": "FR"}
"""Countries that belong to the VAT territory of another one (Directive 2006/112/EC, article 7)."""
GAPS = re.compile(r"[\s:]+")
LONGEST = 50


class VatNumber(NamedTuple):
    """A VAT number with its prefix, like `EL094259216`, the state that issued it, and whether its digits add up."""

    text: str
    state: str
    is_consistent: bool


def vat_territory(country: str | None) -> str | None:
    """Return the member state whose VAT applies in a country; None outside the European Union."""
    state = SAME_TERRITORY.get(country or "", country)
    return state if state in MEMBER_STATES else None


@lru_cache(maxsize=1024)
def read_vat_number(text: str | None, country: str | None = None) -> VatNumber | None:
    """Return the VAT number that a text contains; None if it is another text, such as a national tax number.

    Words before the number are skipped (`VAT BE0428759497`). `country` gives the prefix of a number without one.
    """
    words = GAPS.split(clean(text or "", "-./,").upper().strip())
    if not text or len(text) > LONGEST:
        return None
    for start in range(len(words)):
        number = "".join(words[start:])
        found = _of_state(number[2:], PREFIXES.get(number[:2]))
        if found:
            return found
    number = "".join(words)
    has_prefix = number[:2].isalpha()  # that of a country outside the EU; two letters also fit French numbers
    return None if has_prefix else _of_state(number, vat_territory(country))


def _of_state(digits: str, state: str | None) -> VatNumber | None:
    module = state and get_cc_module("gb" if state == NORTHERN_IRELAND else state.lower(), "vat")
    if not module or not state:
        return None
    number = ("EL" if state == "GR" else state) + digits
    is_consistent = True
    try:
        module.validate(number)
    except (InvalidFormat, InvalidLength):
        return None
    except ValidationError:
        is_consistent = False
    return VatNumber(number[:2] + module.compact(number).removeprefix(number[:2]), state, is_consistent)
