"""Logos: damaged and hostile images are refused, or lose what documents must not have."""

import struct
import zlib

import pytest

from retainer.values.png import SIGNATURE, clean_png
from retainer.values.svg import clean_svg


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int = 3, height: int = 2, *more: bytes, interlaced: int = 0, rows: bytes | None = None) -> bytes:
    """An image in RGBA."""
    pixels = rows if rows is not None else (b"\0" + b"\x10\x20\x30\xff" * width) * height
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, interlaced))
    return SIGNATURE + header + b"".join(more) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def test_a_png_keeps_its_picture_and_loses_the_rest():
    whole = png(3, 2, chunk(b"tEXt", b"Author\0Ana"), chunk(b"eXIf", b"place")) + b"<script>"
    assert clean_png(whole) == png()
    assert clean_png(png()) == png()


def test_an_interlaced_png_is_accepted():
    # 3 by 2 pixels: pass 1 has (0, 0), pass 4 has (2, 0), pass 6 has (1, 0), pass 7 the second row
    rows = (b"\0" + b"abcd") * 3 + b"\0" + b"abcd" * 3
    assert clean_png(png(rows=rows, interlaced=1))


@pytest.mark.parametrize(
    "content",
    [
        *(SIGNATURE, png()[:-1], png()[:60], png(0, 1), png(5000, 1)),
        *(png(rows=b"\0" * 7), png(rows=b"\0" * 100_000), png(rows=b"\x05" + b"abcd" * 3 + b"\0" + b"abcd" * 3)),
        png().replace(b"IDAT", b"IDAU"),
        png(3, 2, chunk(b"IHDR", b"")),
    ],
)
def test_a_damaged_png_is_refused(content):
    with pytest.raises(ValueError, match=r"damaged|pixels"):
        clean_png(content)


NAMES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def svg(inner: str, attributes: str = 'viewBox="0 0 10 10"') -> bytes:
    return f"<svg {NAMES} {attributes}>{inner}</svg>".encode()


SHAPE = '<path d="M0 0h10v10z" fill="#4b53d6"/>'


def test_a_plain_svg_keeps_its_shapes():
    gradient = '<linearGradient id="a"><stop offset="0" stop-color="red"/></linearGradient>'
    cleaned = clean_svg(svg(f'<defs>{gradient}</defs><g transform="scale(2)"><rect fill="url(#a)" width="3"/></g>'))
    text = cleaned.decode()
    for part in ("linearGradient", 'id="a"', "stop-color", 'transform="scale(2)"', 'fill="url(#a)"', 'viewBox="0 0'):
        assert part in text
    assert clean_svg(cleaned) == cleaned


def test_styles_become_attributes():
    sheet = "<style>/* a */ .st0, .st1 { fill: #123456; } .st1{stroke:red;behavior:url(x)} path{fill:blue}</style>"
    text = clean_svg(svg(f'{sheet}<path class="st0 st1" d="M0 0" style="opacity:.5;-moz-binding:url(#x)"/>')).decode()
    for part in ('fill="#123456"', 'stroke="red"', 'opacity=".5"'):
        assert part in text
    for part in ("style", "behavior", "binding", "class", "blue"):
        assert part not in text


HOSTILE = [
    "<script>alert(1)</script>",
    "<foreignObject><body onload='alert(1)'/></foreignObject>",
    '<image href="http://evil.example/x.png"/>',
    '<image xlink:href="data:image/svg+xml;base64,PHN2Zz4="/>',
    '<use xlink:href="http://evil.example/x.svg#a"/>',
    '<a xlink:href="javascript:alert(1)"><path d="M0 0"/></a>',
    '<animate attributeName="href" values="javascript:alert(1)"/>',
    '<set attributeName="onload" to="alert(1)"/>',
    '<rect onclick="alert(1)" onload="alert(1)" width="1"/>',
    '<rect fill="url(http://evil.example/x)" width="1"/>',
    '<rect fill="url(  \'http://evil.example/x\' )" width="1"/>',
    '<rect style="fill:url(http://evil.example/x)" width="1"/>',
    '<rect fill="u\\72l(http://evil.example)" width="1"/>',
    '<linearGradient id="b" xlink:href="http://evil.example/x#b"/>',
    "<style>@import 'http://evil.example/x.css'; .a{fill:url(//evil.example)}</style>",
    '<filter><feImage href="http://evil.example"/></filter>',
    '<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>',
    "<metadata><rdf>evil.example</rdf></metadata>",
    "<!-- evil.example --><?evil alert(1)?>",
]


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_parts_of_an_svg_are_dropped(part):
    text = clean_svg(svg(SHAPE + part)).decode()
    assert "M0 0h10v10z" in text
    for word in ("alert", "evil", "javascript", "script", "onload", "import", "data:", "<image", "<use", "<a", "<set"):
        assert word not in text, text


ENTITIES = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"<", b"<html/>", b"<svg/>", svg(""), svg(SHAPE, ""), svg("<script>1</script>"), b"\xff\xfe<\0s\0"),
        *(ENTITIES.encode() + svg(SHAPE + "&b;"), svg(SHAPE + "&b;"), svg("<g>" * 60 + SHAPE + "</g>" * 60)),
        *(svg("<g>" * 20_000 + SHAPE + "</g>" * 20_000), svg(SHAPE * 20_001)),
    ],
)
def test_an_svg_without_a_picture_is_refused(content):
    with pytest.raises(ValueError, match=r"^The (SVG )?file "):
        clean_svg(content)


def test_a_doctype_without_entities_is_accepted():
    doctype = (
        b'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x/svg.dtd">'
    )
    assert clean_svg(doctype + svg(SHAPE)) == clean_svg(svg(SHAPE))


def test_a_clip_path_cannot_be_clipped_itself():
    clip = '<clipPath id="c" clip-path="url(#c)"><rect clip-path="url(#c)" width="1"/></clipPath>'
    text = clean_svg(svg(clip + '<rect clip-path="url(#c)" width="2"/>')).decode()
    assert text.count("clip-path") == 1
