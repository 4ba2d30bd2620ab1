"""How long the random tests are: in full when RETAINER_TEST_LENGTH is `full`, else about a fifth of it."""

import os

CHOSEN = os.environ.get("RETAINER_TEST_LENGTH", "short")
assert CHOSEN in {"short", "full"}, f"RETAINER_TEST_LENGTH is short or full, not {CHOSEN}."
IS_FULL = CHOSEN == "full"


def length(full: int) -> int:
    """How often something is done that is done so often at full length."""
    return full if IS_FULL else max(1, full // 5)
