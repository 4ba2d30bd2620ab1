"""Measure a start on a migrated database: python -m bench.startup [--times N].

Prints the seconds to the first answer (median), and the memory of all its processes together.
"""

import argparse
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from testing.ports import free_port

import retainer
from retainer.settings import BASE_PATH

SLOW_SECONDS, LARGE_MEGABYTES = 2.0, 150
SOURCE = Path(retainer.__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "retainer"]


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", BASE_PATH + "/me")
        return connection.getresponse().status == 401
    except OSError:
        return False
    finally:
        connection.close()


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return [pid, *(each for child in children for each in family(int(child)))]


def kilobytes(pid: int, name: str) -> int:
    found = re.search(
        rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8"), re.MULTILINE
    )
    return int(found[1]) if found else 0


def measure(environment: dict[str, str], folder: str) -> tuple[float, int, float, float]:
    port = free_port()
    began = time.monotonic()
    quiet = subprocess.DEVNULL
    command = [*COMMAND, "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=quiet)
    try:
        while not answers(port):
            if process.poll() is not None or time.monotonic() - began > 30:
                sys.exit(f"The server did not start: {process.returncode}")
            time.sleep(0.01)
        seconds = time.monotonic() - began
        processes = family(process.pid)
        rss, pss = (sum(kilobytes(pid, name) for pid in processes) / 1024 for name in ("Rss", "Pss"))
        return seconds, len(processes), rss, pss
    finally:
        process.terminate()
        process.wait(timeout=35)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RETAINER_")}
        environment = inherited | {"PYTHONPATH": str(SOURCE), "RETAINER_DATA_DIR": folder}
        subprocess.run([*COMMAND, "migrate"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        found = [measure(environment, folder) for _ in range(times)]
    seconds, processes, rss, pss = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"first answer after {seconds:.2f} s (median of {times}){', slow' if seconds > SLOW_SECONDS else ''}")
    print(f"{processes:.0f} processes: RSS {rss:.0f} MB{', large' if rss > LARGE_MEGABYTES else ''}, PSS {pss:.0f} MB")


if __name__ == "__main__":
    main()
