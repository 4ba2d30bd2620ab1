"""Kinds of values: for each, its parser, its JSON schema and a description of what it accepts."""

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from ipaddress import IPv6Address
from typing import Annotated, Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

import pycountry
from msgspec import Meta

from retainer.errors import InvalidValue, nearest, part
from retainer.values.exact import DIGITS, as_instant, decimal_text, utcnow
from retainer.values.texts import CODE, LINE

MAX_INTEGER = 2**53 - 1  # the largest that every JSON client reads exactly
MAX_AMOUNT = Decimal(10) ** 12
MAX_QUANTITY = Decimal(10) ** 9
FIRST_LIKELY_DAY = "1970-01-01"
YEARS_AHEAD = 100
COUNTRIES = frozenset(country.alpha_2 for country in pycountry.countries)

DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,10})?")
DIGITS_ALONE = re.compile(r"-?[0-9]+(\.[0-9]+)?")
MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
PLAIN_EMAIL = re.compile(
    r"(?=[^@]{1,64}@)[A-Za-z0-9_+]+([.-][A-Za-z0-9_+]+)*@([a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}\.){1,4}[a-z]{2,20}"
)  # fast path for most addresses; they need no normalising, and the library takes ten times as long
MAX_EMAIL = 320
"""Characters of the longest address (RFC 3696), before it is brought into one form."""
PLAIN_URL = re.compile(r"https?://[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~/-]*)?")
"""Most addresses, which take urllib twenty times as long."""
QUOTED = "this is text. Leave out the quotes."
ME: Final = -1  # placeholder for the key's user, until the transaction fills in the id
ZEROS = re.compile(r"\{(0+)\}")
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
KEPT = "%/:?#[]@!$&'()*+,;=~"  # reserved in a path or query, so not encoded; % starts an existing escape


@cache
def timezones() -> frozenset[str]:
    """Return the IANA time zones, without its placeholder `Factory`. Systems have other files, like `localtime`."""
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="ascii").split()) - {"Factory"}


Parse = Callable[[object], Any]
"""Parses a JSON value, or raises ValueError."""


def kind(
    read: Parse, form: str, sent: dict[str, object] | None = None, *, read_field: Parse | None = None, **schema: object
) -> Meta:
    """Return the declaration of a kind of value: `read` parses a JSON value; `form` completes "Must be ...".

    `read_field` is the stricter parser of bodies, if there is one. `schema` is the JSON schema of responses; `sent`
    overrides its keywords for requests.
    """
    text = f"{form[0].upper()}{form[1:]}."
    extra = {"read": read, "read_field": read_field or read, "form": form, "sent": sent or {}}
    return Meta(description=text, extra=extra, extra_json_schema=schema)


def read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004
    return value


def read_user(value: object) -> int:
    if value == "me":
        return ME
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_INTEGER:
        raise InvalidValue(hint=QUOTED) if isinstance(value, str) and value.isdecimal() else ValueError
    return value


def read_decimal(value: object) -> Decimal:
    """Return an exact decimal from a JSON string or number; only numbers may have exponents. Raises ValueError."""
    if isinstance(value, str):
        if DECIMAL.fullmatch(value):
            return Decimal(value)
        if DIGITS_ALONE.fullmatch(value):
            raise InvalidValue(hint="this has too many digits.")
        if "," in value:
            raise InvalidValue(hint="this has a comma. Use a decimal point and no thousands separators.")
        raise ValueError
    number = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    if number is None:
        raise ValueError
    if not -20 < number.adjusted() < 20:
        raise InvalidValue(hint="this has too many digits.")
    return number


def between(low: Decimal, high: Decimal, places: int, below: str = "this is too small.") -> Callable[[object], Decimal]:
    def read(value: object) -> Decimal:
        number = read_decimal(value)
        plain = decimal_text(number or abs(number))  # 7.0 becomes 7, and -0 becomes 0
        found = len(plain.partition(".")[2])
        if not low <= number <= high:
            raise InvalidValue(hint=below if number < low else "this is too large.")
        if found > places:
            raise InvalidValue(hint=f"this has {found} decimal places.")
        return Decimal(plain)

    return read


