"""Metrics of the disk and the backups of the embedded database."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prometheus_client.metrics_core import GaugeMetricFamily

from retainer.settings import Settings


class Storage:
    """Measures the disk of the data folder and the lateness of the backup schedule, if there is one.

    `database` is the file of the embedded database. Without any backup, one is late from the start of the server.
    """

    def __init__(self, settings: Settings, database: Path) -> None:
        self.settings, self.database = settings, database
        self._started = datetime.now(UTC)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        disk = shutil.disk_usage(self.database.parent)
        yield GaugeMetricFamily("retainer_disk_size_bytes", "Size of the disk of the data folder.", disk.total)
        yield GaugeMetricFamily("retainer_disk_free_bytes", "What is free of that disk.", disk.free)
        if self.settings.backup_dir:
            description = "How long the next backup has been due."
            late = self._late_backup(self.settings.backup_dir).total_seconds()
            yield GaugeMetricFamily("retainer_backup_lateness_seconds", description, late)

    def _late_backup(self, folder: Path) -> timedelta:
        from retainer.backup.schedule import backups_until  # noqa: PLC0415  # loaded only if backups are made

        now = datetime.now(UTC)
        made = backups_until(now, self.database, folder)
        due = max(made) + timedelta(seconds=int(self.settings.backup_every * 3600)) if made else self._started
        return max(now - due, timedelta(0))
