"""A builder for deploy/Dockerfile without containers: the root of each stage is a folder."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

IMAGE_PATH = re.compile(r"(?<![\w.])/(?=(?:opt|src|var/lib)\b)")
"""Paths that the Dockerfile creates; all others are those of the host."""


@dataclass
class Stage:
    """A stage of the build: its root, and what its instructions have set."""

    root: Path
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def inside(self, text: str) -> str:
        """Return a text with the paths of the image in the root of the stage."""
        return IMAGE_PATH.sub(f"{self.root}/", text)

    def variables(self) -> dict[str, str]:
        """Return the environment of a command in the image."""
        return {name: self.inside(value) for name, value in self.environment.items()}


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, each with what follows its name."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ").splitlines()
    pairs = (line.partition(" ") for line in lines if line.strip())
    return [(name, rest.strip()) for name, _, rest in pairs]


def build(text: str, context: Path, folder: Path) -> Stage:
    """Run all instructions of a Dockerfile in a clean environment; return its last stage.

    `python` and `pip` are those of this interpreter.
    """
    stages: dict[str, Stage] = {}
    stage = Stage(folder)
    programs = folder / "programs"
    programs.mkdir(parents=True)
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name, words in (("python", f'{base} "$@"'), ("pip", f'{sys.executable} -m pip "$@"')):
        (programs / name).write_text(f"#!/bin/sh\nexec {words}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    for name, rest in instructions(text):
        if name == "FROM":
            stage = Stage(folder / f"stage{len(stages)}")
            stage.root.mkdir()
            stages[rest.partition(" AS ")[2]] = stage
        elif name == "WORKDIR":
            stage.folder = rest
            Path(stage.inside(rest)).mkdir(parents=True)
        elif name == "COPY":
            copy(stage, rest, context, stages)
        elif name == "RUN":
            path = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(Path.home())}
            pip = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
            subprocess.run(
                ["sh", "-euc", stage.inside(rest)],
                cwd=stage.inside(stage.folder),
                env=path | pip | stage.variables(),
                check=True,
                timeout=300,
            )
        elif name == "ENV":
            stage.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        else:
            stage.settings[name] = rest
    for other in stages.values():
        if other is not stage:
            shutil.rmtree(other.root)
    return stage


def copy(stage: Stage, rest: str, context: Path, stages: dict[str, Stage]) -> None:
    """Copy files of the context or of another stage; owners are ignored."""
    words = rest.split()
    options = dict(word[2:].split("=") for word in words if word.startswith("--"))
    *sources, target = (word for word in words if not word.startswith("--"))
    origin = stages[options["from"]].root if "from" in options else context
    destination = Path(stage.inside(target) if target.startswith("/") else Path(stage.inside(stage.folder)) / target)
    for source in sources:
        path = origin / source.lstrip("/")
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, destination, symlinks=True, ignore=None if "from" in options else ignored)
        else:
            shutil.copy2(path, destination / path.name)
    if "from" in options:
        for script in destination.glob(
            "bin/*"
        ):  # its first line names an interpreter: in an image both have the same path
            if not script.is_symlink():
                script.write_bytes(script.read_bytes().replace(bytes(origin), bytes(stage.root)))


def command(stage: Stage, name: str) -> list[str]:
    """Return the words of an instruction like CMD, a list in JSON."""
    words: list[str] = json.loads(stage.settings[name][stage.settings[name].index("[") :])
    return words
