"""Measure a start on a migrated database: python -m bench.startup [--times N].

Prints the seconds to the first answer (median), and the memory of all its processes together.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from testing.process import running, with_database

from bench.servers import megabytes

SLOW_SECONDS, LARGE_MEGABYTES = 2.0, 150


def measure(folder: Path) -> tuple[float, int, float, float]:
    began = time.monotonic()
    with running(folder) as server:
        seconds = time.monotonic() - began
        found = [megabytes(pid) for pid in server.processes()]
        return seconds, len(found), sum(each["Rss"] for each in found), sum(each["Pss"] for each in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as name:
        folder = with_database(Path(name))
        found = [measure(folder) for _ in range(times)]
    seconds, processes, rss, pss = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"first answer after {seconds:.2f} s (median of {times}){', slow' if seconds > SLOW_SECONDS else ''}")
    print(f"{processes:.0f} processes: RSS {rss:.0f} MB{', large' if rss > LARGE_MEGABYTES else ''}, PSS {pss:.0f} MB")


if __name__ == "__main__":
    main()
