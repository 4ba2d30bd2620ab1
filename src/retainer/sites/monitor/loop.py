"""Monitor loop: probe the sites that are due, and save the results, until it is stopped."""

from datetime import timedelta
from functools import partial

from retainer.outbound.client import GuardedClient
from retainer.outbound.loop import BackgroundLoop
from retainer.sites.monitor import schedule
from retainer.sites.monitor.probe import TOTAL_SECONDS, probe
from retainer.sites.monitor.schedule import DueSite


class Monitor(BackgroundLoop[DueSite]):
    """Checks the sites of all accounts; the results of probes that end soon after a stop are saved."""

    name, task, host = "monitor", "checking sites", "site"
    places = 100
    leases, lease = schedule.DUE, timedelta(seconds=4 * TOTAL_SECONDS)  # longer than a probe and saving can take

    def refresh(self) -> None:
        schedule.refresh(self.store)

    async def serve(self, client: GuardedClient, work: DueSite) -> None:
        result = await probe(client, work)
        await self.in_database(partial(schedule.save_result, self.store, work, result))
        self.done += 1
