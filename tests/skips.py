"""What a run may leave out: tests of what RETAINER_TEST_WITHOUT names. Any other skipped test is a failure."""

import os
import shutil
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tests.length import IS_FULL, ONLY_FULL

KINDS = {
    "browser": "the programs of `make browser`",
    "deploy": "the programs of `make deploy`",
    "clients": "generated clients in .ci/run",
    "cluster": "a cluster in .ci/run",
    "former": "databases of former deliveries",
    "root": "mounts, owners and immutable files",
    "ipv6": "IPv6",
}
WITHOUT = {name.strip() for name in os.environ.get("RETAINER_TEST_WITHOUT", "").split(",") if name.strip()}
UNKNOWN = WITHOUT - KINDS.keys()
assert not UNKNOWN, f"RETAINER_TEST_WITHOUT may name {', '.join(KINDS)}, not {', '.join(UNKNOWN)}."
ASKED = "without {}: RETAINER_TEST_WITHOUT leaves out {}"
EXPECTED = {ASKED.format(name, KINDS[name]) for name in WITHOUT} | ({ONLY_FULL} if not IS_FULL else set())


def require(kind: str, found: object, missing: str) -> None:
    """Skip a test that needs something of a kind that RETAINER_TEST_WITHOUT names; else fail it unless that was found.

    `missing` says what is not there, and how to get it.
    """
    if kind in WITHOUT:
        pytest.skip(ASKED.format(kind, KINDS[kind]))
    if not found:
        pytest.fail(f"{missing} To leave out such tests, set RETAINER_TEST_WITHOUT={kind}.", pytrace=False)


def find_program(name: str) -> str:
    """Return the path of a program that `make deploy` installs."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    require("deploy", path, f"There is no {name}: run `make deploy`, or install it.")
    return path or name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    return _checked((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return _checked((yield))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """End a run with the number of skipped tests for each reason."""
    if not terminalreporter.config.option.collectonly:
        counts = Counter(map(_reason_of, terminalreporter.stats.get("skipped", ())))
        lines = [f"skipped: {count} {reason}" for reason, count in sorted(counts.items())]
        terminalreporter.write_line("\n".join(lines or ["skipped: nothing"]))


def _checked(report: Any) -> Any:
    """Return the report of a test or a file; it has failed if it was skipped for a reason that nobody asked for."""
    if report.skipped and _reason_of(report) not in EXPECTED:
        report.outcome = "failed"
        report.longrepr = f"Skipped, which nobody asked for: {_reason_of(report)}"
    return report


def _reason_of(report: Any) -> str:
    return str(report.longrepr[-1]).removeprefix("Skipped: ")
