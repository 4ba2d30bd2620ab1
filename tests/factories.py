"""A client of an agency, which creates the records that a test needs."""

import copy
import io
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote_to_bytes, urlencode
from wsgiref.validate import validator

from testing.wsgi import wsgi

from retainer.app import App
from retainer.billing import payments
from retainer.identity import accounts
from retainer.identity.actors import operator_of
from retainer.identity.keys import key_list, keys
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.settings import BASE_PATH
from retainer.store.engines import Sqlite
from retainer.store.tx import Store, Tx
from retainer.work.cost_rates import change_user
from tests.contract_checker import ContractChecker

RECIPES = {
    "/clients": lambda _: {"name": "Bergmann Optik"},
    "/external-contacts": lambda api: {"client_id": api.make("/clients")["id"], "last_name": "Lenz"},
    "/tags": lambda api: {"name": f"Tag {api.next()}"},
    "/projects": lambda api: {"name": "Webshop", "client_id": api.usual("/clients")},
    "/projects/{project_id}/milestones": lambda _: {"name": "Launch"},
    "/tasks": lambda _: {"title": "Write the texts"},
    "/time-entries": lambda api: {"client_id": api.usual("/clients"), "duration_minutes": 90},
    "/expenses": lambda api: {"amount": "119", "client_id": api.usual("/clients")},
    "/quotes": lambda api: {"client_id": api.usual("/clients")},
    "/quotes/{quote_id}/lines": lambda _: {"description": "Design", "unit_price": "500"},
    "/invoices": lambda api: {"client_id": api.usual("/clients")},
    "/invoices/{invoice_id}/lines": lambda _: {"description": "Design", "unit_price": "500"},
    "/invoices/{invoice_id}/credit-notes": lambda _: {},
    **dict.fromkeys(("/invoices/{invoice_id}/links", "/quotes/{quote_id}/links"), lambda _: {}),
    "/tickets": lambda _: {"subject": "The checkout is slow"},
    "/tickets/{ticket_id}/replies": lambda _: {"body": "We are looking into it."},
    "/sites": lambda api: {"url": f"https://shop{api.next()}.example"},
    "/files": lambda api: {
        "record": "client",
        "record_id": api.usual("/clients"),
        "name": "Contract.pdf",
        "content": "JVBERi0xLjcgY29udHJhY3Q=",
    },
    "/invoices/{invoice_id}/send": lambda _: {"to": ["ana@lindner.example"]},
    "/quotes/{quote_id}/send": lambda _: {"to": ["ana@lindner.example"]},
    "/credit-notes/{credit_note_id}/send": lambda _: {"to": ["ana@lindner.example"]},
    "/webhooks": lambda api: {"url": f"https://receiver{api.next()}.example/hooks"},
    "/webhooks/{webhook_id}/redeliver": lambda _: {"since": "2026-01-01T00:00:00Z"},
    "/batch": lambda _: {
        "operations": [{"method": "POST", "path": "/clients", "body": {"name": "Nordwind"}}],
        "atomic": True,
    },
}
"""The required fields of each collection; the records that they refer to are created as needed."""

UNPOSTED = {
    "/users": lambda api: f"/users/{api.add_user('Jo Ott')}",
    "/payments": lambda api: f"/payments/{api.pay()['id']}",
    "/messages": lambda api: f"/messages/{api.make('/invoices/{invoice_id}/send')['messages'][0]['id']}",
}
"""Collections without a POST: how a record comes to be, and where it is read."""

CREATION_PATHS = {"/credit-notes": "/invoices/{invoice_id}/credit-notes"}
"""Collections whose records are created at another path."""

SENT = {"status": "sent", "lines": [{"description": "Design", "unit_price": "500"}]}
"""The fields of a document that is issued when it is created."""
LINED = {"lines": SENT["lines"]}
PARENTS = {
    "/invoices/{invoice_id}/credit-notes": SENT,
    "/invoices/{invoice_id}/send": LINED,
    "/quotes/{quote_id}/send": LINED,
    **dict.fromkeys(("/invoices/{invoice_id}/links", "/quotes/{quote_id}/links"), SENT),
}
"""The fields that a parent needs before a record can be created at a path."""


