"""A run says what it has left out, and leaves out only what somebody asked for."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.programs import ROOT

HEAD = "import pytest\nfrom tests.length import only_full\nfrom tests.skips import require\n"
ON_A_PAGE = "def test_a(): require('browser', {}, 'There is no Chromium.')\n"
AT_LENGTH = "@only_full\ndef test_b(): pass\n@only_full\ndef test_c(): pass\n"
SKIPS = """
def test_alone(): pytest.skip('no fish')

@pytest.mark.skipif(True, reason='no fish')
def test_by_mark(): pass

@pytest.fixture
def fish(): pytest.skip('no fish')

def test_with_fixture(fish): pass
"""
WHOLE_FILE = "pytest.skip('no fish', allow_module_level=True)\n"


def run(folder: Path, *files: str, length: str = "short", without: str = "") -> list[str]:
    """Run some tests like those here; return the lines of the output."""
    for number, tests in enumerate(files):
        (folder / f"test_{number}.py").write_text(HEAD + tests, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:cacheprovider", "-c", "pyproject.toml"]
    settings = {"RETAINER_TEST_LENGTH": length, "RETAINER_TEST_WITHOUT": without}
    done = subprocess.run(
        [*words, folder], cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    return [re.sub(r" in [\d.]+s.*", "", line) for line in (done.stdout + done.stderr).splitlines()]


@pytest.mark.parametrize(("tests", "end"), [(SKIPS, "1 failed, 2 errors"), (WHOLE_FILE, "1 error")])
def test_a_skip_that_nobody_asked_for_is_a_failure(tmp_path, tests, end):
    lines = run(tmp_path, tests)
    assert "Skipped, which nobody asked for: no fish" in lines
    assert "skipped: nothing" in lines
    assert end in lines


def test_a_run_ends_with_the_number_of_skipped_tests_for_each_reason(tmp_path):
    assert run(tmp_path, AT_LENGTH + ON_A_PAGE.format(False), without="browser, root")[-3:] == [
        "skipped: 2 runs at full length only",
        "skipped: 1 without browser: RETAINER_TEST_WITHOUT leaves out the programs of `make browser`",
        "3 skipped",
    ]
    assert run(tmp_path, AT_LENGTH, length="full")[-2:] == ["skipped: nothing", "2 passed"]


def test_what_is_missing_fails_a_test_unless_the_run_is_without_it(tmp_path):
    lines = run(tmp_path, ON_A_PAGE.format(False), ON_A_PAGE.format(True))
    assert "There is no Chromium. To leave out such tests, set RETAINER_TEST_WITHOUT=browser." in lines
    assert lines[-1] == "1 failed, 1 passed"
    refusal = (
        "AssertionError: RETAINER_TEST_WITHOUT may name "
        "browser, deploy, clients, cluster, former, root, ipv6, not brwoser."
    )
    assert refusal in "\n".join(run(tmp_path, without="brwoser"))


CLUSTER = '[ "$1" = stop ] && echo "stopped $2" || echo \'{"coordinator": 7, "workers": [8, 9]}\''


def continuous(
    root: Path, without: str = "", cluster: str | None = None, failing: str = "none"
) -> tuple[int, list[str]]:
    """Run .ci/run with a `make` that tells its targets and the cluster; return the exit status and the output.

    `cluster` is the script that starts one, beside the repository; `failing` is the target that fails.
    """
    make = 'echo "$@, ${RETAINER_TEST_CLUSTER:-}"; [ "$1" != test ] || echo "skipped: 2 for fun"; [ "$1" != FAILING ]'
    make = make.replace("FAILING", failing)
    scripts = {root / "bin/make": make, root / "shared/cluster/cluster": cluster}
    for path, script in scripts.items():
        if script is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            path.chmod(0o755)
    shutil.copytree(ROOT / ".ci", root / "retainer/.ci", dirs_exist_ok=True)
    settings = {"RETAINER_TEST_WITHOUT": without, "PATH": f"{root / 'bin'}:{os.environ['PATH']}"}
    words = ["bash", str(root / "retainer/.ci/run")]
    done = subprocess.run(words, env=os.environ | settings, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_continuous_integration_fails_without_a_cluster_unless_it_is_asked_to(tmp_path):
    status, lines = continuous(tmp_path)
    assert status == 1
    assert lines[-1].startswith("There is no ../shared/cluster/cluster.")
    assert lines[-1].endswith("set RETAINER_TEST_WITHOUT=cluster.")
    assert continuous(tmp_path, cluster="echo no library >&2; exit 1")[0] != 0
    status, lines = continuous(tmp_path, cluster=CLUSTER)
    assert (status, lines[-2:]) == (0, ["Left out of all runs:", "skipped: 2 for fun"])
    assert "cluster, 127.0.0.1:7,8,9" in lines
    assert "stopped /" in "\n".join(lines)
    status, lines = continuous(tmp_path, without="cluster,clients")
    assert status == 0
    assert {*lines[-3:]} == {
        "skipped: 2 for fun",
        "skipped: 1 run of generated clients: RETAINER_TEST_WITHOUT leaves it out",
        "skipped: 1 run on a cluster: RETAINER_TEST_WITHOUT leaves it out",
    }


@pytest.mark.parametrize("failing", ["sbom", "test", "clients", "cluster"])
def test_continuous_integration_fails_with_each_of_its_runs(tmp_path, failing):
    status, lines = continuous(tmp_path, cluster=CLUSTER, failing=failing)
    assert status
    assert any(line.startswith(f"{failing}") for line in lines)
    assert "Left out of all runs:" not in lines


def test_a_run_on_a_cluster_skips_nothing():
    """What `make cluster` runs in short has no test of full length: files with one run in full there."""
    printed = subprocess.run(["make", "-n", "cluster"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    runs = [line for line in printed.splitlines() if "/pytest" in line]
    short, full = ([ROOT / word for word in line.split() if word.startswith("tests/")] for line in runs)
    assert "RETAINER_TEST_LENGTH=full" in runs[1]
    files = [file for path in short for file in (path.rglob("test_*.py") if path.is_dir() else [path])]
    assert len(files) > 15
    assert [file.name for file in files if "only_full" in file.read_text(encoding="utf-8")] == []
    assert all(file.exists() for file in full)
