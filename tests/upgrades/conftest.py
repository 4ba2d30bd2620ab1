"""Fixtures: databases of former deliveries, as they were delivered."""

from pathlib import Path

import pytest

from tests.upgrades.former import Former, create


@pytest.fixture
def url(former: Former, kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of a former database."""
    return create(former, kind, tmp_path, request)
