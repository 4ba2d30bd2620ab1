"""Files of logos: an uploaded PNG or SVG is drawn once, and only the picture is kept, as a PNG.

The file comes from anyone. typst runs no script of an SVG, reads no file and opens no address, and limits its elements
and entities; the renderer limits time and memory. So nothing but pixels reaches documents and browsers.
"""

import re
import struct
import zlib

from typst import TypstError

from retainer.documents.pdf import typeset
from retainer.errors import invalid
from retainer.kernel.representations import JobFailed, RunApart

MAX_BYTES = 200 * 1024
MAX_SECONDS = 2
"""Processor time to draw a file: logos of drawing programs take less than half a second."""
MAX_SIDE = 4000
"""Pixels of an uploaded PNG, in each direction."""
BOX = {"width": 1800, "height": 480}
"""Pixels of what is kept: documents print at most 90 by 16 mm, so at least 500 dots an inch."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"
SIZE = slice(16, 24)
"""Width and height in a PNG (ISO/IEC 15948, 11.2.1)."""
GZIP = b"\x1f\x8b"
"""The beginning of a compressed SVG (RFC 1952, 2.3.1), which is often called `.svgz`."""
MAX_UNPACKED = 8 * MAX_BYTES
DAMAGED = "The PNG file is damaged. Export it again."
UNREADABLE = "The SVG file cannot be drawn. Export it again, as plain SVG with all images embedded, or use a PNG."
TOO_COMPLEX = (
    "The file takes too much time or memory to draw. Simplify it, "
    f"or export it as a PNG of at most {BOX['width']} by {BOX['height']} pixels."
)
HAS_TEXT = "The SVG file has text, but not its font. Turn the text into paths and export it again, or use a PNG."
TEXT = re.compile(rb"<(?:\w+:)?text[\s>]")
"""Text of an SVG: typst leaves out what its fonts do not have, so that a name would be missing without a word."""


def read_logo(account_id: int, content: bytes, run_apart: RunApart) -> bytes:
    """Return the picture of a file as a PNG, before the transaction that stores it. Raises `validation_failed`."""
    if not content:
        raise invalid({"logo": ["Choose a PNG or SVG file."]})
    if len(content) > MAX_BYTES:
        raise invalid({"logo": [f"The file has {len(content) // 1024} KB. At most {MAX_BYTES // 1024} KB fit."]})
    try:
        picture: bytes = run_apart(account_id, MAX_SECONDS, draw, content)
    except ValueError as error:
        raise invalid({"logo": [str(error)]}) from None
    except JobFailed:
        raise invalid({"logo": [TOO_COMPLEX]}) from None
    return picture


def draw(content: bytes) -> bytes:
    """Return the picture of a PNG or SVG file as a PNG. Raises ValueError with a sentence if there is none."""
    is_png = content.startswith(SIGNATURE)
    if is_png:
        if len(content) < SIZE.stop:
            raise ValueError(DAMAGED)
        width, height = struct.unpack(">II", content[SIZE])
        if max(width, height) > MAX_SIDE:  # before its pixels are unpacked
            raise ValueError(f"The image has {width} by {height} pixels. At most {MAX_SIDE} by {MAX_SIDE} fit.")
    else:
        content = unpack(content)
        if b"<" not in content[:100]:
            raise ValueError("The file is neither a PNG nor an SVG image.")
        if TEXT.search(content):
            raise ValueError(HAS_TEXT)
    data = {"content": list(content), "format": "png" if is_png else "svg", **BOX}
    try:
        return typeset("logo.typ", data, "png")
    except TypstError:
        raise ValueError(DAMAGED if is_png else UNREADABLE) from None


def unpack(content: bytes) -> bytes:
    """Return an SVG as it was before it was compressed, if it was. Raises ValueError."""
    if not content.startswith(GZIP):
        return content
    try:
        unpacked = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS).decompress(content, MAX_UNPACKED + 1)
    except zlib.error:
        raise ValueError(UNREADABLE) from None
    if len(unpacked) > MAX_UNPACKED:
        raise ValueError(TOO_COMPLEX)
    return unpacked
