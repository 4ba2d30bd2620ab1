"""A release has what a server needs, and its list of parts says what that is."""

import platform
import re
import subprocess
import sys
import tarfile

import pytest
from tools import sbom

from tests.deploy.programs import ROOT


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The names of the files in the source of a release, without its folder."""
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.mark.parametrize("page", ["install.md", "upgrade.md"])
def test_the_source_of_a_release_has_each_file_that_its_pages_name(source, page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:deploy|requirements)/[\w.-]+\w", text))
    assert named
    assert named <= source
    assert f"docs/{page}" in source


def test_the_image_can_be_built_from_the_source_of_a_release(source):
    copied = re.findall(r"(?m)^COPY (?!--from)(.+) \./", (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8"))
    assert copied
    for name in " ".join(copied).split():
        assert [file for file in source if file == name or file.startswith(f"{name}/")], name


def part(name, **more):
    return {"name": name, "bom-ref": name, "version": "1", "licenses": [{"license": {"id": "MIT"}}], **more}


def installed(*parts):
    """What is found to be installed: these parts, and all else that a server needs."""
    listed = {each["name"] for each in parts}
    rest = [part(name) for name in sbom.served() if name not in listed]
    depends = [{"ref": "typer", "dependsOn": ["rich", "pytest"]}, {"ref": "pytest", "dependsOn": []}]
    metadata = {"component": {"bom-ref": "root-component"}}
    return {"components": [*rest, *parts], "dependencies": depends, "metadata": metadata}


def test_the_list_of_parts_has_what_a_server_installs_and_its_interpreter():
    found = sbom.parts(installed(part("pytest"), part("pip")))
    names = {each["name"] for each in found["components"]}
    assert {"typer", "fontpkg-source-sans-3", "noto-cjk-sans-otc", platform.python_implementation()} <= names
    assert not names & {"pytest", "pip", "colorama"}
    assert found["dependencies"] == [{"ref": "typer", "dependsOn": ["rich"]}]
    assert all(each["licenses"] for each in found["components"])


def test_a_part_without_a_licence_or_one_that_is_not_installed_ends_the_list():
    with pytest.raises(SystemExit, match=r"Without a licence: \['typer'\]"):
        sbom.parts(installed({"name": "typer", "bom-ref": "typer"}))
    lacking = installed()
    lacking["components"] = [each for each in lacking["components"] if each["name"] != "rich"]
    with pytest.raises(SystemExit, match=r"Not installed: \['rich'\]"):
        sbom.parts(lacking)
