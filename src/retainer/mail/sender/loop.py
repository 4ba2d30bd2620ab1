"""Sender loop: lease the messages that are due, hand them to the mail server, save what became of them."""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from functools import partial

from retainer.background import Report
from retainer.kernel.representations import RunApart
from retainer.mail.addresses import wire_address
from retainer.mail.sender import schedule
from retainer.mail.sender.contents import Contents, Unsendable, draw, load_contents, write
from retainer.mail.sender.links import take_back, with_link
from retainer.mail.sender.relay import Dialogue, Mail, NotTaken, Relay, longest_dialogue
from retainer.mail.sender.turns import MailTurns
from retainer.outbound.leases import LeasedRow
from retainer.outbound.loop import BackgroundLoop
from retainer.settings import Settings
from retainer.store.tx import Store

CONNECTIONS = 4
"""Dialogues at the same time. More would not send faster, and many servers refuse them."""
TROUBLE_SECONDS = 60
"""How often trouble with the mail server is logged at most."""
SAVING_PAUSES = (1, 4, 15, 60)
"""Seconds between attempts to save what became of a message."""
ACCIDENT = "Something went wrong on this server, and its log says what."


class Mailer(BackgroundLoop[LeasedRow]):
    """Sends the messages of all accounts; `notify` is called with what the operator should know of the mail server."""

    name, task = "mail", "sending mail"
    places = 2 * CONNECTIONS
    leases = schedule.DUE
    lease = timedelta(minutes=10)  # of a message that waits for its turn; an attempt takes a longer one

    def __init__(
        self, store: Store, settings: Settings, run_apart: RunApart, report: Report, notify: Callable[[str], None]
    ) -> None:
        super().__init__(store, report)
        self.settings, self.relay = settings, Relay.of(settings.smtp_url, settings.sender)
        self.run_apart, self.notify = run_apart, notify
        self._told_trouble_at = -math.inf

    def equipped(self) -> AbstractAsyncContextManager[object]:
        self._turns = MailTurns(CONNECTIONS)  # of the event loop that now runs
        return nullcontext()

    def refresh(self) -> None:
        schedule.set_back(self.store)

    async def serve(self, work: LeasedRow) -> None:
        """Send a message. If this is cancelled, the dialogue is ended, and what it has reached is saved.

        After an unexpected error, which is reported, the message is tried again and given up as after any other.
        """
        async with self._turns.of(work.account_id):
            try:
                composed = await self._compose(work)
            except Unsendable as error:
                status = "cancelled" if error.is_gone else "failed"
                await self.in_database(partial(schedule.save_end, self.store, work, status, str(error)))
            except Exception:
                await self.in_database(partial(schedule.save_failure, self.store, work, ACCIDENT, is_final=False))
                raise
            else:
                if composed is not None:
                    await self._hand_over(work, *composed)

    async def _compose(self, work: LeasedRow) -> tuple[Contents, Mail] | None:
        """Return a message and what is sent, and begin an attempt; None if it may not be sent now."""
        contents = await self.in_database(partial(load_contents, self.store, work, self.settings))
        if contents is None:
            return None
        files = await asyncio.to_thread(draw, contents, work.account_id, self.run_apart)
        site = self.settings.base_url
        contents = await self.in_database(partial(with_link, self.store, contents, work.account_id, site))
        message = write(contents, files, self.relay.sender)
        seconds = longest_dialogue(message.size)
        may_begin = await self.in_database(partial(schedule.begin_attempt, self.store, work, seconds))
        if not may_begin:
            await self.in_database(partial(take_back, self.store, contents, work.account_id))
        return (contents, message) if may_begin else None

    async def _hand_over(self, work: LeasedRow, contents: Contents, message: Mail) -> None:
        dialogue, recipient = Dialogue(self.relay), wire_address(contents.message.to)
        sending = asyncio.ensure_future(asyncio.to_thread(dialogue.send, recipient, message))
        try:
            await asyncio.wait([sending])
        finally:
            dialogue.end()
            await asyncio.wait([sending])
            await self._save(work, contents, sending.exception())

    async def _save(self, work: LeasedRow, contents: Contents, error: BaseException | None) -> None:
        """Save what became of an attempt; again if the database cannot be reached, since it would be sent twice."""
        for pause in SAVING_PAUSES:
            try:
                await self.in_database(partial(self._save_once, work, contents, error))
            except Exception as trouble:  # noqa: BLE001
                self.report(self.task, trouble)
                if self.stopped.is_set():
                    break
                await asyncio.sleep(pause)
            else:
                break
        self.done += 1
        if isinstance(error, NotTaken):
            self._tell(error.trouble)
        elif error is not None:
            raise error

    def _save_once(self, work: LeasedRow, contents: Contents, error: BaseException | None) -> None:
        if error is not None:
            take_back(self.store, contents, work.account_id)
        if error is None:
            schedule.save_end(self.store, work, "sent")
        elif isinstance(error, NotTaken):
            schedule.save_failure(self.store, work, str(error), is_final=error.is_final)
        else:
            schedule.save_failure(self.store, work, ACCIDENT, is_final=False)

    def _tell(self, trouble: str) -> None:
        if trouble and time.monotonic() >= self._told_trouble_at + TROUBLE_SECONDS:
            self._told_trouble_at = time.monotonic()
            self.notify(f"The mail server {self.relay.host} accepted no message. {trouble}")
