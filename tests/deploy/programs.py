"""The files in deploy/ and the programs that read them."""

import subprocess
from pathlib import Path
from typing import Any

from tests.skips import find_program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def run(name: str, *arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; its output is that of both streams."""
    return subprocess.run(
        [find_program(name), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        **more,
    )


def sample(name: str, *replacements: tuple[str, str]) -> str:
    """Return the text of a file in deploy/, with what a test must replace; each replaced text must be there."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    return text