def read_day(value: object) -> str:
    text = read_text(value)
    if not DAY.fullmatch(text):
        has_time = DAY.fullmatch(text[:10]) and text[10] in "Tt "
        raise InvalidValue(hint="this has a time. Remove it.") if has_time else ValueError
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InvalidValue(hint=f"{text} does not exist.") from None


def read_instant(value: object) -> str:
    """Return a timestamp (RFC 3339, with an offset) in UTC with microseconds. Raises ValueError."""
    text = read_text(value)
    if not INSTANT.fullmatch(text):
        if INSTANT.fullmatch("+".join(text.rsplit(" ", 1))):
            raise InvalidValue("Must be a timestamp with an offset; its + arrived as a space. Encode it as %2B.")
        if DAY.fullmatch(text):
            raise InvalidValue(hint="this has no time.")
        raise InvalidValue(hint="this has no offset. Add Z for UTC.") if INSTANT.fullmatch(f"{text}Z") else ValueError
    try:
        return as_instant(datetime.fromisoformat(text.upper()))
    except (OverflowError, ValueError):
        raise InvalidValue(hint="this time does not exist.") from None


def likely_days() -> tuple[str, str]:
    """Return the first and the last plausible day of a record; others are typing errors, like the year 201."""
    today = utcnow()[:10]
    return FIRST_LIKELY_DAY, f"{int(today[:4]) + YEARS_AHEAD}{today[4:]}"


def read_likely(read: Parse) -> Parse:
    """Return a parser of days or timestamps that raises ValueError outside `likely_days`."""

    def read_field(value: object) -> str:
        text: str = read(value)
        first, last = likely_days()
        if not first <= text[:10] <= last:
            raise InvalidValue(
                f"Must be from {part(first)} to {part(last)}; this is {part(f'{text[:10]}')}. Check the year."
            )
        return text

    return read_field


def read_email(value: object) -> str:
    text = read_text(value)
    if len(text) <= 191 and PLAIN_EMAIL.fullmatch(text):
        return text
    if len(text) > MAX_EMAIL:  # of which the library reads each character
        raise ValueError
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415  # 30 ms, and rarely needed

    try:
        address = validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        raise ValueError from None
    if len(address.normalized) > 191:
        raise ValueError
    return address.normalized


def read_url(value: object) -> str:
    text = read_text(value)
    if len(text) <= 2048 and PLAIN_URL.fullmatch(text):
        return text
    if len(text) > 2048:  # before it is divided, since urllib keeps the last 128 that it has
        raise ValueError
    url = urlsplit(text)
    if url.scheme not in {"http", "https"} or not url.hostname or min(text) <= " ":
        raise ValueError
    if url.port == 0:  # which raises ValueError for another invalid port
        raise ValueError
    return text


def read_site_url(value: object) -> str:
    """Return a normalised http or https URL: host in ASCII, no default port, no fragment. Refuses credentials."""
    url = urlsplit(read_url(value))
    if url.username is not None or url.password is not None:
        raise ValueError
    host = str(url.hostname).rstrip(".")
    if "[" in url.netloc:
        host = f"[{IPv6Address(host).compressed}]"
    else:
        if not host.isascii():
            import idna  # noqa: PLC0415  # 6 ms, and rarely needed

            host = idna.encode(host, uts46=True).decode()  # its errors are ValueErrors
        if len(host) > 253 or not all(LABEL.fullmatch(label) for label in host.split(".")):
            raise ValueError
    port = "" if url.port in {None, {"http": 80, "https": 443}[url.scheme]} else f":{url.port}"
    path, query = (quote(part, safe=KEPT) for part in (url.path or "/", url.query))
    normalized = urlunsplit((url.scheme, f"{host}{port}", path, query, ""))
    if len(normalized) > 2048:
        raise ValueError
    return normalized


