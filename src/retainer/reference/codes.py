"""The explanation of each error code: what it means and what to do."""

import tomllib
from pathlib import Path

TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ADVICE = {code: " ".join(text.split()) for code, text in TEXTS.items()}
"""By code, in the order in which requests are checked."""
