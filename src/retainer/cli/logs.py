"""Commands on the audit log and the request log."""

from typing import Any

import msgspec

from retainer.cli import common as cli
from retainer.errors import invalid
from retainer.identity import audit
from retainer.identity.audit import AuditFilter
from retainer.traffic.request_log import LogFilter, list_requests

audit_cli = cli.group("audit", "List what admins and operators did.")

LIMIT = cli.option(
    "limit", int, "Maximum number of rows, from 1 to 1000.", default=audit.PAGE, parser=cli.number(1, 1000)
)
OF_AUDIT = (
    *cli.fields_of(AuditFilter, "action", "user_id", "since", "until"),
    LIMIT,
    cli.option("cursor", str, "The next_cursor of the previous page."),
)
OF_REQUESTS = (*cli.fields_of(LogFilter), LIMIT, cli.option("after", str, "The `next` of the previous page."))
AUDITED = ("created_at", "user_name", "address", "action", "target", "target_id", "target_name", "before", "after")
LOGGED = (
    *("answered_at", "key_id", "status", "method", "path", "operation", "duration_ms"),
    *("address", "request_id", "record", "code", "names"),
)
request_cli = cli.group("requests", "Look up the requests of an account's keys.")


@cli.command(audit_cli, "list", OF_AUDIT)
def list_audit(account: cli.Account, **given: Any) -> dict[str, object]:
    """List the actions in an account, newest first."""
    filters = cli.whole(AuditFilter, given)
    with cli.acting_for(account, write=False) as tx:
        page = audit.list_entries(tx, filters, cursor=given["cursor"], limit=given["limit"])
    return {"entries": cli.Listing(page.entries, AUDITED), "next_cursor": page.next_cursor}


@cli.command(request_cli, "list", OF_REQUESTS)
def list_logged(account: cli.Account, **given: Any) -> dict[str, object]:
    """List requests, newest first, without their queries and bodies."""
    wanted = cli.whole(LogFilter, given | {"method": given["method"] and given["method"].upper()})
    with cli.acting_for(account, write=False) as tx:
        try:
            page = list_requests(tx, wanted, after=given["after"], limit=given["limit"])
        except ValueError as error:
            raise invalid({"after": [str(error)]}) from None
    found = [{**msgspec.structs.asdict(each), "duration_ms": each.duration_us // 1000} for each in page.requests]
    return {"requests": cli.Listing(found, LOGGED), "next": page.next, "searched_to": page.searched_to}
