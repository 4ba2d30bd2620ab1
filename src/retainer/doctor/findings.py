"""Findings of the doctor, and the outcome of each check."""

from collections.abc import Iterable
from typing import Literal

import msgspec

MAX_FOUND = 20
"""Findings of a check that are named; the others are counted."""
Result = Literal["ok", "wrong", "not checked"]


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong, with the account and the record it was found in, like `invoice 12`."""

    what: str
    record: str | None = None
    account_id: int | None = None

    def __str__(self) -> str:
        account = "" if self.account_id is None else f"account {self.account_id}"
        return ": ".join(filter(None, (", ".join(filter(None, (account, self.record))), self.what)))


class Outcome(msgspec.Struct):
    check: str
    result: Result = "ok"
    found: list[Finding] = []
    count: int = 0
    reason: str | None = None
    """Why it was not checked, or not everywhere."""
    note: str | None = None
    """What an operator should know, although nothing is wrong."""
    repaired: list[str] = []

    def add(self, findings: Iterable[Finding]) -> int:
        """Add findings, of which the first are kept; return how many there were."""
        before = self.count
        for finding in findings:
            self.count += 1
            if len(self.found) < MAX_FOUND:
                self.found.append(finding)
        if self.count:
            self.result = "wrong"
        return self.count - before

    def lines(self) -> list[str]:
        """Return in a line each what was found, and why something was not checked."""
        found = [f"{self.check}: {finding}" for finding in self.found]
        if self.count > len(self.found):
            found.append(f"{self.check}: {self.count - len(self.found)} more")
        return found + ([f"{self.check}: not checked: {self.reason}"] if self.reason else [])

    def skip(self, reason: str) -> None:
        """Note why something was not checked; what was found stays wrong."""
        self.reason = self.reason or reason
        if self.result == "ok":
            self.result = "not checked"


def overall(outcomes: Iterable[Outcome]) -> Result:
    """Return `ok` only if all was checked and holds."""
    results = {outcome.result for outcome in outcomes}
    return "wrong" if "wrong" in results else "not checked" if "not checked" in results else "ok"
