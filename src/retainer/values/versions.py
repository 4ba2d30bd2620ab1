"""Versions: texts by which the versions of software sort as versions, not as words."""

import re

from packaging.version import InvalidVersion, Version

NUMBERS = re.compile(r"[0-9]+(\.[0-9]+)*")
DIGITS = 20
LARGEST = 10**DIGITS - 1
STAGES = {"a": "!1", "b": "!2", "rc": "!3"}  # signs that sort before the dot of a longer version, the final's last
DEVELOPMENT, FINAL, POST = "!0", "#", "$"


def order(version: str) -> str:
    """A text that sorts as the version does: `9.1` before `9.10`, `9.1-beta` before `9.1`, and `9.1.0` the same.

    What is no version by PEP 440 goes by the first numbers in it; without any it is before all others.
    """
    try:
        found = Version(version)
    except InvalidVersion:
        numbers = NUMBERS.search(version)
        found = Version(numbers[0] if numbers else "0")
    release = list(found.release)
    while len(release) > 1 and not release[-1]:
        release.pop()
    if found.pre:
        stage, count = STAGES[found.pre[0]], found.pre[1]
    elif found.dev is not None:
        stage, count = DEVELOPMENT, found.dev
    else:
        stage, count = (FINAL, 0) if found.post is None else (POST, found.post)
    numbers_of = [str(min(part, LARGEST)).zfill(DIGITS) for part in (*release, count)]
    return f"{'.'.join(numbers_of[:-1])}{stage}{numbers_of[-1]}"


def newer(update: str | None, version: str | None) -> bool:
    """Whether an update is offered that is newer than what runs."""
    return update is not None and (version is None or order(update) > order(version))
