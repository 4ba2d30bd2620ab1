"""Commands on the audit log and the request log."""

from typing import Annotated, Any

import typer

from retainer.cli.common import Account, Listing, Since, Until, acting_for, command, flag, number, option, text, whole
from retainer.errors import invalid
from retainer.identity import audit
from retainer.identity.audit import AuditEntry, AuditFilter, Fields
from retainer.traffic.request_log import LogFilter, LoggedRequest, list_requests
from retainer.values.kinds import MAX_INTEGER

audit_cli = typer.Typer(name="audit", help="List what admins and operators did.", no_args_is_help=True)

Limit = Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of rows.")]
OF_AUDIT = (
    option("action", text(f"Only one of: {', '.join(audit.ACTIONS)}.")),
    option("user", number("Only this user, by id; 0: operators and failed sign-ins.", min=0, max=MAX_INTEGER)),
    option("since", Since),
    option("until", Until),
    option("limit", Limit, audit.PAGE),
    option("cursor", text("The next_cursor of the previous page.")),
)
request_cli = typer.Typer(name="requests", help="Look up the requests of an account's keys.", no_args_is_help=True)

FILTERS = {
    "key_id": number("Only requests of this key, by its id."),
    "status": text("Only responses of this class: 2xx, 3xx, 4xx or 5xx."),
    "method": text("Only this method, like POST."),
    "path": text("Only paths that begin like this: /clients or /clients/17."),
    "operation": text("Only this operation, like listClients."),
    "request_id": text("Only the request with this id, as in X-Request-Id."),
    "address": text("Only requests from this IP address, like 203.0.113.7."),
    "record": text("Only requests that changed this record, like /clients/17."),
    "code": text("Only refused requests with this error code, like validation_failed."),
    "writes": flag("--writes/--reads", "Only requests that write, or only those that read."),
    "since": Since,
    "until": Until,
}
After = Annotated[str | None, typer.Option(help="The `next` of the previous page.")]


@command(audit_cli, "list", OF_AUDIT)
def list_audit(account: Account, **given: Any) -> dict[str, object]:
    """List the actions in an account, newest first."""
    filters = whole(AuditFilter, given | {"user_id": given["user"]})
    with acting_for(account, write=False) as tx:
        page = audit.list_entries(tx, filters, cursor=given["cursor"], limit=given["limit"])
    return {"entries": Listing(page.entries, line), "next_cursor": page.next_cursor}


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


@command(request_cli, "list", FILTERS)
def list_logged(account: Account, *, after: After = None, limit: Limit = 50, **given: Any) -> dict[str, object]:
    """List requests, newest first, without their queries and bodies."""
    wanted = whole(LogFilter, given | {"method": given["method"] and given["method"].upper()})
    with acting_for(account, write=False) as tx:
        try:
            page = list_requests(tx, wanted, after=after, limit=limit)
        except ValueError as error:
            raise invalid({"after": [str(error)]}) from None
    return {"requests": Listing(page.requests, row_of), "next": page.next, "searched_to": page.searched_to}


def row_of(request: LoggedRequest) -> dict[str, str | int | None]:
    return {
        "answered_at": f"{request.answered_at[:10]} {request.answered_at[11:23]}",
        "key": request.key_id,
        **{name: getattr(request, name) for name in ("status", "method", "path", "operation")},
        "ms": f"{request.duration_us // 1000}.{request.duration_us // 100 % 10}",
        **{name: getattr(request, name) for name in ("address", "request_id", "record", "code")},
        "names": " ".join(request.names),
    }
