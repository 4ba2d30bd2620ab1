"""Monitor loop: claim the sites that are due, probe them, save the results, until it is stopped."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from retainer.background import Report
from retainer.fairness import Places
from retainer.outbound.client import GuardedClient
from retainer.outbound.loop import BackgroundLoop
from retainer.settings import Network
from retainer.sites.monitor import schedule
from retainer.sites.monitor.probe import TOTAL_SECONDS, probe
from retainer.sites.monitor.schedule import Checked, DueSite
from retainer.store.tx import Store

LEASE = timedelta(seconds=4 * TOTAL_SECONDS)  # longer than a probe and saving its result can take


class Monitor(BackgroundLoop[DueSite]):
    """Checks the sites of all accounts; the results of probes that end soon after a stop are saved."""

    name, task, host = "monitor", "checking sites", "site"
    places = 100

    def __init__(self, store: Store, allowed: tuple[Network, ...], report: Report) -> None:
        super().__init__(store, allowed, report)
        self._results: list[Checked] = []

    def refresh(self) -> None:
        """Update the uptime of sites that are no longer checked, and make due what a wrong clock has put off."""
        schedule.refresh(self.store)

    def claim(self, places: Places) -> Sequence[DueSite]:
        return schedule.claim(self.store, places, LEASE)

    async def serve(self, client: GuardedClient, work: DueSite) -> None:
        """Probe a site; the results of a tick are saved together."""
        result = await probe(client, work)
        self._results.append((work, result))  # not before the await: every tick replaces the list

    async def save(self) -> None:
        results, self._results = self._results, []
        if results:
            await self.in_database(partial(self._save, results))

    def _save(self, results: list[Checked]) -> None:
        """Save results together; if that fails, save each alone."""
        try:
            schedule.save_results(self.store, results)
        except Exception as error:  # noqa: BLE001  # a site without its result is due again when its lease ends
            if len(results) == 1:
                self.report(f"saving the result of site {results[0][0].id}", error)
            else:
                for each in results:
                    self._save([each])
        else:
            self.done += len(results)
