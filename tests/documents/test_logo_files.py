"""Logos: of an uploaded file the picture is kept, as a PNG; damaged and hostile files are refused."""

import gzip
import struct
import zlib

import pytest

from retainer.documents.logo_files import BOX, MAX_SIDE, SIGNATURE, SIZE, draw


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int = 3, height: int = 2, *more: bytes, interlaced: int = 0, rows: bytes | None = None) -> bytes:
    """An image in RGBA."""
    pixels = rows if rows is not None else (b"\0" + b"\x10\x20\x30\xff" * width) * height
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, interlaced))
    return SIGNATURE + header + b"".join(more) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def size_of(image: bytes) -> tuple[int, ...]:
    return struct.unpack(">II", image[SIZE])


def pixels_of(image: bytes) -> bytes:
    """The rows of an image as they were compressed."""
    start = image.index(b"IDAT")
    return zlib.decompress(image[start + 4 : start + 4 + int.from_bytes(image[start - 4 : start])])


def test_a_png_keeps_its_picture_and_loses_the_rest():
    drawn = draw(png(3, 2, chunk(b"tEXt", b"Author\0Ana"), chunk(b"eXIf", b"place")) + b"<script>")
    assert drawn == draw(png())
    assert size_of(drawn) == (3, 2)
    assert pixels_of(drawn)[1:5] == b"\x10\x20\x30\xff"
    assert draw(drawn) == drawn


def test_an_interlaced_png_is_accepted():
    # 3 by 2 pixels: pass 1 has (0, 0), pass 4 has (2, 0), pass 6 has (1, 0), pass 7 the second row
    rows = (b"\0" + b"\x10\x20\x30\xff") * 3 + b"\0" + b"\x10\x20\x30\xff" * 3
    assert draw(png(rows=rows, interlaced=1)) == draw(png())


@pytest.mark.parametrize(
    ("size", "kept"), [((1000, 500), (960, 480)), ((MAX_SIDE, 10), (1800, 5)), ((1, MAX_SIDE), (1, 480))]
)
def test_a_large_png_is_reduced_to_what_documents_can_show(size, kept):
    assert size_of(draw(png(*size))) == kept


@pytest.mark.parametrize(
    "content",
    [
        *(SIGNATURE, png()[:60], png(0, 1), png(MAX_SIDE + 1, 1), png(1, MAX_SIDE + 1)),
        *(png(rows=b"\0" * 7), png(rows=b"\x05" + b"abcd" * 3 + b"\0" + b"abcd" * 3)),
        png().replace(b"IDAT", b"IDAU"),
    ],
)
def test_a_damaged_png_is_refused(content):
    with pytest.raises(ValueError, match=r"damaged|pixels"):
        draw(content)


NAMES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def svg(inner: str, attributes: str = 'viewBox="0 0 10 10"') -> bytes:
    return f"<svg {NAMES} {attributes}>{inner}</svg>".encode()


SHAPE = '<path d="M0 0h10v10z" fill="#4b53d6"/>'


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('viewBox="0 0 10 10"', (480, 480)),
        ('width="4" height="1"', (1800, 450)),
        ('viewBox="0 0 9000 1"', (1800, 1)),
        ("", (480, 480)),
    ],
)
def test_an_svg_fills_the_box_of_documents(attributes, size):
    assert size_of(draw(svg(SHAPE, attributes))) == size
    assert (BOX["width"], BOX["height"]) == (1800, 480)


def test_styles_gradients_and_doctypes_of_drawing_programs_are_understood():
    sheet = "<style>/* a */ .st0, .st1 { fill: #4b53d6; }</style>"
    doctype = b'<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x/svg.dtd">'
    assert draw(doctype + svg(f'{sheet}<path class="st0 st1" d="M0 0h10v10z"/>')) == draw(svg(SHAPE))
    stops = '<stop offset="0" stop-color="#4b53d6"/><stop offset="1" stop-color="#4b53d6"/>'
    gradient = f'<defs><linearGradient id="a">{stops}</linearGradient></defs><path d="M0 0h10v10z" fill="url(#a)"/>'
    assert draw(svg(gradient)) == draw(svg(SHAPE))


