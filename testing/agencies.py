"""Open databases and agencies without the command line."""

import atexit
import io
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from retainer.app import App
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.actors import operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.kernel.http import Request
from retainer.server.renderers import Renderers
from retainer.settings import Settings
from retainer.store.engines import Sqlite
from retainer.store.tx import Store

LOOPBACK = (ip_network("127.0.0.0/8"),)
SMTP_URL, MAIL_FROM = "smtp://127.0.0.1:1?tls=none", "mail@retainer.example"
"""Messages are queued; those tests that send them start a mail server."""
RENDERERS = Renderers(wait_seconds=60, clock_seconds=60)
atexit.register(RENDERERS.close)
PATIENT_SECONDS = 20
"""Time limit of transactions in tests."""


SITE = "http://agency.example"
"""The public address of the server, which tests send as Host, too."""


def open_agency(store: Store, name: str, plan: Any, **details: Any) -> dict[str, Any]:
    """Open an agency with an admin, a member, and a key with all scopes."""
    domain = f"{name.lower()}.example"
    admin = UserDetails(name="Ana Admin", email=f"ana@{domain}", role="admin")
    account_id, admin_id = users.open_account(store, AccountDetails(name=name, plan=plan, **details), admin)
    with store.begin(operator_of(store, account_id), write=True) as tx:
        member_id = users.create_user(tx, UserDetails(name="Max Member", email=f"max@{domain}"))
        accounts.switch_api(tx, on=True)
        key_id, key = keys.create_key(tx, KeyDetails("All", admin_id, list(SCOPES)))
    return {"account_id": account_id, "admin_id": admin_id, "member_id": member_id, "key_id": key_id, "key": key}


def open_app(database: Path | str) -> App:
    """Return the application on a database, given its file or its address; its log stays in memory.

    Its transactions have more time than those of a server, because other processes may keep a test from running.
    Webhooks may send to this machine, where tests receive them.
    """
    url = database if isinstance(database, str) else f"sqlite:///{database}"
    app = App(
        Settings(database_url=url, monitor_allow=LOOPBACK, base_url=SITE, smtp_url=SMTP_URL, mail_from=MAIL_FROM),
        io.BytesIO(),
        renderers=RENDERERS,
    )
    app.store.seconds = PATIENT_SECONDS
    return app


def bare_request(settings: Settings, **environ: Any) -> Request:
    """Return a request as the HTTP server would make it, with nothing but what each one has."""
    always = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "QUERY_STRING": "", "REMOTE_ADDR": "127.0.0.1"}
    more = {"SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "x", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO()}
    return Request({**always, **more, **environ}, settings)


def new_store(path: Path) -> Store:
    """Return a store on a database file."""
    return Store(Sqlite(path))
