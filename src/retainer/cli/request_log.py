"""Commands on the request log."""

from typing import Annotated

import msgspec
import typer

from retainer.cli.common import Account, Json, Since, Until, opened, say, whole
from retainer.errors import invalid
from retainer.identity.admins import operator_of
from retainer.traffic.request_log import LogFilter, LoggedRequest, list_requests

request_cli = typer.Typer(help="Look up the requests of an account's keys.", no_args_is_help=True)

KeyId = Annotated[int | None, typer.Option(help="Only requests of this key, by its id.")]
Status = Annotated[str | None, typer.Option(help="Only responses of this class: 2xx, 3xx, 4xx or 5xx.")]
Method = Annotated[str | None, typer.Option(help="Only this method, like POST.")]
Path = Annotated[str | None, typer.Option(help="Only paths that begin like this: /clients or /clients/17.")]
Operation = Annotated[str | None, typer.Option(help="Only this operation, like listClients.")]
RequestId = Annotated[str | None, typer.Option(help="Only the request with this id, as in X-Request-Id.")]
Address = Annotated[str | None, typer.Option(help="Only requests from this IP address, like 203.0.113.7.")]
Record = Annotated[str | None, typer.Option(help="Only requests that changed this record, like /clients/17.")]
Code = Annotated[str | None, typer.Option(help="Only refused requests with this error code, like validation_failed.")]
Writes = Annotated[
    bool | None, typer.Option("--writes/--reads", help="Only requests that write, or only those that read.")
]
After = Annotated[str | None, typer.Option(help="The `next` of the previous page.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of requests.")]


@request_cli.command("list")
def list_logged(
    account: Account,
    *,
    key_id: KeyId = None,
    status: Status = None,
    method: Method = None,
    path: Path = None,
    operation: Operation = None,
    request_id: RequestId = None,
    address: Address = None,
    record: Record = None,
    code: Code = None,
    writes: Writes = None,
    since: Since = None,
    until: Until = None,
    after: After = None,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List requests, newest first, without their queries and bodies."""
    wanted = whole(LogFilter, locals() | {"method": method and method.upper()})
    store = opened()
    with store.begin(operator_of(store, account), write=False) as tx:
        try:
            page = list_requests(tx, wanted, after=after, limit=limit)
        except ValueError as error:
            raise invalid({"after": [str(error)]}) from None
    rows = [msgspec.to_builtins(request) if json else shown(request) for request in page.requests]
    say({"requests": rows, "next": page.next, "searched_to": page.searched_to}, json=json)


def shown(request: LoggedRequest) -> dict[str, str | int | None]:
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
