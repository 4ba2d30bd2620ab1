"""Generate four clients from the OpenAPI document and test each on a demo: python -m tools.clients.

Needs pip and npm, and the network for the first run. The clients are generated into data/clients, by the versions of
requirements/clients.txt and package-lock.json.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testing.ports import free_port

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "data/clients"
LOCKED = (HERE.parent.parent / "requirements/clients.txt", HERE / "package.json", HERE / "package-lock.json")
MODELS = "--input-file-type openapi --output-model-type pydantic_v2.BaseModel --target-python-version 3.11"
CHECK = "tsc --noEmit --strict --skipLibCheck --target es2022 --module nodenext"
CLIENTS = {
    "openapi-python-client": [
        "openapi-python-client generate --path openapi.json --output-path retainer_client --meta none --overwrite",
        "venv/bin/python python_client.py",
    ],
    "datamodel-codegen": [
        f"datamodel-codegen --no-formatters --input openapi.json {MODELS} --output retainer_models.py",
        "venv/bin/python python_models.py",
    ],
    "openapi-typescript": [
        "openapi-typescript openapi.json --output schema.ts",
        f"{CHECK} typescript.mts",
        "tsx typescript.mts",
    ],
    "@hey-api/openapi-ts": [
        "openapi-ts --input openapi.json --output hey_api",
        f"{CHECK} --moduleResolution bundler --module esnext hey_api.mts",
        "tsx hey_api.mts",
    ],
}
"""For each generator the command that generates, those that check types, and the day."""
LOCAL = (FOLDER / "venv/bin", FOLDER / "node_modules/.bin")


def install() -> None:
    """Install the generators, unless these versions are there."""
    copies = [FOLDER / file.name for file in LOCKED]
    if all(map(same, LOCKED, copies)):
        return
    for each in copies:
        each.unlink(missing_ok=True)
    for file in LOCKED[1:]:
        shutil.copy(file, FOLDER)
    packages = f"venv/bin/python -m pip install --quiet --require-hashes --requirement {LOCKED[0]}"
    beside([f"sh {HERE.parent}/setup.sh {sys.executable} venv", packages], ["npm ci --silent --no-audit --no-fund"])
    shutil.copy(LOCKED[0], FOLDER)  # the last of all, so that what ended halfway begins again


def same(one: Path, other: Path) -> bool:
    return other.exists() and one.read_bytes() == other.read_bytes()


def run(command: str, **environment: str) -> str:
    """Return what a command prints. Raises SystemExit, with that, when it fails."""
    variables = os.environ | {"PATH": ":".join([*map(str, LOCAL), os.environ["PATH"]])} | environment
    done = subprocess.run(
        command.split(), cwd=FOLDER, env=variables, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def beside(*sequences: list[str]) -> None:
    """Run sequences of commands beside each other. Raises SystemExit when one fails."""
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda commands: [run(each) for each in commands], sequences))


def main() -> None:
    """Start a demo, let each client do the day, and recompute the stored totals."""
    install()
    for file in HERE.glob("days/*"):
        shutil.copy(file, FOLDER)
    command = [sys.executable, "-m", "retainer", "demo", "--no-monitor", "--json", "--port", str(free_port())]
    server = subprocess.Popen(
        command,
        env=os.environ | {"RETAINER_DATA_DIR": str(FOLDER)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        demo = json.loads(server.stdout.readline() if server.stdout else "")
        origin = demo["base_url"].partition("/api/")[0]
        with urllib.request.urlopen(f"{origin}/openapi.json", timeout=30) as answer:
            (FOLDER / "openapi.json").write_bytes(answer.read())
        beside(*(generating for *generating, _ in CLIENTS.values()))
        for name, (*_, day) in CLIENTS.items():
            printed = run(day, RETAINER_URL=demo["base_url"], RETAINER_KEY=demo["key"])
            print(f"{name}: {printed.splitlines()[-1]}", flush=True)
    finally:
        server.terminate()
        server.wait(30)
    run(f"{sys.executable} -m retainer doctor", RETAINER_DATABASE_URL=f"sqlite:///{FOLDER}/demo.db")
    print("doctor: all stored totals are right")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    main()
