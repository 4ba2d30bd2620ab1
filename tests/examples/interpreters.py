"""Interpreters that run the samples of the reference, all of a language in one process if loading it takes long.

Each sample still has names and modules of its own: one that does not import what it needs, fails.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tests.skips import require

SECONDS = 300
"""Within which all samples of a language must have run."""
PYTHON = """
import contextlib, io, json, sys, traceback

for line in sys.stdin:
    error = ""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(json.loads(line), {"__name__": "__main__"})
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([printed.getvalue(), error]), flush=True)
"""
JAVASCRIPT = """
import { createInterface } from "node:readline";
import { format } from "node:util";

let printed, number = 0;
console.log = (...values) => { printed += format(...values) + "\\n"; };
for await (const line of createInterface({ input: process.stdin })) {
  printed = "";
  let error = "";
  try {
    const module = `${JSON.parse(line)}\\n// sample ${number++}, as a module is loaded once`;
    await import(`data:text/javascript,${encodeURIComponent(module)}`);
  } catch (thrown) {
    error = thrown.stack;
  }
  process.stdout.write(JSON.stringify([printed, error]) + "\\n");
}
"""
COMMANDS = {
    "python": [sys.executable, "-c", PYTHON],
    "javascript": ["node", "--input-type=module", "-e", JAVASCRIPT],
    "bash": ["bash", "-c"],
    "php": ["php", "-r", "eval('?>' . $argv[1]);"],
}
READ_SAMPLES = {"python", "javascript"}
"""The languages whose command reads samples, each a line of JSON; others get one as their last argument."""


class Ran(NamedTuple):
    """What a sample printed, and its error; none if it ran to its end."""

    printed: str
    error: str


def has(language: str) -> bool:
    return shutil.which(COMMANDS[language][0]) is not None


def run_all(language: str, samples: Sequence[str], url: str, key: str) -> list[Ran]:
    """Run samples one after the other, as a reader would. Raises TimeoutExpired."""
    name = COMMANDS[language][0]
    require("browser", has(language), f"{name} is missing: `make browser` installs it.")
    variables = os.environ | {"RETAINER_URL": url, "RETAINER_KEY": key}
    if language not in READ_SAMPLES:
        return [run_alone([*COMMANDS[language], sample], variables) for sample in samples]
    asked = "".join(f"{json.dumps(sample)}\n" for sample in samples)
    done = subprocess.run(
        COMMANDS[language], input=asked, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    ran = [Ran(*json.loads(line)) for line in done.stdout.splitlines()]
    return ran + [Ran("", f"{name} ended before this sample: {done.stderr}")] * (len(samples) - len(ran))


def run_alone(command: list[str], variables: dict[str, str]) -> Ran:
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    return Ran(done.stdout, (done.stderr or f"status {done.returncode}") if done.returncode else "")
