"""Typesetting: typst with the fonts of documents. Texts reach a template as JSON strings, which are never markup.

Fonts come from a package, not from the system, so the same data and the same version of `typst` give the same bytes.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal

import typst

from retainer.documents.printable import FILES

TEMPLATES = Path(__file__).parent / "templates"
"""The only folder that typst can read. It has no images, which an SVG could name."""


def typeset(
    template: str, data: Mapping[str, object], form: Literal["pdf", "png"], issued: datetime | None = None
) -> bytes:
    """Return a template with its data as PDF/A-3a, or as PNG with a pixel for each point. Raises TypstError.

    `issued` is the date in the metadata of the PDF.
    """
    compiler = typst.Compiler(
        TEMPLATES.joinpath(template).read_bytes(),
        root=str(TEMPLATES),
        font_paths=_fonts(),
        ignore_system_fonts=True,
        sys_inputs={"data": json.dumps(data)},
    )
    made = compiler.compile(format=form, ppi=72, pdf_standards=["a-3a"], timestamp=issued)
    if not isinstance(made, bytes):
        raise TypeError("typst wrote no file, or several.")
    return made


@cache
def _fonts() -> typst.Fonts:
    folders = [str(paths[0].parent) for paths in FILES.values()]
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=folders)
