"""Versions: sort keys of software versions, in the order of PEP 440."""

import re
from typing import Annotated

from packaging import version as pep440

from retainer.values.kinds import kind

NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")
MAX_LENGTH = 50
DIGITS = 20
MAX_PART = 10**DIGITS - 1
STAGES = {"a": "!1", "b": "!2", "rc": "!3"}  # 9.1 sorts as: these, FINAL, POST, then 9.1.1
DEVELOPMENT, FINAL, POST = "!0", "#", "$"


def read_version(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_LENGTH or not NUMBERS.search(value):
        raise ValueError
    return value


Version = Annotated[
    str, kind(read_version, "a version with a number, like 9.1", maxLength=MAX_LENGTH, examples=["9.1"])
]


def order(version: str) -> str:
    """Return the sort key of a version: `9.1` before `9.10`, `9.1-beta` before `9.1`, and `9.1.0` equal to `9.1`.

    A text that is not a version sorts by the first numbers in it; without numbers it sorts first.
    """
    try:
        parsed = pep440.Version(version)
    except pep440.InvalidVersion:
        numbers = NUMBERS.search(version)
        parsed = pep440.Version(numbers[0] if numbers else "0")
    release = list(parsed.release)
    while len(release) > 1 and not release[-1]:
        release.pop()
    if parsed.pre:
        stage, count = STAGES[parsed.pre[0]], parsed.pre[1]
    elif parsed.dev is not None:
        stage, count = DEVELOPMENT, parsed.dev
    else:
        stage, count = (FINAL, 0) if parsed.post is None else (POST, parsed.post)
    padded = [str(min(part, MAX_PART)).zfill(DIGITS) for part in (*release, count)]
    return f"{'.'.join(padded[:-1])}{stage}{padded[-1]}"


def newer(update: str | None, version: str | None) -> bool:
    return update is not None and (version is None or order(update) > order(version))
