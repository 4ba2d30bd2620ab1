"""The text of a page: decompressed and decoded as browsers do, within limits; and a keyword within it."""

import codecs
import html
import re
import unicodedata
import zlib
from contextlib import suppress
from itertools import chain, groupby, islice

import brotli
import webencodings

from retainer.values.texts import MAX_MARKS, is_mark

MAX_PAGE = 1024 * 1024  # bytes of a page that are read, and as many after each decompression
MAX_CODINGS = 2
LONG_RUN = re.compile(f"[^\\x00-\\x7f]{{{MAX_MARKS + 1},}}")
UNSEEN = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")  # soft hyphens, joiners and spaces without width
HEAD = 1024  # bytes within which a page must declare its encoding (HTML, 13.2.3.2)
DECLARATION = re.compile(rb"<(?:meta|\?xml)\s[^<>]*>", re.IGNORECASE)
CHARSET = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([^\s"'>;/]+)""", re.IGNORECASE)


class UnreadablePage(Exception):
    """A page that cannot be read; the message is for the tenant."""


def find_keyword(keyword: str, body: bytes, content_encoding: str, charset: str | None) -> str | None:
    """Return why a page does not contain a keyword, or None if it does; case, composition and spaces do not matter.

    `body` is the beginning of the page as it was sent. Its source is searched, too, as a keyword may be markup.
    """
    try:
        page = decompress(body, content_encoding)
    except UnreadablePage as error:
        return str(error)
    text, wanted = decode(page, charset), _folded(keyword) or keyword
    if wanted in _folded(text):
        return None
    with suppress(ValueError):  # a number too long for a character
        shown = html.unescape(text)
        if shown != text and wanted in _folded(shown):
            return None
    is_cut = max(len(body), len(page)) >= MAX_PAGE
    return f"The keyword is not {'in the first MiB of the page' if is_cut else 'on the page'}."


def decompress(body: bytes, content_encoding: str) -> bytes:
    """Return the beginning of a page as it was before it was compressed. Raises UnreadablePage."""
    codings = [each.strip().lower() for each in content_encoding.split(",")]
    codings = [each.removeprefix("x-") for each in codings if each not in {"", "identity"}]
    if len(codings) > MAX_CODINGS:
        raise UnreadablePage(f"The page is compressed {len(codings)} times. The maximum is {MAX_CODINGS}.")
    for coding in reversed(codings):
        try:
            body = _decompress(body, coding)
        except (zlib.error, brotli.error):
            raise UnreadablePage(f"The page says that it is compressed with {coding}, but it is not.") from None
    return body


def _decompress(body: bytes, coding: str) -> bytes:
    """Return at most MAX_PAGE bytes: a bomb costs no more than a page."""
    if coding == "br":
        decompressor = brotli.Decompressor()
        page: bytes = decompressor.process(body, output_buffer_limit=MAX_PAGE)
        if not page and not decompressor.is_finished():
            raise brotli.error
        return page[:MAX_PAGE]
    if coding == "gzip":
        return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS).decompress(body, MAX_PAGE)
    if coding == "deflate":
        try:
            return zlib.decompressobj().decompress(body, MAX_PAGE)
        except zlib.error:  # without the header of zlib, as some servers send it
            return zlib.decompressobj(wbits=-zlib.MAX_WBITS).decompress(body, MAX_PAGE)
    raise UnreadablePage(f"The page is compressed with {coding[:20]}, although the monitor asks for none.")


def decode(page: bytes, charset: str | None) -> str:
    """Decode a page by its byte order mark, its header or what it declares; else as UTF-8 or windows-1252."""
    encoding = webencodings.lookup(charset or "") or _declared(page[:HEAD])
    if encoding is None:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(page)  # the last character may be cut
            encoding = webencodings.UTF8
        except UnicodeDecodeError:
            encoding = webencodings.lookup("windows-1252")
    text: str = webencodings.decode(page, encoding)[0]
    return text


def _declared(head: bytes) -> webencodings.Encoding | None:
    """Return the encoding that the head of a page declares outside of comments."""
    while (start := head.find(b"<!--")) >= 0:
        head = head[:start] + head[start + 4 :].partition(b"-->")[2]
    for declaration in DECLARATION.findall(head):
        if found := CHARSET.search(declaration):
            encoding = webencodings.lookup(found[1].decode("latin-1"))
            # who could read the declaration has not read UTF-16
            return webencodings.UTF8 if encoding and encoding.name.startswith("utf-16") else encoding
    return None


def _folded(text: str) -> str:
    def without_most_marks(found: re.Match[str]) -> str:
        runs = groupby(found[0], key=is_mark)
        return "".join(chain.from_iterable(islice(run, MAX_MARKS) if are_marks else run for are_marks, run in runs))

    if not unicodedata.is_normalized("NFC", text):
        text = LONG_RUN.sub(without_most_marks, text)
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(UNSEEN.sub("", text).split())
