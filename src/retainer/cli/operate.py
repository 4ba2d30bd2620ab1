"""Commands that run and inspect an installation: serve, demo, monitor, deliver, mail, migrate, config, openapi."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from retainer import settings
from retainer.background import Background
from retainer.cli import common as cli
from retainer.events.sender.loop import Sender
from retainer.events.sender.schedule import retry_all
from retainer.identity.accounts import has_accounts
from retainer.mail.sender.loop import Mailer
from retainer.outbound import pause
from retainer.outbound.pause import PausableWork
from retainer.schema.fingerprint import head
from retainer.schema.migrations import migrate, plan
from retainer.server.monitoring.log import Log, standard_error
from retainer.server.renderers import RendererPool
from retainer.settings import BASE_PATH, Settings
from retainer.sites.monitor.probe import Monitor
from retainer.sites.uptime import suspend_all
from retainer.store.engines import Engine, connect
from retainer.store.tx import Store
from retainer.values.decoding import json_text

operating_cli = typer.Typer()
SERVING = (
    cli.option("host", str, "The address to listen on.", default="127.0.0.1"),
    cli.option("port", int, "The port to listen on.", default=8000, parser=cli.number(1, 65535)),
    cli.option(
        "workers", int, "Worker processes; more than one needs PostgreSQL and Valkey.", default=1, parser=cli.number()
    ),
    cli.option(
        "threads",
        int,
        "Threads of each worker, from 1 to 256.",
        parser=cli.number(1, 256),
        show_default="RETAINER_THREADS",
    ),
    cli.option("no_monitor", bool, "Do not check the sites.", "--no-monitor", default=False),
    cli.option("no_webhooks", bool, "Do not send webhooks.", "--no-webhooks", default=False),
)
"""The options of `serve` and `demo`."""
Once = Annotated[bool, typer.Option("--once", help="Do what is due, then exit.")]
Paused = Annotated[
    bool | None, typer.Option("--pause/--resume", help="Stop or resume this work in all processes, then exit.")
]
Plan = Annotated[bool, typer.Option("--plan", help="Show what would run and which tables it locks; run nothing.")]
Out = Annotated[Path | None, typer.Option(help="The file to write.", show_default="standard output")]


@cli.command(operating_cli, options=SERVING)
def serve(*, json: bool, **given: Any) -> None:
    """Serve the API, check the sites, send webhooks and mail; migrates the database first if needed."""
    run(given, addresses(given), json=json)


@cli.command(operating_cli, options=SERVING)
def demo(*, json: bool, **given: Any) -> None:
    """Serve two demo agencies on a separate database, which is created again at every start."""
    from retainer.demo import fill  # noqa: PLC0415  # only this command needs it
    from retainer.processes.workers import listen  # noqa: PLC0415

    host, port = given["host"], given["port"]
    listen(host, port).close()  # a port that is taken is reported before the work
    path = settings.load().data_dir / "demo.db"
    os.environ["RETAINER_BACKUP_DIR"] = ""  # it is created again at every start
    os.environ["RETAINER_BASE_URL"] = cli.site(host, port)  # for client links
    os.environ["RETAINER_DATABASE_URL"] = f"sqlite:///{path.resolve()}"
    engine = connect(os.environ["RETAINER_DATABASE_URL"], is_limited=False)
    engine.create_storage()
    with engine.serve_alone():  # a demo that runs keeps its database
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    migrate(engine)
    if sys.stderr.isatty():
        cli.warn("Creating two agencies with a year of work. This takes a few seconds.")
    access = fill(Store(engine))
    engine.close()
    result = addresses(given) | {"email": access.email, "password": access.password, "key": access.key}
    curl = f'curl -H "Authorization: Bearer {access.key}" {result["base_url"]}/clients'
    run(given, result | {"curl": curl}, json=json)


@cli.command(operating_cli)
def monitor(*, once: Once = False, paused: Paused = None) -> dict[str, object]:
    """Check the sites of all accounts without a server, until SIGTERM or once."""
    if paused is not None:
        return switch(pause.MONITOR, suspend_all, paused=paused)
    loaded, store, log = opened_for(pause.MONITOR)
    with closing(RendererPool()) as searches:
        checked = until_stopped(Monitor(store, loaded.monitor_allow, log.report, searches.run), log, once=once)
    return {"checked": checked}


@cli.command(operating_cli)
def deliver(*, once: Once = False, paused: Paused = None) -> dict[str, object]:
    """Send the webhooks of all accounts without a server, until SIGTERM or once."""
    if paused is not None:
        return switch(pause.WEBHOOKS, retry_all, paused=paused)
    loaded, store, log = opened_for(pause.WEBHOOKS)
    sender = Sender(store, loaded.monitor_allow, loaded.api_url, log.report, log.warning)
    return {"sent": until_stopped(sender, log, once=once)}


@cli.command(operating_cli)
def mail(*, once: Once = False, paused: Paused = None) -> dict[str, object]:
    """Send the mail of all accounts without a server, until SIGTERM or once."""
    if paused is not None:
        return switch(pause.MAIL, lambda *_: None, paused=paused)
    if not settings.load().smtp_url:
        raise settings.SettingsError("There is no mail server. Set RETAINER_SMTP_URL.")
    loaded, store, log = opened_for(pause.MAIL)
    with closing(RendererPool()) as drawing:
        mailer = Mailer(store, loaded, drawing.run, log.report, log.warning)
        sent = until_stopped(mailer, log, once=once)
    return {"tried": sent}


def switch(work: PausableWork, begin_anew: Callable[[Store, str], object], *, paused: bool) -> dict[str, object]:
    store = cli.opened()
    if paused:
        pause.pause(store, work, "an operator paused it")
    else:
        pause.resume(store, work, begin_anew)
    return {work.name: "paused" if paused else "on"}


def opened_for(work: PausableWork) -> tuple[Settings, Store, Log]:
    loaded = settings.load()
    cli.require_database(connect(loaded.database))
    engine, log = opened_with_log(loaded)
    store = Store(engine)
    if warning := pause.warning(store, work):
        log.warn_now(warning)
    return loaded, store, log


def opened_with_log(loaded: Settings) -> tuple[Engine, Log]:
    """Return the engine of the migrated database, and a log on standard error."""
    engine = connect(loaded.database)
    engine.check_sessions()
    log = Log(standard_error(), engine)
    migrate(engine, log.warn_now)
    return engine, log


def until_stopped(loop: Monitor | Sender | Mailer, log: Log, *, once: bool) -> int:
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: loop.stop())
    logging = Background("log", log.report, log.chores)
    logging.start()
    if once:
        loop.run_once()
    else:
        loop.run()
    logging.stop()
    log.drain()
    return loop.done


@cli.command(operating_cli, "migrate")
def migrate_database(*, only_plan: Plan = False, json: bool) -> dict[str, object]:
    """Bring the database's schema up to date; table locks are announced first."""
    engine = cli.connected()
    if not only_plan:
        before, after = migrate(engine, cli.warn)
        return {"before": before, "after": after}
    before, migrations = plan(engine)
    steps = [
        {
            "revision": migration.revision,
            "what": migration.title,
            "locks": [lock._asdict() if json else str(lock) for lock in migration.locks],
        }
        for migration in migrations
    ]
    return {"before": before, "after": head(), "migrations": steps}


