"""The command that examines an installation: settings, database, clock, Valkey, disk and backups."""

import platform
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer

from retainer import __version__, settings
from retainer.cli import common as cli
from retainer.cli.operate import warnings
from retainer.cli.progress import progress_bars
from retainer.doctor.examination import examine
from retainer.doctor.findings import Outcome, overall
from retainer.mail.addresses import wire_address
from retainer.outbound import pause
from retainer.schema.fingerprint import head
from retainer.schema.migrations import current
from retainer.store.engines import Engine
from retainer.store.engines.base import Unavailable
from retainer.store.tx import Store
from retainer.values.kinds import EMAIL_FORM, read_email

examining_cli = typer.Typer()
STATUSES = {"ok": 0, "wrong": 1, "not checked": 3}
"""Exit statuses by the overall result."""
Repair = Annotated[
    bool, typer.Option("--repair", help="Write texts and stored totals again that do not match their rows.")
]
Mail = Annotated[
    str | None,
    typer.Option("--mail", metavar="ADDRESS", help="Check only mail: SPF, DMARC, and a test message to this address."),
]


@cli.command(examining_cli)
def doctor(*, repair: Repair = False, mail: Mail = None, json: bool) -> None:
    """Check the database and all that it needs.

    Exit status 0: all was checked and holds; 1: something is wrong; 3: something could not be checked.
    """
    loaded = settings.load()
    if mail is not None:
        outcomes = examine_mail(loaded, mail)
        result = overall(outcomes)
        cli.say({"result": result, "sender": loaded.sender, "checks": checks(outcomes, json=json)}, json=json)
        raise typer.Exit(STATUSES[result])
    engine = cli.connected()
    with suppress(Unavailable):  # which the checks will say
        engine.check_sessions()
    with progress_bars() as show:
        outcomes = examine(engine, loaded, show, repair=repair)
    result = overall(outcomes)
    is_known = all(each.result != "not checked" for each in outcomes if each.check == "schema")
    if is_known:
        for message in (*warnings(engine, loaded), *pause.warnings(Store(engine))):
            cli.warn(message)
    cli.say(
        {
            "result": result,
            "checks": checks(outcomes, json=json),
            **surroundings(engine, loaded),
            "clock": datetime.now(UTC).isoformat(timespec="seconds"),
            "timezone": time.tzname[0],
        },
        json=json,
    )
    raise typer.Exit(STATUSES[result])


def examine_mail(loaded: settings.Settings, address: str) -> list[Outcome]:
    """Examine the mail of a server. Raises SettingsError without a mail server."""
    from retainer.doctor import mail as doctor_of_mail  # noqa: PLC0415  # only this option needs it
    from retainer.mail.sender.relay import Relay  # noqa: PLC0415

    if not loaded.smtp_url:
        raise settings.SettingsError("There is no mail server. Set RETAINER_SMTP_URL.")
    try:
        recipient = read_email(address)
        wire_address(recipient)
    except ValueError as error:
        raise typer.BadParameter(str(error) or f"Must be {EMAIL_FORM}.", param_hint="--mail") from None
    return doctor_of_mail.examine_mail(Relay.of(loaded.smtp_url, loaded.sender), recipient)


def checks(outcomes: list[Outcome], *, json: bool) -> cli.Listing:
    """Return the outcome of each check: whole as JSON, as lines for a terminal."""
    if json:
        return cli.Listing([msgspec.to_builtins(outcome) for outcome in outcomes])
    return cli.Listing([line for outcome in outcomes for line in lines(outcome)])


def lines(outcome: Outcome) -> list[dict[str, str]]:
    found = [str(finding) for finding in outcome.found]
    if outcome.count > len(outcome.found):
        found.append(f"and {outcome.count - len(outcome.found)} more")
    found += [f"repaired: {each}" for each in outcome.repaired]
    found += [text for text in (outcome.reason, outcome.note) if text]
    first, *others = found or [""]
    heads = ({"check": outcome.check, "result": outcome.result}, *({"check": "", "result": ""} for _ in others))
    return [{**head, "found": text} for head, text in zip(heads, [first, *others], strict=True)]


def surroundings(engine: Engine, loaded: settings.Settings) -> dict[str, Any]:
    version = schema = None
    with suppress(Unavailable, OSError):
        version, schema = engine.version, current(Store(engine)) if engine.exists() else None
    return {
        "version": __version__,
        "python": platform.python_version(),
        engine.name.lower(): version,
        **{row["name"]: f"{row['value']} (from {row['source']})" for row in settings.in_force(loaded)},
        "database": engine.location,
        "schema": schema,
        "newest_schema": head(),
    }