@pytest.mark.parametrize("text", ['<text x="1">Neu</text>', "<svg:text\n>Neu</svg:text>"])
def test_text_that_would_be_missing_in_the_picture_is_refused(text):
    with pytest.raises(ValueError, match="Turn the text into paths"):
        draw(svg(SHAPE + text))


def gzipped(content: bytes, name: bytes) -> bytes:
    """A file of gzip that names the file within it (RFC 1952)."""
    return b"\x1f\x8b\x08\x08" + bytes(6) + name + b"\0" + gzip.compress(content, mtime=0)[10:]


@pytest.mark.parametrize("name", [b"logo.svg", b"a<b.svg"])
def test_a_compressed_svg_is_looked_at_as_what_it_contains(name):
    assert draw(gzipped(svg(SHAPE), name)) == draw(svg(SHAPE))
    with pytest.raises(ValueError, match="Turn the text into paths"):
        draw(gzipped(svg(f"{SHAPE}<text>Neu</text>"), name))
    with pytest.raises(ValueError, match="neither a PNG nor an SVG"):
        draw(gzipped(b"GIF89a", name))
    with pytest.raises(ValueError, match="takes too much time or memory"):
        draw(gzipped(svg(" " * 120_000_000), name))
    for broken in (gzipped(svg(SHAPE), name)[:40], gzipped(svg(SHAPE), name)[:-12]):
        with pytest.raises(ValueError, match=r"cannot be drawn|neither"):
            draw(broken)


HOSTILE = [
    "<script>alert(1)</script>",
    "<foreignObject><body onload='alert(1)'/></foreignObject>",
    '<image xlink:href="data:image/svg+xml;base64,PHN2Zz4="/>',
    '<use xlink:href="http://evil.example/x.svg#a"/>',
    '<a xlink:href="javascript:alert(1)"><path d="M0 0"/></a>',
    '<animate attributeName="href" values="javascript:alert(1)"/>',
    '<rect onclick="alert(1)" onload="alert(1)" width="1"/>',
    '<rect fill="url(http://evil.example/x)" width="1"/>',
    '<linearGradient id="b" xlink:href="http://evil.example/x#b"/>',
    "<style>@import 'http://evil.example/x.css'; .a{fill:url(//evil.example)}</style>",
    '<filter><feImage href="http://evil.example"/></filter>',
    "<metadata><rdf>evil.example</rdf></metadata>",
    "<!-- evil.example --><?evil alert(1)?>",
]


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_parts_of_an_svg_leave_nothing_but_the_picture(part):
    assert draw(svg(SHAPE + part)) == draw(svg(SHAPE))


@pytest.mark.parametrize("address", ["http://evil.example/x.png", "{file}", "file://{file}", "../{file}", "//x/y.png"])
def test_an_svg_reads_no_file_and_opens_no_address(address, tmp_path):
    file = tmp_path / "private.png"
    file.write_bytes(png())
    image = f'<image width="9" height="9" href="{address.format(file=file)}"/>'
    with pytest.raises(ValueError, match="cannot be drawn"):
        draw(svg(SHAPE + image))


ENTITY = "&a{};"
ENTITIES = "".join(f"<!ENTITY a{number} '{ENTITY.format(number - 1) * 10}'>" for number in range(1, 10))
COPY = '<use href="#g{}"/>'
COPIES = "".join(f'<g id="g{number}">{COPY.format(number - 1) * 10}</g>' for number in range(1, 8))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"<", b"<html/>", b"GIF89a", b"\xff\xfe<\0s\0", svg(SHAPE + "&b;")),
        f'<!DOCTYPE svg [<!ENTITY a0 "aaaaaaaaaa">{ENTITIES}]>'.encode() + svg(f"{SHAPE}<text>&a9;</text>"),
        svg(f'<defs><g id="g0">{SHAPE}</g>{COPIES}</defs>{COPY.format(7)}'),
        svg("<g>" * 20_000 + SHAPE + "</g>" * 20_000),
    ],
)
def test_what_is_no_svg_or_makes_much_of_a_small_file_is_refused(content):
    with pytest.raises(ValueError, match=r"^The (SVG )?file "):
        draw(content)
