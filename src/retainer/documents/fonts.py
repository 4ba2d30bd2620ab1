"""Fonts of documents, all from packages: one for Latin, Greek and Cyrillic, and those of other scripts."""

from importlib.resources import files
from pathlib import Path

MAIN = "Source Sans 3"
PACKAGES = {
    MAIN: "fontpkg_source_sans_3",
    "Heebo": "fontpkg_heebo",
    "Noto Sans Arabic": "fontpkg_noto_sans_arabic",
    "Noto Sans Thai": "fontpkg_noto_sans_thai",
    "Noto Sans Devanagari": "fontpkg_noto_sans_devanagari",
    "Noto Sans CJK": "noto_cjk_sans_otc",
}
"""The package of each font; a character is printed with the first that has it."""
FILES = {
    name: sorted(path for path in Path(str(files(package))).rglob("*") if path.suffix in {".ttf", ".ttc"})
    for name, package in PACKAGES.items()
}
HAN = {"CN": "SC", "SG": "SC", "TW": "TC", "HK": "HK", "MO": "HK", "KR": "KR"}
"""The forms of Chinese characters by country; elsewhere the Japanese ones."""


def font_names(country: str | None) -> list[str]:
    """Return the names of the fonts as typst knows them, in the order in which a document uses them."""
    *others, han = PACKAGES
    return [*others, f"{han} {HAN.get(country or '', 'JP')}"]
