"""Images that tenants upload: PNG and SVG, reduced to what documents show."""

from typing import NamedTuple

from retainer.values.png import SIGNATURE, clean_png
from retainer.values.svg import clean_svg


class Image(NamedTuple):
    """A harmless image: `image/png` or `image/svg+xml`."""

    media_type: str
    content: bytes


def clean_image(content: bytes) -> Image:
    """Return the harmless parts of a file. Raises ValueError with a sentence if it is no image, or damaged."""
    if content.startswith(SIGNATURE):
        return Image("image/png", clean_png(content))
    if b"<" in content[:100]:
        return Image("image/svg+xml", clean_svg(content))
    raise ValueError("The file is neither a PNG nor an SVG image.")
