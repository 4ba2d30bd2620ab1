"""PNG images (ISO/IEC 15948): checked whole, and reduced to the chunks that the picture needs."""

import struct
import zlib
from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEPT = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
"""Other chunks, such as comments and colour profiles, are dropped."""
MAX_SIDE = 4000
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: {1, 2, 4, 8, 16}, 2: {8, 16}, 3: {1, 2, 4, 8}, 4: {8, 16}, 6: {8, 16}}
"""Channels and bits of a channel, by the type of colour."""
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""The passes of an interlaced image: the first column and row, and the steps between them."""
LAST_FILTER = 4
DAMAGED = "The PNG file is damaged. Export it again."


class Header(NamedTuple):
    """The size and form of an image."""

    width: int
    height: int
    depth: int
    color: int
    compression: int
    filtering: int
    interlacing: int


def clean_png(content: bytes) -> bytes:
    """Return a PNG without additional data. Raises ValueError with a sentence if it is damaged or too large."""
    chunks = list(_chunks(content))
    names = [name for name, _ in chunks]
    if names[:1] != [b"IHDR"] or names.count(b"IHDR") != 1 or b"IDAT" not in names or len(chunks[0][1]) != 13:
        raise ValueError(DAMAGED)
    header = Header(*struct.unpack(">IIBBBBB", chunks[0][1]))
    if not 0 < header.width <= MAX_SIDE or not 0 < header.height <= MAX_SIDE:
        raise ValueError(
            f"The image has {header.width} by {header.height} pixels. At most {MAX_SIDE} by {MAX_SIDE} fit."
        )
    if header.depth not in DEPTHS.get(header.color, ()) or (header.compression, header.filtering) != (0, 0):
        raise ValueError(DAMAGED)
    palette = next((data for name, data in chunks if name == b"PLTE"), b"")
    if header.color == 3 and (not palette or len(palette) % 3 or len(palette) > 3 << header.depth):
        raise ValueError(DAMAGED)
    _check_pixels(header, b"".join(data for name, data in chunks if name == b"IDAT"))
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks if name in KEPT)


def _chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    """Return the chunks up to the end of the image."""
    found: list[tuple[bytes, bytes]] = []
    at = len(SIGNATURE)
    while not found or found[-1][0] != b"IEND":
        head = content[at : at + 8]
        if len(head) < 8:
            raise ValueError(DAMAGED)
        length, name = int.from_bytes(head[:4]), head[4:]
        data, check = content[at + 8 : at + 8 + length], content[at + 8 + length : at + 12 + length]
        if len(check) < 4 or zlib.crc32(name + data) != int.from_bytes(check):
            raise ValueError(DAMAGED)
        found.append((name, data))
        at += 12 + length
    return found


def _chunk(name: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4)


def _check_pixels(header: Header, packed: bytes) -> None:
    """Raise ValueError unless the data are exactly the rows of the image, each with a known filter."""
    bits = CHANNELS[header.color] * header.depth
    sizes = [(header.width, header.height)]
    if header.interlacing:
        sizes = [
            (-(-(header.width - column) // step), -(-(header.height - row) // rows))
            for column, row, step, rows in PASSES
        ]
    rows = [1 + (width * bits + 7) // 8 for width, height in sizes if width > 0 for _ in range(height)]
    unpacking = zlib.decompressobj()
    try:
        pixels = unpacking.decompress(packed, sum(rows) + 1)
    except zlib.error:
        raise ValueError(DAMAGED) from None
    starts, at = [], 0
    for size in rows:
        starts.append(at)
        at += size
    if len(pixels) != at or not unpacking.eof or any(pixels[start] > LAST_FILTER for start in starts):
        raise ValueError(DAMAGED)
