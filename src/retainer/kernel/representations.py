"""Representations: other forms of a record than JSON, such as the PDF of an invoice, which `Accept` chooses."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from retainer.errors import Refusal
from retainer.kernel.downloads import Download

T = TypeVar("T")
JSON = "application/json"
WEIGHT = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


SANDBOX = "default-src 'none'; sandbox"
"""The Content-Security-Policy of files that people have uploaded: in a page of their own, they run no script."""
PDF = "application/pdf"
UNPRINTABLE = re.compile(r"[^ !#-\[\]-~]|[%;]")
"""The characters that not every client reads in a quoted file name."""


class RenderedFile(NamedTuple):
    """The content of a response that is a file, its name, and its policy if it was uploaded."""

    content: bytes
    name: str
    policy: str = ""
    is_shown: bool = True
    """Whether browsers show it; they save other files."""
    download: Download | None = None
    """The content instead, if it is too large for memory."""

    def headers(self, media_type: str) -> list[tuple[str, str]]:
        """Return the headers of its response; a name that is not ASCII is encoded, too (RFC 6266, 5)."""
        plain = UNPRINTABLE.sub("_", self.name)
        name = f'filename="{plain}"' + (f"; filename*=UTF-8''{quote(self.name, safe='')}" if plain != self.name else "")
        disposition = f"{'inline' if self.is_shown else 'attachment'}; {name}"
        headers = [("content-type", media_type), ("content-disposition", disposition)]
        if self.policy and media_type != PDF:  # browsers show no PDF in a sandbox, and a PDF has no page to script
            headers.append(("content-security-policy", self.policy))
        return headers


RunApart = Callable[..., Any]
"""Returns the result of a function, of which it takes the account, the seconds of processor time that it may take, the
function and its arguments.

It runs what may take long or much memory, without delaying other accounts. Raises its error, JobFailed, and
`unavailable` while the server is too busy.
"""


class JobFailed(Exception):
    """A job that took too much processor time or memory, or ended the process that ran it."""

    def __init__(self, reason: Literal["time", "memory", "end"]) -> None:
        super().__init__(reason)
        self.reason = reason


def run_here(_: int, __: float, function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function at once. Commands use it, because their process answers no other request."""
    return function(*arguments)


class PreparedFile(Protocol):
    """What was read of a record in the transaction of its request."""

    @property
    def tag(self) -> str:
        """The entity tag of the file, of all that it is made from."""

    def finish(self, account_id: int, run_apart: RunApart) -> RenderedFile:
        """Return the file, after the transaction has ended: rendering holds no connection. Raises Refusal."""


class Representation(NamedTuple):
    """A form of a record."""

    media_type: str
    suffix: str
    prepare: Callable[..., PreparedFile]
    """Of a `Tx`, a record, and the query."""


def negotiate(offered: Sequence[Representation], of_others: Collection[str], accept: str) -> Representation | None:
    """Return the form that `Accept` prefers to JSON (RFC 9110, 12.5.1); None for JSON.

    A header that names nothing of what is offered, or that cannot be read, gets JSON. Raises `not_acceptable` if it
    takes neither JSON nor what is offered, but a form `of_others`, which other operations offer: so nobody mistakes
    JSON for a PDF.
    """
    weights: dict[str, Decimal] = {}  # of each range, without other parameters than `q`
    for part in accept.lower().split(","):
        name, *options = (text.strip() for text in part.split(";"))
        weight = next((option[2:] for option in options if option.startswith("q=")), "1")
        if not WEIGHT.fullmatch(weight):
            return None
        weights[name] = Decimal(weight)
    best = max(offered, key=lambda form: weight_of(form.media_type, weights), default=None)
    of_json = weight_of(JSON, weights)
    if best is not None and weight_of(best.media_type, weights) > of_json:
        return best
    wanted = [form for form in of_others if weights.get(form)]
    if wanted and not of_json:
        own = " or ".join([JSON, *(form.media_type for form in offered)])
        raise Refusal("not_acceptable", f"There is no {wanted[0]} at this path. Send Accept: {own}.")
    return None


def weight_of(media_type: str, weights: Mapping[str, Decimal]) -> Decimal:
    """Return the weight of the range that names a media type best."""
    ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    return next((weights[name] for name in ranges if name in weights), Decimal(0))
