"""Commands on the request log."""

from typing import Annotated, Any

import msgspec
import typer

from retainer.cli.common import Account, Json, Since, Until, opened, say, whole
from retainer.cli.options import flag, number, text, with_options
from retainer.errors import invalid
from retainer.identity.admins import operator_of
from retainer.traffic.request_log import LogFilter, LoggedRequest, list_requests

request_cli = typer.Typer(help="Look up the requests of an account's keys.", no_args_is_help=True)

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
Limit = Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of requests.")]


@request_cli.command("list")
@with_options(FILTERS)
def list_logged(account: Account, *, after: After = None, limit: Limit = 50, json: Json = False, **given: Any) -> None:
    """List requests, newest first, without their queries and bodies."""
    wanted = whole(LogFilter, given | {"method": given["method"] and given["method"].upper()})
    store = opened()
    with store.begin(operator_of(store, account), write=False) as tx:
        try:
            page = list_requests(tx, wanted, after=after, limit=limit)
        except ValueError as error:
            raise invalid({"after": [str(error)]}) from None
    rows = [msgspec.to_builtins(request) if json else row_of(request) for request in page.requests]
    say({"requests": rows, "next": page.next, "searched_to": page.searched_to}, json=json)


def row_of(request: LoggedRequest) -> dict[str, str | int | None]:
    return {
        "answered_at": f"{request.answered_at[:10]} {request.answered_at[11:23]}",
        "key": request.key_id,
        "status": request.status,
        "method": request.method,
        "path": request.path,
        "operation": request.operation,
        "ms": f"{request.duration_us // 1000}.{request.duration_us // 100 % 10}",
        "address": request.address,
        "request_id": request.request_id,
        "record": request.record,
        "code": request.code,
        "names": " ".join(request.names),
    }
