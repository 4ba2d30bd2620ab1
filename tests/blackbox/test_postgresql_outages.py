"""PostgreSQL fails while callers read and write, and comes back: they are told so at once, and nothing else happens."""

import tempfile
from pathlib import Path

import pytest

from tests.blackbox import outages
from tests.length import first, length

CYCLES = length(2)


@pytest.fixture(scope="module")
def place(fast_disk):
    """A server and its PostgreSQL, which fails in each test and is back after it."""
    with tempfile.TemporaryDirectory(dir=fast_disk) as folder, outages.started(Path(folder)) as place:
        yield place


@pytest.mark.parametrize("kind", first(outages.KINDS))
def test_an_outage_gives_503_loses_nothing_and_ends_with_its_cause(place, kind):
    """Every answer is the expected one or a 503, never a 401 or 404; `outages` judges how long each takes."""
    book, cycles = outages.run(*place, [kind], CYCLES)
    assert book.wrong == []
    assert len(cycles) == CYCLES
    for cycle in cycles:
        assert cycle.outcomes[200] > 0
        assert cycle.outcomes[201] > 0
        if kind != "connections ended":
            assert cycle.outcomes[503] > 10 * outages.CALLERS, "who waits to be refused is not refused so often"
