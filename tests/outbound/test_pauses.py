"""The pauses of a background loop after failures."""

import asyncio
from types import SimpleNamespace

import pytest

from retainer.background import MAX_PAUSE
from retainer.outbound import loop
from retainer.outbound.loop import BackgroundLoop
from retainer.store.engines.base import AccountPaused

FAILS, WORKS = True, False


class Loop(BackgroundLoop):
    """Takes its turns on a clock of its own, which goes on while it sleeps; each turn fails, or not, as it is told."""

    name, task = "loop", "taking turns"
    leases = None

    def __init__(self, api, script):
        super().__init__(api.store, lambda *_: None)
        self.script, self.now, self.turns = list(script), 0.0, []

    def refresh(self): ...

    async def serve(self, work): ...

    async def _turn(self, *_, once):  # noqa: ARG002
        self.turns.append(self.now)
        if len(self.turns) == len(self.script):
            self.stopped.set()
        if self.script[len(self.turns) - 1] is FAILS:
            raise ValueError("broken")

    async def sleep(self, seconds):
        self.now += seconds


def pauses(api, monkeypatch, script):
    """The whole seconds between the turns of a loop."""
    told = Loop(api, script)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: told.now))
    monkeypatch.setattr(loop, "asyncio", SimpleNamespace(sleep=told.sleep))
    asyncio.run(told._run(once=False))  # noqa: SLF001
    return [int(after - before) for before, after in zip(told.turns, told.turns[1:], strict=False)]


def test_the_pause_of_a_loop_doubles_with_each_failure_and_a_success_ends_that(api, monkeypatch):
    assert pauses(api, monkeypatch, [FAILS, FAILS, FAILS, WORKS, FAILS, WORKS]) == [1, 2, 4, 0, 1]


def test_the_pause_of_a_loop_has_a_maximum(api, monkeypatch):
    assert pauses(api, monkeypatch, [FAILS] * 8) == [1, 2, 4, 8, 16, MAX_PAUSE, MAX_PAUSE]


def test_work_that_is_refused_while_its_account_pauses_is_done_after_that(api, monkeypatch):
    """It would wait for the end of its lease, ten minutes for a message, each time that its account writes much."""
    refused = [AccountPaused("paused", 1) for _ in range(3)]

    def action():
        if refused:
            raise refused.pop()
        return "done"

    assert asyncio.run(Loop(api, []).in_database(action)) == "done"
    refused += [AccountPaused("paused", 1)] * 9
    monkeypatch.setattr(loop, "PAUSE_SECONDS", 0)
    with pytest.raises(AccountPaused):
        asyncio.run(Loop(api, []).in_database(action))
