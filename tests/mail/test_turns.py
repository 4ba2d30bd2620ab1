"""Turns: accounts share the connections to the mail server, and one whose mail stalls leaves room for the others."""

import asyncio

from retainer.mail.sender import turns
from retainer.mail.sender.turns import MailTurns

TOTAL = 4


class Crowd:
    """Accounts that ask for a connection and hold it until they are told to end."""

    def __init__(self):
        self.turns, self.ends, self.tasks = MailTurns(TOTAL), {}, []
        self.holding = []

    async def ask(self, *accounts):
        """Ask for a connection for each; return who holds one then."""
        self.tasks += [asyncio.create_task(self._hold(each)) for each in accounts]
        return await self.now()

    async def now(self):
        for _ in range(20):
            await asyncio.sleep(0)
        return sorted(self.holding)

    async def end(self, account):
        """End what an account holds longest; return who holds a connection then."""
        self.ends[account].pop(0).set()
        return await self.now()

    async def _hold(self, account):
        async with self.turns.of(account):
            self.holding.append(account)
            self.ends.setdefault(account, []).append(end := asyncio.Event())
            await end.wait()
            self.holding.remove(account)


def of_crowd(scene):
    async def play():
        crowd = Crowd()
        try:
            await scene(crowd)
        finally:
            for task in crowd.tasks:
                task.cancel()
            await asyncio.gather(*crowd.tasks, return_exceptions=True)

    asyncio.run(play())


def test_two_accounts_with_much_mail_leave_a_connection_to_a_third():
    async def scene(crowd):
        assert await crowd.ask(1, 1, 1, 1, 1) == [1, 1], "alone, an account has half"
        assert await crowd.ask(2, 2, 2) == [1, 1, 2]
        assert await crowd.ask(3) == [1, 1, 2, 3]

    of_crowd(scene)


def test_who_waits_comes_before_who_had_a_turn():
    async def scene(crowd):
        await crowd.ask(1, 1, 1, 2, 2, 3, 4, 5)
        assert await crowd.now() == [1, 1, 2, 3]
        assert await crowd.end(1) == [1, 2, 3, 4]
        assert await crowd.end(1) == [2, 3, 4, 5], "not the third message of the first account"

    of_crowd(scene)


def test_slow_accounts_leave_a_connection_until_their_mail_is_fast_again(monkeypatch):
    async def scene(crowd):
        monkeypatch.setattr(turns, "SLOW_SECONDS", -1)
        for account in (1, 2, 3, 4):
            await crowd.ask(account)
            await crowd.end(account)
        monkeypatch.setattr(turns, "SLOW_SECONDS", 60)
        assert await crowd.ask(1, 2, 3, 4) == [1, 2, 3], "each has had its turn, and held it too long"
        assert await crowd.ask(5) == [1, 2, 3, 5]
        assert await crowd.end(5) == [1, 2, 3]
        assert await crowd.end(3) == [1, 2, 4]
        assert await crowd.ask(3) == [1, 2, 3, 4], "its last message was fast"

    of_crowd(scene)


def test_an_account_that_stops_waiting_leaves_nothing_behind():
    async def scene(crowd):
        await crowd.ask(1, 2, 3, 4, 5)
        crowd.tasks[-1].cancel()
        await crowd.now()
        for account in (1, 2, 3, 4):
            await crowd.end(account)
        assert await crowd.ask(6, 6) == [6, 6]

    of_crowd(scene)


def test_a_message_costs_as_much_however_many_accounts_wait(monkeypatch):
    accounts, asked, ask = range(200), [], getattr(MailTurns, "_next")  # noqa: B009  # how often it is asked is its cost
    monkeypatch.setattr(MailTurns, "_next", lambda each: asked.append(1) or ask(each))

    async def send(of_all, account):
        async with of_all.of(account):
            await asyncio.sleep(0)

    async def morning():
        of_all = MailTurns(TOTAL)
        await asyncio.gather(*(send(of_all, account) for account in accounts))

    asyncio.run(morning())
    assert len(asked) < 5 * len(accounts), "not each account that waits, for each message"
