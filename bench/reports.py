"""Measure how the reports slow down as an account grows: python -m bench.reports."""

import itertools
import statistics
from datetime import UTC, datetime, timedelta

from bench.account import Account
from bench.depth import Medians, Streams, compare
from bench.servers import Server, request

NAMES = ("overview", "revenue-by-client", "revenue-by-month", "utilisation", "project-profitability")
YEAR_MS, ALWAYS_MS = 50, 150
MAX_DAYS = 1095  # days before today


def asked(made: Account, _: Server) -> Streams:
    """An endless stream of requests for each report: of years, one of them past, and of as long as it takes."""
    today = datetime.now(UTC).date()
    months, past = today.replace(day=1) - timedelta(days=330), f"{today.year - 1}"
    days = {
        "12 months": f"from={months.replace(day=1)}",
        "365 days": f"from={today - timedelta(days=364)}",
        "last year": f"from={past}-01-01&to={past}-12-31",
        "all": f"from={today - timedelta(days=MAX_DAYS)}",
    }
    paths = {f"{name}, {what}": f"/reports/{name}?{query}" for what, query in days.items() for name in NAMES}
    paths[f"{NAMES[-1]}, all"] = f"/reports/{NAMES[-1]}"
    return {what: itertools.cycle([request("GET", path, key) for key in made.keys]) for what, path in paths.items()}


def report(sizes: list[int], found: Medians) -> None:
    line = "{:<34}{:>16}{:>18}{:>10}{:>9}"
    print(line.format("p50 in ms", *(f"{size:,} entries" for size in sizes), "at most", "ratio"))
    for what, rounds in found.items():
        small, large = (statistics.median(column) / 1000 for column in zip(*rounds, strict=True))
        limit = ALWAYS_MS if what.endswith("all") else YEAR_MS
        ratio = statistics.median(large / small for small, large in rounds)
        print(line.format(what, f"{small:.2f}", f"{large:.2f}", limit, f"{ratio:.1f}"))


if __name__ == "__main__":
    report(*compare(__doc__, asked, rounds=9))
