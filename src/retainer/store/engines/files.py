"""Files and folders that are for their owner alone, and what kind of disk they lie on."""

import os
import re
from pathlib import Path

NETWORK_FILE_SYSTEMS = re.compile(r"nfs\d?|cifs|smb\w*|9p|fuse\.sshfs|ceph|glusterfs")


def private(name: str, flags: int) -> int:
    """Open a file; if it is created, only its owner may read and write it."""
    return os.open(name, flags, 0o600)


def make_private(folder: Path) -> None:
    """Make a folder and those above it, where they are missing."""
    for each in [*reversed(folder.parents), folder]:
        each.mkdir(mode=0o700, exist_ok=True)


def file_system(folder: Path) -> str:
    """Return the kind of file system in which a folder lies, like `ext4`; `unknown` when the system does not say."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    lines = [line.split()[1:3] for line in mounts.read_text(encoding="utf-8").splitlines()]
    parents = [(len(mount_point), kind) for mount_point, kind in lines if folder.is_relative_to(mount_point)]
    return max(parents, default=(0, "unknown"))[1]
