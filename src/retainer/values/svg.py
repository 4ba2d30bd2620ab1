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
MAX_SHEET, MAX_STYLES = 32 * 1024, 1024 * 1024
"""Characters of the style sheet, and of all attributes that it gives to elements."""
MAX_NAMESPACE, BLOCK = 256, 4096
"""Characters of the name of a namespace, and those that are parsed at a time."""
CLASS = re.compile(r"\.([A-Za-z_][\w-]*)")
LOCAL = re.compile(r"#[A-Za-z_][\w.-]*")
LOCAL_URL = re.compile(r"""url\(\s*(["']?)#[A-Za-z_][\w.-]*\1\s*\)""")

Styles = dict[str, str]
Classes = dict[str, Styles]


class Builder(ET.TreeBuilder):
    """Builds the tree, and stops at a long namespace: the parser repeats its name in that of each element."""

    def start_ns(self, _: str, uri: str) -> None:
        """Raise ValueError for a long name."""
        if len(uri) > MAX_NAMESPACE:
            raise ValueError("The SVG file has a namespace with a very long name. Export it as plain SVG.")


def clean_svg(content: bytes) -> bytes:
    """Return an SVG with harmless parts only. Raises ValueError with a sentence if nothing useful is left of it."""
    root = parse(content)
    elements = list(root.iter())
    if len(elements) > MAX_ELEMENTS:
        raise ValueError(f"The SVG file has more than {MAX_ELEMENTS} elements. Simplify it, or use a PNG.")
    classes = read_classes(" ".join(each.text or "" for each in elements if each.tag == f"{{{SVG}}}style"))
    sizes = {name: sum(map(len, (*styles, *styles.values()))) for name, styles in classes.items()}
    if sum(sizes.get(name, 0) for each in elements for name in classes_of(each)) > MAX_STYLES:
        raise ValueError("The styles of the SVG file are too long. Simplify it, or use a PNG.")
    cleaned = clean_element(root, classes, 0, is_clip=False)
    if not any(each.tag in SHAPES for each in cleaned.iter()):
        raise ValueError("The SVG file has no shapes that documents can show. Use a PNG.")
    if "viewBox" not in cleaned.attrib and not {"width", "height"} <= cleaned.attrib.keys():
        raise ValueError("The SVG file has neither a viewBox nor a width and height. Export it with one.")
    cleaned.set("xmlns", SVG)
    written: bytes = ET.tostring(cleaned, encoding="utf-8")
    return written


def parse(content: bytes) -> ET.Element:
    """Return the root of an SVG file. Raises ValueError with a sentence for anything else.

    Declarations of entities and of default attributes are refused, because they make much of a small file.
    """
    try:
        text = content.decode("utf-8-sig")
        if "<!ENTITY" in text or "<!ATTLIST" in text:
            raise ValueError("The SVG file declares entities. Export it as plain SVG.")
        parser = ET.XMLParser(target=Builder())  # noqa: S314
        for at in range(0, len(text), BLOCK):
            parser.feed(text[at : at + BLOCK])
        root = parser.close()
    except (UnicodeDecodeError, ET.ParseError):
        raise ValueError("The SVG file cannot be read. Export it again, as UTF-8.") from None
    if root.tag != f"{{{SVG}}}svg":
        raise ValueError("The file is XML, but not an SVG image.")
    return root


def read_classes(sheet: str) -> Classes:
    """Return the styles of each class of a style sheet; other selectors are ignored. Raises ValueError if it is long.

    The text is split and not searched: a pattern for rules would look for the end of each from every character.
    """
    if len(sheet) > MAX_SHEET:
        raise ValueError(f"The style sheet of the SVG file is longer than {MAX_SHEET // 1024} KB. Simplify it.")
    first, *others = sheet.split("/*")
    classes: Classes = {}
    for rule in "".join([first, *(other.partition("*/")[2] for other in others)]).split("}"):
        heads, _, declarations = rule.rpartition("{")
        styles = read_styles(declarations)
        for selector in heads.rpartition("{")[2].split(","):  # a rule of @media has two braces
            if found := CLASS.fullmatch(selector.strip()):
                classes.setdefault(found[1], {}).update(styles)
    return classes


def read_styles(text: str) -> Styles:
    """Return the declarations of a style that may pass."""
    pairs = (declaration.partition(":") for declaration in text.split(";"))
    styles = {name.strip(): value.strip() for name, _, value in pairs}
    return {name: value for name, value in styles.items() if name in STYLES and is_harmless(name, value)}


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
        if not (is_clip and key == "clip-path"):
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
    """Yield the harmless attributes of an element, then those of its classes and its style, which take precedence."""
    yield from ((name, value) for name, value in element.attrib.items() if is_harmless(name, value))
    for name in classes_of(element):
        yield from classes.get(name, {}).items()
    yield from read_styles(element.get("style", "")).items()


def classes_of(element: ET.Element) -> dict[str, None]:
    """Return the names of an element's classes, each once."""
    return dict.fromkeys(element.get("class", "").split())


def is_harmless(name: str, value: str) -> bool:
    """Return whether an attribute may pass: one of the list, without references out of the file."""
    rest = LOCAL_URL.sub("", value)
    return name in ATTRIBUTES and not re.search(r"url|\(\s*['\"]|[\\@<&]|:", rest, re.IGNORECASE)


def local_name(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2]
