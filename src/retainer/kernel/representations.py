"""Representations: other forms of a record than JSON, such as the PDF of an invoice, which `Accept` chooses."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol, TypeVar

from falcon import mediatypes

from retainer.errors import Refusal
from retainer.store.tx import Actor, Store

T = TypeVar("T")
JSON = "application/json"
MAX_HEADER_LENGTH = 256
"""Of `Accept`; a longer one gets JSON, because falcon's cache keeps the text."""


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
        is_acceptable = any(mediatypes.quality(form, accept) for form in own)
        wanted = [form for form in named if mediatypes.quality(form, accept)]
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
    accept = accept.lower()  # media types ignore case, and falcon does not
    try:
        least = mediatypes.quality(JSON, accept)
        best = max(offered, key=lambda form: mediatypes.quality(form.media_type, accept))
        return best if mediatypes.quality(best.media_type, accept) > least else None
    except ValueError:
        return None
