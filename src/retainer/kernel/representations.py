"""Representations: other forms of a record than JSON, such as the PDF of an invoice, which `Accept` chooses."""

import re
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import NamedTuple, Protocol, TypeVar

from retainer.errors import Refusal
from retainer.store.tx import Actor, Store

T = TypeVar("T")
JSON = "application/json"
MAX_HEADER_LENGTH = 256
"""Of `Accept`; a longer one gets JSON."""
WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


class File(NamedTuple):
    """The content of a response that is a file, and its name."""

    content: bytes
    name: str


class RunApart(Protocol):
    """Runs what may take long or much memory, without delaying other accounts."""

    def __call__(self, account_id: int, function: Callable[..., T], /, *arguments: object) -> T:
        """Return the result of a function. Raises its error, and `unavailable`."""


def run_here(_: int, function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function at once. Commands use it, because their process answers no other request."""
    return function(*arguments)


class Prepared(Protocol):
    """What was read of a record in the transaction of its request."""

    def finish(self, store: Store, actor: Actor, run_apart: RunApart) -> File:
        """Return the file, after the transaction has ended: rendering holds no connection. Raises Refusal."""


class Representation(NamedTuple):
    """A form of a record. `suffix` tells its ETag from that of the JSON."""

    media_type: str
    suffix: str
    prepare: Callable[..., Prepared]
    """Of a `Tx` and a record."""


def check_acceptable(offered: Sequence[Representation], elsewhere: Collection[str], accept: str | None) -> None:
    """Raise `not_acceptable` if `Accept` takes neither JSON nor what is offered, but a form that is offered elsewhere.

    So nobody mistakes JSON for a PDF. Any other header that names nothing of what is offered gets JSON.
    """
    if accept is None or len(accept) > MAX_HEADER_LENGTH:
        return
    accept = accept.lower()
    named = [form for form in elsewhere if form in accept]
    if not named:
        return
    own = [JSON, *(form.media_type for form in offered)]
    try:
        is_acceptable = any(weight_of(form, accept) for form in own)
        wanted = [form for form in named if weight_of(form, accept)]
    except ValueError:
        return
    if wanted and not is_acceptable:
        raise Refusal("not_acceptable", f"There is no {wanted[0]} at this path. Send Accept: {' or '.join(own)}.")


def choose(offered: Sequence[Representation], accept: str | None) -> Representation | None:
    """Return the form that `Accept` prefers to JSON (RFC 9110, 12.5.1); None for JSON.

    A header that names nothing of what is offered, or that cannot be read, gets JSON.
    """
    if not offered or accept is None or len(accept) > MAX_HEADER_LENGTH:
        return None
    accept = accept.lower()
    try:
        best = max(offered, key=lambda form: weight_of(form.media_type, accept))
        return best if weight_of(best.media_type, accept) > weight_of(JSON, accept) else None
    except ValueError:
        return None


def weight_of(media_type: str, accept: str) -> Decimal:
    """Return the weight that `Accept`, in lower case, gives a media type: that of the range that names it best.

    Parameters other than `q` are ignored. Raises ValueError for a malformed weight.
    """
    weights = {}
    for part in accept.split(","):
        name, *options = (text.strip() for text in part.split(";"))
        weight = next((option[2:] for option in options if option.startswith("q=")), "1")
        if not WEIGHT.fullmatch(weight):
            raise ValueError(f"{weight} is no weight.")
        weights[name] = Decimal(weight)
    ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    return next((weights[name] for name in ranges if name in weights), Decimal(0))