@cli.command(operating_cli)
def config() -> dict[str, object]:
    """Show the settings in force, each with its source; passwords are masked."""
    return {"settings": cli.Listing(settings.in_force(settings.load()), ("name", "value", "source"))}


@cli.command(operating_cli)
def openapi(*, out: Out = None, json: bool) -> None:  # noqa: ARG001  # it is JSON with and without --json
    """Write the OpenAPI 3.1 document."""
    from retainer.api import ROUTES  # noqa: PLC0415  # the API is not needed by other commands
    from retainer.openapi.document import document  # noqa: PLC0415

    base = settings.load().base_url or "http://127.0.0.1:8000"
    text = json_text(document(ROUTES.bound.values(), base + BASE_PATH))
    if out is None:
        print(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")


def addresses(serving: dict[str, Any]) -> dict[str, object]:
    site = cli.site(serving["host"], serving["port"])
    return {"base_url": site + BASE_PATH, "reference": f"{site}/docs", "console": f"{site}/console"}


def run(serving: dict[str, Any], result: dict[str, object], *, json: bool) -> None:
    """Migrate if needed, then serve until SIGTERM or SIGINT; the result is printed once requests are answered."""
    gc.disable()
    from retainer.processes import workers as server  # noqa: PLC0415  # other commands need no HTTP server
    from retainer.processes.recovery import check_structure  # noqa: PLC0415

    gc.freeze()  # what is loaded stays, and collections would copy the memory that workers share
    gc.enable()
    if serving["threads"] is not None:
        os.environ["RETAINER_THREADS"] = str(serving["threads"])
    for work in ("monitor", "webhooks"):
        if serving[f"no_{work}"]:
            os.environ[f"RETAINER_{work.upper()}"] = "no"
    loaded, workers = settings.load(), serving["workers"]
    server.check(loaded, workers)
    engine = connect(loaded.database)
    engine.create_storage()
    with engine.serve_alone() as ended_cleanly:
        if not ended_cleanly:
            check_structure(engine, loaded)
        run_server(serving, loaded, partial(cli.say, result, json=json))


def run_server(serving: dict[str, Any], loaded: Settings, ready: Callable[[], None]) -> None:
    from retainer.doctor.surroundings import clock_warnings  # noqa: PLC0415  # as above
    from retainer.processes import workers as server  # noqa: PLC0415

    engine, log = opened_with_log(loaded)
    messages = [*warnings(engine, loaded), *pause.warnings(Store(engine)), *clock_warnings(Store(engine))]
    if not has_accounts(Store(engine)):  # an unmounted disk leads to a new, empty database
        advice = "Create one with retainer account create. If there should be accounts, check that the disk is mounted."
        messages.append(f"{engine.location} has no account. {advice}")
    if os.geteuid() == 0:
        messages.append("The server runs as root. Run it as a separate user that owns only the data folder.")
    for message in messages:
        log.warning(message)
    engine.close()
    log.drain()
    address = {"host": serving["host"], "port": serving["port"]}
    server.serve(**address, workers=serving["workers"], settings=loaded, log=log, ready=ready)


def warnings(engine: Engine, loaded: Settings) -> list[str]:
    """Return warnings about files that other users of this machine can read, and about a missing contact."""
    paths, is_unnamed = " ".join(map(str, engine.world_readable())), loaded.base_url and not loaded.contact
    readable = f"Other users of this machine can read the data. Protect it: chmod go= {paths}"
    contact = "Pages refer people to the operator of this server without naming one. Set RETAINER_CONTACT."
    return [readable] * bool(paths) + [contact] * bool(is_unnamed)
