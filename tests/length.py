"""The tier of a run. RETAINER_TEST_LENGTH is unit, short, full, or a number: of how many times the full length."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeVar

import pytest

CHOSEN = os.environ.get("RETAINER_TEST_LENGTH", "short")
TIMES = int(CHOSEN) if CHOSEN.isdecimal() else 1
assert CHOSEN in {"unit", "short", "full", str(TIMES)}, f"RETAINER_TEST_LENGTH must not be {CHOSEN}."
Case = TypeVar("Case")
IS_FULL, IS_UNIT = CHOSEN in {"full", str(TIMES)}, CHOSEN == "unit"
TURN = int(os.environ.setdefault("RETAINER_TEST_TURN", str(datetime.now(UTC).toordinal())))
"""Chooses the database of tests that do not depend on it: two days in a row, both. Processes of a run share it."""
ONLY_FULL = "runs at full length only"
only_full = pytest.mark.skipif(not IS_FULL, reason=ONLY_FULL)


def length(full: int) -> int:
    """Return a number of repetitions, given that of a run at full length. The first two tiers have a tenth."""
    return full * TIMES if IS_FULL else max(1, full // 10)


def by_turns(cases: Iterable[Case]) -> list[Case]:
    """Return every other case, on the next day the others. From twice the full length on, all."""
    return list(cases) if TIMES > 1 else list(cases)[TURN % 2 :: 2]


def sampled(cases: Iterable[Case], one_in: int = 5, start: int = 0) -> list[Case]:
    """Return all cases at full length, else every fifth, or as told."""
    return list(cases) if IS_FULL else list(cases)[start % one_in :: one_in]


def first(cases: Iterable[Case]) -> list[Case]:
    """Return all cases at full length, else the first, which stands for them."""
    return list(cases) if IS_FULL else list(cases)[:1]
