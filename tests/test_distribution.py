import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
from pathlib import Path

import pytest
from testing.ports import free_port
from testing.process import until

from retainer import __version__
from tests.length import only_full

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """A folder with the wheel and the source distribution; the wheel is built from the latter."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    built = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """The command of an environment that holds the wheel, and its dependencies from here."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    (wheel,) = distributions.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True, timeout=120)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "retainer"


def environment(folder):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RETAINER_", "PYTHON"))}
    return kept | {"RETAINER_DATA_DIR": str(folder / "data")}


def said(installed, folder, *arguments):
    done = subprocess.run(
        [installed, *arguments],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@only_full
def test_the_wheel_has_the_command_in_its_version(installed, tmp_path):
    assert said(installed, tmp_path, "--version") == f"retainer {__version__}\n"


@only_full
def test_the_document_of_the_wheel_is_that_of_the_repository(installed, tmp_path):
    is_same = json.loads(said(installed, tmp_path, "openapi")) == json.loads((ROOT / "openapi.json").read_text())
    assert is_same, "run make openapi"


@only_full
def test_a_server_from_the_wheel_answers_with_its_templates_and_assets(installed, tmp_path):
    port = free_port()

    def get(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return response.read().decode()

    def answers():
        assert server.poll() is None
        try:
            return get("/livez")
        except OSError:
            return None

    command = [installed, "serve", "--port", str(port), "--no-monitor"]
    server = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(answers, "the server answers")
        for path in ("/docs", "/docs/changelog", "/console/sign-in", "/openapi.yaml", "/llms.txt"):
            assert get(path)
        page = get("/docs")
        styles = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert styles.endswith(".css")
        assert "font-family" in get(styles)
    finally:
        server.terminate()
        assert server.wait(timeout=30) == 0


def test_the_source_distribution_holds_what_the_wheel_and_a_server_need_and_no_more(distributions):
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        names = {name.partition("/")[2].partition("/")[0] for name in source.getnames()}
    built_from = {"src", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"}
    assert names - {".gitignore", "PKG-INFO"} == built_from | {"deploy", "docs", "requirements"}