def as_latin_1(path: str) -> str:
    """Return a path as WSGI passes it; escapes outside of an external id stay, so that tests can send odd paths."""
    head, colon, external_id = path.partition("/external:")
    return head + colon + unquote_to_bytes(external_id).decode("latin-1")


class Answer:
    """A response."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @cached_property
    def json(self) -> Any:
        """The body, parsed once."""
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        assert self.status in {200, 201}, self
        return self.json["data"]

    @property
    def errors(self) -> dict[str, list[str]]:
        assert self.status == 422, self
        return self.json["errors"]

    @property
    def code(self) -> str:
        assert self.status >= 400, self
        return self.json["code"]

    def __repr__(self) -> str:
        return f"{self.status} {self.body.decode()[:2000]}"


class ApiClient:
    """A client of one agency: it calls the application, and the contract checker checks every response."""

    def __init__(
        self, app: App, contract_checker: ContractChecker, agency: dict[str, Any], databases: Any = None
    ) -> None:
        self.app = app
        self.databases = databases
        self.store: Store = app.store
        self.contract_checker = contract_checker
        self.account_id: int = agency["account_id"]
        self.admin_id: int = agency["admin_id"]
        self.member_id: int = agency["member_id"]
        self.key_id: int = agency["key_id"]
        self.key: str | None = agency["key"]
        self._made = 0
        self._usual: dict[str, int] = {}

    def next(self) -> int:
        self._made += 1
        return self._made

    def usual(self, collection: str) -> int:
        """Return the id of the default record of a collection, created when it is first needed."""
        if collection not in self._usual:
            self._usual[collection] = self.make(collection)["id"]
        return self._usual[collection]

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        query: dict[str, Any] | str = "",
        key: str | None = "own",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request with `raw` bytes, or with `body` as JSON."""
        sent = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": BASE_PATH + as_latin_1(path),
            "QUERY_STRING": query if isinstance(query, str) else urlencode(query),
            "SERVER_NAME": "agency.example",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": "agency.example",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(sent),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        if sent or raw is not None:
            environ |= {"CONTENT_LENGTH": str(len(sent)), "CONTENT_TYPE": "application/json"}
        value = self.key if key == "own" else key
        if value is not None:
            environ["HTTP_AUTHORIZATION"] = f"Bearer {value}"
        for name, text in (headers or {}).items():
            wsgi = name.upper().replace("-", "_")
            environ[wsgi if wsgi in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{wsgi}"] = text
        answer = self._run(environ)
        if answer.status == 500:
            self.app.log.drain()
            logged = cast(io.BytesIO, self.app.log.writer.stream).getvalue().splitlines()
            print(*[line for each in logged if (line := json.loads(each).get("error"))][-1:])  # noqa: T201  # shown when the test fails
        self.contract_checker.check(method, path, answer, is_limited="fields=" in str(environ["QUERY_STRING"]))
        return answer

    def _run(self, environ: dict[str, Any]) -> Answer:
        seen: list[Any] = []
        parts: Any = validator(wsgi(self.app))(environ, lambda status, headers, _=None: seen.append((status, headers)))
        try:
            body = b"".join(parts)
        finally:
            parts.close()
        status, headers = seen[0]
        return Answer(int(status.split()[0]), headers, body)

    def get(self, path: str, query: dict[str, Any] | str = "", **options: Any) -> Answer:
        return self.call("GET", path, query=query, **options)

    @property
    def engine(self) -> Sqlite:
        """The engine of an embedded database."""
        return cast(Sqlite, self.store.engine)

    @property
    def path(self) -> Path:
        """The file of an embedded database."""
        return self.engine.path

    def post(self, path: str, members: dict[str, Any] | None = None, **options: Any) -> Answer:
        return self.call("POST", path, members or {}, **options)

    def put(self, path: str, members: dict[str, Any], **options: Any) -> Answer:
        return self.call("PUT", path, members, **options)

    def patch(self, path: str, members: dict[str, Any], **options: Any) -> Answer:
        return self.call("PATCH", path, members, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.call("DELETE", path, **options)

    def make(self, collection: str, **members: Any) -> dict[str, Any]:
        """Create a record with these fields and the required ones; return it."""
        return self.create(collection, **members).data

    def create(self, collection: str, **members: Any) -> Answer:
        """Like `make`, but return the whole response."""
        if collection in UNPOSTED:
            return self.get(UNPOSTED[collection](self))
        path = self.at(CREATION_PATHS.get(collection, collection))
        needed = {name: value for name, value in self.recipe(path).items() if name not in members}
        return self.post(path, needed | members)

    def at(self, path: str) -> str:
        """Return a declared path with the ids of new records in place of its parameters."""
        needed = PARENTS.get(path, {})
        while "{" in path:
            head, _, tail = path.partition("/{")
            path = f"{head}/{self.make(head, **needed)['id']}{tail.partition('}')[2]}"
        return path

    def recipe(self, path: str) -> dict[str, Any]:
        """Return the required fields of a body at a path."""
        for template, recipe in RECIPES.items():
            if re.fullmatch(re.sub(r"\{\w+\}", r"\\d+", template), path):
                return recipe(self)
        raise KeyError(f"RECIPES needs an entry for the collection {path}")

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement past the API, with values for $1, $2 and so on; return its rows."""
        engine = self.store.engine
        connection = engine.connection()
        try:
            cursor = engine.run(connection, statement.replace("$", engine.marker), list(values))
            return cursor.fetchall() if cursor.description else []
        finally:
            engine.give_back(connection)

    def on(self, app: App) -> "ApiClient":
        """Return this client at another running application."""
        other = copy.copy(self)
        other.app, other.store = app, app.store
        return other

    def spend(self, bucket: str, requests: int) -> None:
        """Count requests in the window of a key or an address."""
        for _ in range(requests):
            self.app.pipeline.limiter.hit(bucket, 600)

    def new_key(
        self, scopes: list[str] | None = None, *, user_id: int | None = None, expires_at: str | None = None
    ) -> str:
        """Create a key of this agency with some scopes, or with all; return it."""
        chosen = list(SCOPES) if scopes is None else scopes
        details = KeyDetails("Test", user_id or self.admin_id, chosen, expires_at)
        with self.operating() as tx:
            return keys.create_key(tx, details).value

    def operating(self) -> Tx:
        """Return a transaction of an operator on this agency."""
        return self.store.begin(operator_of(self.store, self.account_id), write=True)

    @property
    def today(self) -> str:
        """The current day in the account's time zone, which for an hour or two is not that of UTC."""
        with self.operating() as tx:
            return tx.today

    def set_account(self, changes: dict[str, Any]) -> None:
        with self.operating() as tx:
            accounts.set_account(tx, changes)

    def set_user(self, user_id: int, changes: dict[str, Any]) -> None:
        with self.operating() as tx:
            change_user(tx, user_id, changes)

    def add_user(self, name: str, **details: Any) -> int:
        address = {"email": f"{len(name)}-{self.next()}@people.example"}
        with self.operating() as tx:
            return users.create_user(tx, UserDetails(name=name, **(address | details)))

    def switch_api(self, *, on: bool) -> None:
        with self.operating() as tx:
            accounts.switch_api(tx, on=on)

    def revoke_newest_key(self) -> None:
        with self.operating() as tx:
            keys.revoke_key(tx, key_list.list_keys(tx)[-1].id)

    def pay(self, invoice_id: int | None = None, **payment: Any) -> dict[str, Any]:
        """Record a payment on an invoice, by default on a new one; return it."""
        invoice_id = invoice_id or self.make("/invoices", **SENT)["id"]
        paid = self.patch(f"/invoices/{invoice_id}", {"record_payment": payment}).data["payments"]
        return cast("dict[str, Any]", paid[-1])

    def remove_payment(self, payment_id: int) -> dict[str, object]:
        with self.operating() as tx:
            return payments.remove(tx, payment_id)
