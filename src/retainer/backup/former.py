"""Backups as they were first delivered: a compressed tar, with a manifest before the database."""

import hashlib
import tarfile
from pathlib import Path

import msgspec

from retainer.backup import CHUNK, BackupError
from retainer.store.engines.files import private
from retainer.values.decoding import decoder

MANIFEST, DATABASE = "manifest.json", "retainer.db"


class Manifest(msgspec.Struct, frozen=True):
    made_at: str
    sha256: str


def is_former(unpacked: Path) -> bool:
    with unpacked.open("rb") as file:
        return file.read(len(MANIFEST) + 1) == f"{MANIFEST}\0".encode()


def unwrap(unpacked: Path, file: Path) -> str:
    """Replace a tar by the database in it; return its moment. Raises BackupError if a byte was changed."""
    wrapped = unpacked.rename(unpacked.with_suffix(".tar"))
    checksum = hashlib.sha256()
    try:
        with tarfile.open(wrapped, "r:") as tar, open(unpacked, "xb", opener=private) as target:
            manifest = decoder(Manifest)((_member(tar, MANIFEST)).read())
            content = _member(tar, DATABASE)
            while chunk := content.read(CHUNK):
                checksum.update(chunk)
                target.write(chunk)
    except (tarfile.TarError, KeyError, msgspec.DecodeError) as error:
        raise _damaged(file, str(error)) from None
    wrapped.unlink()
    if checksum.hexdigest() != manifest.sha256:
        raise _damaged(file, "its database does not match its manifest")
    return manifest.made_at


def _member(tar: tarfile.TarFile, name: str) -> tarfile.ExFileObject:
    found = tar.extractfile(name)
    if found is None:
        raise KeyError(f"{name} is no file")
    return found  # type: ignore[return-value]  # which extractfile returns for a file


def _damaged(file: Path, reason: str) -> BackupError:
    return BackupError(f"{file} is damaged: {reason}. Take another backup, or fetch this one again.")
