"""Commands on the audit log."""

from typing import Annotated

import msgspec
import typer

from retainer.cli.common import Account, Json, Since, Until, acting_for, say, whole
from retainer.identity import audit
from retainer.identity.audit import AuditEntry, AuditFilter, Fields
from retainer.values.kinds import MAX_INTEGER

audit_cli = typer.Typer(help="List what admins and operators did.", no_args_is_help=True)

ByAction = Annotated[str | None, typer.Option(help=f"Only one of: {', '.join(audit.ACTIONS)}.")]
ByUser = Annotated[
    int | None,
    typer.Option("--user", min=0, max=MAX_INTEGER, help="Only this user, by id; 0: operators and failed sign-ins."),
]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of actions.")]
Cursor = Annotated[str | None, typer.Option(help="The next_cursor of the previous page.")]


@audit_cli.command("list")
def list_audit(
    account: Account,
    *,
    action: ByAction = None,
    user: ByUser = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = audit.PAGE,
    cursor: Cursor = None,
    json: Json = False,
) -> None:
    """List the actions in an account, newest first."""
    filters = whole(AuditFilter, locals() | {"user_id": user})
    with acting_for(account) as tx:
        page = audit.list_entries(tx, filters, cursor=cursor, limit=limit)
    rows = [msgspec.structs.asdict(entry) if json else line(entry) for entry in page.entries]
    say({"entries": rows, "next_cursor": page.next_cursor}, json=json)


def line(entry: AuditEntry) -> dict[str, str | None]:
    return {
        "at": entry.created_at[:19],
        "who": entry.user_name or ("unknown" if entry.action == "sign-in failed" else "operator"),
        "address": entry.address,
        "action": entry.action,
        "what": f"{entry.target} {entry.target_id} {entry.target_name}",
        "before": fields(entry.before),
        "after": fields(entry.after),
    }


def fields(values: Fields | None) -> str | None:
    return None if values is None else ", ".join(f"{name}: {value}" for name, value in values.items())
