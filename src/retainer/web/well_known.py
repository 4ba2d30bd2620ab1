"""Files that browsers, search engines and security researchers ask every server for, by well-known names."""

from datetime import timedelta

from retainer.errors import Refusal
from retainer.kernel.http import Request, Response
from retainer.settings import BASE_PATH
from retainer.values.exact import instant_after, utcnow
from retainer.values.kinds import read_email
from retainer.web.pages import ADDRESSES, PUBLISHED, document

TEXT = "text/plain; charset=utf-8"
ROBOTS = f"User-agent: *\nDisallow: /console\nDisallow: {BASE_PATH}\n"
VALID = timedelta(days=180)
"""How long a reader may trust security.txt; RFC 9116 recommends less than a year."""


def answer_icon(request: Request) -> Response:
    return document(request, *PUBLISHED[ADDRESSES["icon.svg"]])


def answer_robots(request: Request) -> Response:
    return document(request, TEXT, ROBOTS.encode())


def answer_well_known(request: Request) -> Response:
    """Return security.txt (RFC 9116), which names the operator. Raises `not_found` without a contact to name."""
    contact = contact_of(request.settings.contact)
    if request.path != "/.well-known/security.txt" or not contact:
        raise Refusal("not_found", "There is nothing here. For security.txt, the operator sets RETAINER_CONTACT.")
    expires = instant_after(utcnow(), VALID)
    return document(request, TEXT, f"Contact: {contact}\nExpires: {expires}\nPreferred-Languages: en\n".encode())


def contact_of(text: str) -> str:
    if text.startswith("https://"):
        return text
    try:
        return f"mailto:{read_email(text)}"
    except ValueError:
        return ""
