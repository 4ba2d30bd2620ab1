"""Downloads: a copy is made once, and stays as long as somebody reads it."""

from pathlib import Path

import pytest

from retainer.kernel import downloads
from retainer.kernel.downloads import Download, Downloads, inode_of


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """Copies that are kept no longer than they are read."""
    monkeypatch.setattr(downloads, "KEPT_SECONDS", -1)
    made, kept = [], Downloads()

    def get(content):
        def copy():
            made.append(content)
            return Download([content[:3], content[3:]], tmp_path)

        return kept.get(1, str(content), copy)

    get.made, get.kept = made, kept
    return get


def test_all_clients_of_a_file_share_a_copy_without_a_name(copies, tmp_path):
    first, again, other = copies(b"contract"), copies(b"contract"), copies(b"receipt")
    assert first is again is not other
    assert copies.made == [b"contract", b"receipt"]
    assert (Path(first.path).read_bytes(), Path(other.path).read_bytes()) == (b"contract", b"receipt")
    assert [*tmp_path.iterdir()] == []


def test_a_copy_is_closed_when_nobody_reads_it_any_more(copies):
    path = copies(b"photo").path
    with Path(path).open("rb") as reader:  # as the HTTP server does
        copies.kept.close_unused()
        copies(b"photo")
        assert copies.made == [b"photo"]
        inode = inode_of(reader.fileno())
    copies.kept.close_unused()
    assert inode not in {*downloads.open_inodes()}
    copies(b"photo")
    assert copies.made == [b"photo", b"photo"]