def read_pattern(value: object) -> str:
    text = read_text(value)
    plain = ZEROS.sub("", text).replace("{YYYY}", "")
    if len(text) > 50 or len(ZEROS.findall(text)) != 1 or "{" in plain or "}" in plain:
        raise ValueError
    return text


def one_of(values: Callable[[], Collection[str]]) -> Callable[[object], str]:
    """Return a parser of texts from a set; `values` returns the set and is called for each text.

    Codes of three letters have no suggestion but in the other case: AUT is as near to AU as to AT.
    """

    def read(value: object) -> str:
        text = read_text(value)
        if text in values():
            return text
        folded = text.casefold()
        meant = next((value for value in values() if value.casefold() == folded), None)
        if meant is None and len(text) > 4:
            meant = next(iter(nearest(text, values())), None)
        raise InvalidValue(hint=f"did you mean {meant}?") if meant else ValueError

    return read


Id = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
ID_OR_ME: dict[str, object] = {"type": ["integer", "string"], "pattern": "^me$"}
UserId = Annotated[int, kind(read_user, 'the id of a user, or "me"', ID_OR_ME, minimum=1, maximum=MAX_INTEGER)]
MAX_POSITION = 1_000_000_000
Position = Annotated[int, Meta(ge=0, le=MAX_POSITION)]
Text20 = Annotated[str, Meta(min_length=1, max_length=20), LINE]
Text50 = Annotated[str, Meta(min_length=1, max_length=50), LINE]
Text100 = Annotated[str, Meta(min_length=1, max_length=100), LINE]
Text191 = Annotated[str, Meta(min_length=1, max_length=191), LINE]
FullName = Annotated[str, Meta(min_length=1, max_length=201), LINE]
"""A first and a last name of 100 characters each, and a space between them."""
Text255 = Annotated[str, Meta(min_length=1, max_length=255), LINE]
Code30 = Annotated[str, Meta(min_length=1, max_length=30), CODE]
Code50 = Annotated[str, Meta(min_length=1, max_length=50), CODE]
Code100 = Annotated[str, Meta(min_length=1, max_length=100), CODE]
Code191 = Annotated[str, Meta(min_length=1, max_length=191), CODE]
Password = Annotated[str, Meta(min_length=12, max_length=1000)]
Searched = Annotated[str, Meta(min_length=1, max_length=191)]
"""A text to be found within others, which may have several lines."""
Text1000 = Annotated[str, Meta(min_length=1, max_length=1000)]
Text2000 = Annotated[str, Meta(min_length=1, max_length=2000)]
Text5000 = Annotated[str, Meta(min_length=1, max_length=5000)]
Text10000 = Annotated[str, Meta(min_length=1, max_length=10000)]
Text20000 = Annotated[str, Meta(min_length=1, max_length=20000)]
Text50000 = Annotated[str, Meta(min_length=1, max_length=50000)]
EMAIL, ADDRESS, SHOP = "ana@agency.example", "https://agency.example", "https://shop.example"
EMAIL_FORM = f"an email address of at most 191 characters, like {EMAIL}"
Email = Annotated[str, kind(read_email, EMAIL_FORM, format="email", maxLength=191, examples=[EMAIL])]
URL: dict[str, object] = {"format": "uri", "maxLength": 2048}
Url = Annotated[str, kind(read_url, f"an http or https URL, like {ADDRESS}", **URL, examples=[ADDRESS])]


def site_url(example: str) -> Meta:
    form = f"an http or https URL without user and password, like {example.removesuffix('/')}"
    return kind(read_site_url, form, format="uri", maxLength=2048, examples=[example])


