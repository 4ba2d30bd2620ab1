"""Write the parts of a server, in the form CycloneDX: python -m tools.sbom CYCLONEDX FILE.

The parts are those packages of requirements/run.txt that are installed here, with the licences that their own metadata
states, and the interpreter. CYCLONEDX is the program `cyclonedx-py`. Fonts are packages, too: `fontpkg-...` and
`noto-cjk-sans-otc`.
"""

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
WITHOUT_METADATA = {"pysqlite3": "Zlib", "swagger-ui-py": "Apache-2.0"}
"""Licences that packages state in a form that the list does not read: in a file, or in other words."""
Json = dict[str, Any]


def served() -> set[str]:
    """Return the names of the packages that a server on this system installs."""
    text = (ROOT / "requirements/run.txt").read_text(encoding="utf-8")
    lines = [line.rstrip("\\ ") for line in re.findall(r"(?m)^[\w.-]+==.+$", text)]
    wanted = [Requirement(line) for line in lines]
    return {canonicalize_name(each.name) for each in wanted if each.marker is None or each.marker.evaluate()}


def interpreter() -> Json:
    name, version = platform.python_implementation(), platform.python_version()
    licence = {"license": {"id": "PSF-2.0", "acknowledgement": "declared"}}
    return {"type": "platform", "bom-ref": name, "name": name, "version": version, "licenses": [licence]}


def parts(installed: Json) -> Json:
    """Return the list with only what a server has. Raises SystemExit for a part without a licence, or one missing."""
    names = served()
    kept = [part for part in installed["components"] if canonicalize_name(part["name"]) in names]
    for part in kept:
        known = WITHOUT_METADATA.get(str(canonicalize_name(part["name"])))
        if "licenses" not in part and known:
            part["licenses"] = [{"license": {"id": known, "acknowledgement": "concluded"}}]
    missing = names - {canonicalize_name(part["name"]) for part in kept}
    unlicensed = [part["name"] for part in kept if "licenses" not in part]
    if missing or unlicensed:
        sys.exit(f"Not installed: {sorted(missing)}. Without a licence: {unlicensed}. Install, or look them up.")
    kept.append(interpreter())
    references = {part["bom-ref"] for part in kept} | {installed["metadata"]["component"]["bom-ref"]}
    depends = [
        each | {"dependsOn": [other for other in each.get("dependsOn", ()) if other in references]}
        for each in installed["dependencies"]
        if each["ref"] in references
    ]
    return installed | {"components": kept, "dependencies": depends}


if __name__ == "__main__":
    program, file = sys.argv[1], Path(sys.argv[2])
    words = [program, "environment", "--pyproject", str(ROOT / "pyproject.toml"), sys.executable]
    found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    listed = parts(found)
    file.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    print(f"{len(listed['components'])} parts written to {file}")
