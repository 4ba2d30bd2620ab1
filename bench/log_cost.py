"""Measure what the request log costs readers: python -m bench.log_cost [--seconds S] [--rounds N].

Two servers on one core take turns, one with the request log and one without. Each line is the median of the ratios.
"""

import argparse
import os
import shutil
import signal
import statistics
import tempfile
from pathlib import Path

from bench.data import fill
from bench.load import measure_alone, prepare
from bench.servers import RETAINER, start, stop, wait

READS = ("read one", "list 25 with total")
AT_LEAST = 0.97


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=2.0, help="how long each server is measured at a time")
    options.add_argument("--rounds", type=int, default=9, help="how often each server is measured")
    given = options.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    servers = []
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "retainer.db"
        keys = fill(database)
        try:
            for name, days in (("with", 30), ("without", 0)):
                place = Path(folder) / name
                place.mkdir()
                command = ["env", f"RETAINER_REQUEST_LOG_DAYS={days}", *RETAINER]
                servers.append(start(name, command, Path(shutil.copy(database, place)), cores[0]))
                wait(servers[-1])
                servers[-1].requests = prepare(keys)
                os.killpg(servers[-1].process.pid, signal.SIGSTOP)
            print(f"{'with the log / without':<24}{'requests/s':>12}{'at least':>10}{'CPU/request':>13}")
            for scenario in READS:
                rates, costs = [], []
                for _ in range(given.rounds):
                    logged, unlogged = (measure_alone(server, scenario, given.seconds) for server in servers)
                    rates.append(logged.rate / unlogged.rate)
                    costs.append(logged.server / logged.answered * unlogged.answered / unlogged.server)
                print(f"{scenario:<24}{statistics.median(rates):>12.3f}{AT_LEAST:>10}{statistics.median(costs):>13.3f}")
        finally:
            for server in servers:
                stop(server)


if __name__ == "__main__":
    main()