SiteUrl = Annotated[str, site_url(f"{SHOP}/")]
HttpStatus = Annotated[int, Meta(ge=200, le=599)]
PATTERN = "at most 50 characters, with {0000} for the number and optionally {YYYY} for the year; no other braces"
NumberPattern = Annotated[str, kind(read_pattern, PATTERN), CODE]
DAY_FORM, INSTANT_FORM = "a date like 2026-03-31", "a timestamp with an offset, like 2026-03-31T14:30:00Z"
DAY_SCHEMA: dict[str, object] = {"format": "date", "examples": ["2026-03-31"]}
INSTANT_SCHEMA: dict[str, object] = {"format": "date-time", "examples": ["2026-03-31T14:30:00.000000Z"]}
Day = Annotated[str, kind(read_day, DAY_FORM, read_field=read_likely(read_day), **DAY_SCHEMA)]
Instant = Annotated[str, kind(read_instant, INSTANT_FORM, read_field=read_likely(read_instant), **INSTANT_SCHEMA)]
CURRENCY: dict[str, object] = {"pattern": "^[A-Z]{3}$", "examples": ["EUR"]}
Currency = Annotated[str, kind(one_of(lambda: DIGITS), "an ISO 4217 currency code, like EUR", **CURRENCY)]
COUNTRY: dict[str, object] = {"pattern": "^[A-Z]{2}$", "examples": ["DE"]}
Country = Annotated[str, kind(one_of(lambda: COUNTRIES), "a two-letter ISO 3166-1 country code, like DE", **COUNTRY)]
Timezone = Annotated[str, kind(one_of(timezones), "an IANA time zone, like Europe/Berlin", examples=["Europe/Berlin"])]


def exact(low: Decimal, high: Decimal, places: int, form: str, example: str, **hints: str) -> Meta:
    """Return the declaration of a decimal between two bounds: a string; requests may also send a number."""
    pattern = rf"^{'-?' if low < 0 else ''}[0-9]+(\.[0-9]{{1,{places}}})?$"
    example_form = f'{form}, like "{example}"'
    return kind(between(low, high, places, **hints), example_form, type="string", pattern=pattern, examples=[example])


Money = Annotated[Decimal, exact(Decimal(0), MAX_AMOUNT, 4, f"an amount from 0 to {MAX_AMOUNT:f}", "120.00")]
SignedMoney = Annotated[
    Decimal, exact(-MAX_AMOUNT, MAX_AMOUNT, 4, f"an amount from -{MAX_AMOUNT:f} to {MAX_AMOUNT:f}", "120.00")
]
Quantity = Annotated[Decimal, exact(-MAX_QUANTITY, MAX_QUANTITY, 4, "a quantity with at most 4 decimal places", "1.5")]
UnitPrice = Annotated[
    Decimal,
    exact(
        *(Decimal(0), MAX_AMOUNT, 4, "a price from 0 with at most 4 decimal places", "33.3333"),
        below="for a rebate, make the quantity negative.",
    ),
]
Percent = Annotated[
    Decimal, exact(Decimal(0), Decimal(100), 3, "a percentage from 0 to 100 with at most 3 decimal places", "7.5")
]
Markup = Annotated[
    Decimal, exact(Decimal(0), Decimal(1000), 3, "a percentage from 0 to 1000 with at most 3 decimal places", "15")
]


def read_month(value: object) -> str:
    text = read_text(value)
    if DAY.fullmatch(text):
        raise InvalidValue(hint="this has a day. Remove it.")
    if not MONTH.fullmatch(text):
        raise ValueError
    return text


MONTH_SCHEMA: dict[str, object] = {"pattern": "^[0-9]{4}-(0[1-9]|1[0-2])$", "examples": ["2026-03"]}
Month = Annotated[str, kind(read_month, "a month like 2026-03", read_field=read_likely(read_month), **MONTH_SCHEMA)]


def last_day(month: str) -> str:
    year, number = int(month[:4]), int(month[5:])
    return f"{month}-{monthrange(year, number)[1]:02}"


def months_of(first: str, last: str) -> Iterator[str]:
    month = first[:7]
    while month <= last[:7]:
        yield month
        year, number = int(month[:4]), int(month[5:])
        month = f"{year + number // 12:04}-{number % 12 + 1:02}"
