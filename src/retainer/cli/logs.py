"""Commands on the audit log and the request log."""

from typing import Annotated, Any

import typer

from retainer.cli import common as cli
from retainer.errors import invalid
from retainer.identity import audit
from retainer.identity.audit import AuditEntry, AuditFilter, Fields
from retainer.traffic.request_log import LogFilter, LoggedRequest, list_requests

audit_cli = cli.group("audit", "List what admins and operators did.")

Limit = Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of rows.")]
OF_AUDIT = (
    *cli.fields_of(AuditFilter, "action", "user_id", "since", "until"),
    cli.option("limit", Limit, audit.PAGE),
    cli.option("cursor", cli.text("The next_cursor of the previous page.")),
)
request_cli = cli.group("requests", "Look up the requests of an account's keys.")

After = Annotated[str | None, typer.Option(help="The `next` of the previous page.")]


@cli.command(audit_cli, "list", OF_AUDIT)
def list_audit(account: cli.Account, **given: Any) -> dict[str, object]:
    """List the actions in an account, newest first."""
    filters = cli.whole(AuditFilter, given)
    with cli.acting_for(account, write=False) as tx:
        page = audit.list_entries(tx, filters, cursor=given["cursor"], limit=given["limit"])
    return {"entries": cli.Listing(page.entries, line), "next_cursor": page.next_cursor}


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


@cli.command(request_cli, "list", cli.fields_of(LogFilter))
def list_logged(account: cli.Account, *, after: After = None, limit: Limit = 50, **given: Any) -> dict[str, object]:
    """List requests, newest first, without their queries and bodies."""
    wanted = cli.whole(LogFilter, given | {"method": given["method"] and given["method"].upper()})
    with cli.acting_for(account, write=False) as tx:
        try:
            page = list_requests(tx, wanted, after=after, limit=limit)
        except ValueError as error:
            raise invalid({"after": [str(error)]}) from None
    return {"requests": cli.Listing(page.requests, row_of), "next": page.next, "searched_to": page.searched_to}


def row_of(request: LoggedRequest) -> dict[str, str | int | None]:
    return {
        "answered_at": f"{request.answered_at[:10]} {request.answered_at[11:23]}",
        "key": request.key_id,
        **{name: getattr(request, name) for name in ("status", "method", "path", "operation")},
        "ms": f"{request.duration_us // 1000}.{request.duration_us // 100 % 10}",
        **{name: getattr(request, name) for name in ("address", "request_id", "record", "code")},
        "names": " ".join(request.names),
    }
