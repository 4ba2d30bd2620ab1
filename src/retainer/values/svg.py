"""SVG images: a new file with the harmless elements and attributes of the original, and nothing else.

Styles become attributes, since a logo from a drawing program has its colours in them. The result has no scripts,
links, external references, animations, embedded images or style sheets.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
ELEMENTS = frozenset({
    *("svg", "g", "defs", "title", "desc", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon"),
    *("linearGradient", "radialGradient", "stop", "clipPath", "text", "tspan"),
})  # fmt: skip
SHAPES = frozenset({"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text"})
STYLES = frozenset({
    *("fill", "fill-opacity", "fill-rule", "clip-path", "clip-rule", "opacity", "color", "display", "visibility"),
    *("stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "stroke-dasharray"),
    *("stroke-dashoffset", "stroke-opacity", "stop-color", "stop-opacity", "font-size", "font-weight", "font-style"),
    *("font-family", "letter-spacing", "text-anchor", "paint-order"),
})  # fmt: skip
ATTRIBUTES = STYLES | {
    *("id", "viewBox", "width", "height", "preserveAspectRatio", "transform", "d", "points", "offset"),
    *("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "fx", "fy", "dx", "dy"),
    *("gradientUnits", "gradientTransform", "spreadMethod", "clipPathUnits"),
}
MAX_DEPTH, MAX_ELEMENTS = 50, 20_000
DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*>")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
CLASS = re.compile(r"\.([A-Za-z_][\w-]*)")
LOCAL = re.compile(r"#[A-Za-z_][\w.-]*")
LOCAL_URL = re.compile(r"""url\(\s*(["']?)#[A-Za-z_][\w.-]*\1\s*\)""")

Styles = dict[str, str]
Classes = dict[str, Styles]


def clean_svg(content: bytes) -> bytes:
    """Return an SVG with harmless parts only. Raises ValueError with a sentence if nothing useful is left of it."""
    try:
        text = content.decode("utf-8-sig")
        plain = DOCTYPE.sub("", text)
        if "<!DOCTYPE" in plain or "<!ENTITY" in plain:
            raise ValueError("The SVG file declares entities. Export it as plain SVG.")
        root = ET.fromstring(plain.partition("?>")[2] if plain.lstrip().startswith("<?xml") else plain)  # noqa: S314
    except (UnicodeDecodeError, ET.ParseError):
        raise ValueError("The SVG file cannot be read. Export it again, as UTF-8.") from None
    if root.tag != f"{{{SVG}}}svg":
        raise ValueError("The file is XML, but not an SVG image.")
    elements = list(root.iter())
    if len(elements) > MAX_ELEMENTS:
        raise ValueError(f"The SVG file has more than {MAX_ELEMENTS} elements. Simplify it, or use a PNG.")
    classes = read_classes(" ".join(each.text or "" for each in elements if each.tag == f"{{{SVG}}}style"))
    cleaned = clean_element(root, classes, 0, is_clip=False)
    if not any(each.tag in SHAPES for each in cleaned.iter()):
        raise ValueError("The SVG file has no shapes that documents can show. Use a PNG.")
    if "viewBox" not in cleaned.attrib and not {"width", "height"} <= cleaned.attrib.keys():
        raise ValueError("The SVG file has neither a viewBox nor a width and height. Export it with one.")
    cleaned.set("xmlns", SVG)
    written: bytes = ET.tostring(cleaned, encoding="utf-8")
    return written


def read_classes(sheet: str) -> Classes:
    """Return the styles of each class of a style sheet; other selectors are ignored."""
    classes: Classes = {}
    for selectors, declarations in RULE.findall(COMMENT.sub("", sheet)):
        for selector in selectors.split(","):
            if found := CLASS.fullmatch(selector.strip()):
                classes.setdefault(found[1], {}).update(read_styles(declarations))
    return classes


def read_styles(text: str) -> Styles:
    """Return the declarations of a style that may pass."""
    pairs = (declaration.partition(":") for declaration in text.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip() in STYLES}


def clean_element(element: ET.Element, classes: Classes, depth: int, *, is_clip: bool) -> ET.Element:
    """Return an element with the attributes and children that may pass. Raises ValueError if it is too deep.

    A clip path loses its own clip path, since a chain of them could make rendering very slow.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"The SVG file nests more than {MAX_DEPTH} elements. Simplify it, or use a PNG.")
    name = local_name(element.tag)
    is_clip = is_clip or name == "clipPath"
    cleaned = ET.Element(name, {})
    for key, value in attributes_of(element, classes):
        if not (is_clip and key == "clip-path") and is_harmless(key, value):
            cleaned.set(key, value)
    reference = element.get(f"{{{XLINK}}}href") or element.get("href") or ""
    if name.endswith("Gradient") and LOCAL.fullmatch(reference):
        cleaned.set("href", reference)
    if name in {"text", "tspan", "title", "desc"}:
        cleaned.text = element.text
    for child in element:
        if isinstance(child.tag, str) and child.tag.startswith(f"{{{SVG}}}") and local_name(child.tag) in ELEMENTS:
            kept = clean_element(child, classes, depth + 1, is_clip=is_clip)
            kept.tail = child.tail if name in {"text", "tspan"} else None
            cleaned.append(kept)
    return cleaned


def attributes_of(element: ET.Element, classes: Classes) -> Iterator[tuple[str, str]]:
    """Yield the attributes of an element, then those of its classes and its style, which take precedence."""
    yield from element.attrib.items()
    for name in element.get("class", "").split():
        yield from classes.get(name, {}).items()
    yield from read_styles(element.get("style", "")).items()


def is_harmless(name: str, value: str) -> bool:
    """Return whether an attribute may pass: one of the list, without references out of the file."""
    rest = LOCAL_URL.sub("", value)
    return name in ATTRIBUTES and not re.search(r"url|\(\s*['\"]|[\\@<&]|:", rest, re.IGNORECASE)


def local_name(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2]
