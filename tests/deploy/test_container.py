"""The container: the steps of its Dockerfile run in empty folders, and its command starts from there."""

import re
import subprocess
from pathlib import Path

import pytest
from testing.ports import free_port
from testing.process import until

from retainer import __version__
from tests.deploy import dockerfile
from tests.deploy.programs import ROOT, sample
from tests.length import only_full


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The last stage, with its dependencies."""
    return dockerfile.build(sample("Dockerfile"), ROOT, tmp_path_factory.mktemp("image"))


def files(stage):
    """Return every file of the image outside its volume, with size and time."""
    volume = stage.settings["VOLUME"].lstrip("/")
    found = (path for path in stage.root.rglob("*") if not path.is_relative_to(stage.root / volume))
    return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in found}


def run(stage, command, **more):
    environment = {"HOME": "/nowhere"} | stage.variables()
    words = [stage.inside(word) for word in command]
    words[0] = next(str(place) for path in environment["PATH"].split(":") if (place := Path(path) / words[0]).exists())
    return subprocess.Popen(words, cwd="/", env=environment, **more)


@only_full
def test_the_image_has_the_command_in_its_version(image):
    process = run(image, [*dockerfile.command(image, "ENTRYPOINT"), "--version"], stdout=subprocess.PIPE, text=True)
    assert process.communicate(timeout=60)[0] == f"retainer {__version__}\n"


@only_full
def test_a_container_becomes_healthy_and_writes_only_into_its_volume(image, tmp_path):
    before, port = files(image), free_port()
    start = [*dockerfile.command(image, "ENTRYPOINT"), *dockerfile.command(image, "CMD")]
    start[start.index("0.0.0.0")] = "127.0.0.1"  # only the container is reached from outside
    check = [word.replace(":8000", f":{port}") for word in dockerfile.command(image, "HEALTHCHECK")]

    def is_healthy():
        assert server.poll() is None, (tmp_path / "output").read_text()
        return run(image, check, stderr=subprocess.DEVNULL).wait(timeout=60) == 0

    with (tmp_path / "output").open("wb") as output:
        server = run(image, [*start, "--port", str(port), "--no-monitor"], stdout=output, stderr=output)
    try:
        until(is_healthy, "the container is healthy")
    finally:
        server.terminate()
        assert server.wait(timeout=30) == 0, (tmp_path / "output").read_text()
    assert run(image, check, stderr=subprocess.DEVNULL).wait(timeout=60) != 0
    assert files(image) == before
    assert (image.root / "var/lib/retainer/retainer.db").exists()


def test_the_container_runs_as_a_user_without_rights():
    (user,) = [rest for name, rest in dockerfile.instructions(sample("Dockerfile")) if name == "USER"]
    assert all(number.isdecimal() and int(number) > 0 for number in user.split(":"))
    copied = [rest for name, rest in dockerfile.instructions(sample("Dockerfile")) if name == "COPY"]
    assert [rest for rest in copied if "--chown" in rest] == [
        f"--from=build --chown={user} /var/lib/retainer /var/lib/retainer"
    ]


def test_every_stage_begins_with_an_image_that_cannot_change():
    images = [rest for name, rest in dockerfile.instructions(sample("Dockerfile")) if name == "FROM"]
    assert len(images) == 2
    assert all(re.match(r"python:[\d.]+-slim@sha256:[0-9a-f]{64}\b", image) for image in images)


def test_the_builder_gets_all_files_that_the_steps_copy():
    allowed = {line[1:] for line in sample("Dockerfile.dockerignore").splitlines() if line.startswith("!")}
    steps = [rest.split()[:-1] for name, rest in dockerfile.instructions(sample("Dockerfile")) if name == "COPY"]
    assert allowed == {source for words in steps if not words[0].startswith("--") for source in words}
