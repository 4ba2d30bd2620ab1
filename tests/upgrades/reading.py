"""Reads every record, part, report, event and document of an account through the API, as read_all.py does."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from testing.agencies import open_app

from tests.factories import Answer, ApiClient
from tests.upgrades.former import BASE, Former

LISTS = (
    *(
        "clients",
        "external-contacts",
        "tags",
        "projects",
        "tasks",
        "time-entries",
        "invoices",
        "credit-notes",
        "quotes",
    ),
    *("expenses", "tickets", "sites", "users", "payments", "webhooks"),
)
ALONE = {"clients", "projects", "invoices", "quotes", "credit-notes", "tickets", "sites"}
PARTS = {"projects": ("milestones?per_page=100", "unbilled-work"), "tickets": ("replies?per_page=100",)}
DOCUMENTS = {"invoices", "quotes", "credit-notes"}
REPORTS = ("overview", "revenue-by-client", "revenue-by-month", "utilisation", "project-profitability")
MOVING = {"generated_at", "last_used_at"}
REQUESTS_OF_AN_APPLICATION = 250
"""Each application begins with an empty rate limit."""


class Reader:
    def __init__(self, url: str, former: Former) -> None:
        self.url, self.former, self.requests = url, former, 0
        self.api = self._open()

    def _open(self) -> ApiClient:
        agency = {"account_id": 1, "admin_id": 1, "member_id": 2, "key_id": 1, "key": self.former.key}
        return ApiClient(open_app(self.url), Unchecked(), agency)  # type: ignore[arg-type]

    def close(self) -> None:
        self.api.store.engine.close()

    def get(self, path: str, accept: str = "application/json") -> Answer:
        self.requests += 1
        if self.requests % REQUESTS_OF_AN_APPLICATION == 0:
            self.close()
            self.api = self._open()
        name, _, query = path.partition("?")
        return self.api.get(name, query, headers={"Accept": accept})

    def data(self, path: str) -> Any:
        answer = self.get(path)
        found = json.loads(BASE.sub("", answer.body.decode()))
        return found["data"] if answer.status == 200 else {"status": answer.status, "body": found}

    def list(self, path: str) -> Iterator[dict[str, Any]]:
        page = 1
        while True:
            answer = json.loads(BASE.sub("", self.get(f"{path}?per_page=100&page={page}").body.decode()))
            yield from answer["data"]
            if page * 100 >= answer["meta"]["total"]:
                return
            page += 1

    def all(self, has_document: Callable[[str, int], bool]) -> Iterator[tuple[str, Any, Any]]:
        """Yield a kind, a name or an id, and a value, for all that there is.

        `has_document` tells of which documents that are no drafts it reads the PDF and the XML, too: by list and id.
        """
        for kind, name, value in self._all(has_document):
            plain = (
                {key: part for key, part in value.items() if key not in MOVING} if isinstance(value, dict) else value
            )
            yield kind, name, plain

    def _all(self, has_document: Callable[[str, int], bool]) -> Iterator[tuple[str, Any, Any]]:
        for name in LISTS:
            for row in self.list(f"/{name}"):
                path = f"/{name}/{row['id']}"
                yield name, row["id"], row
                if name in ALONE:
                    yield f"{name} alone", row["id"], self.data(path)
                for part in PARTS.get(name, ()):
                    yield f"{name} {part.partition('?')[0]}", row["id"], self.data(f"{path}/{part}")
                if name in DOCUMENTS and row.get("status") != "draft" and has_document(name, row["id"]):
                    yield f"{name} pdf", row["id"], text_of(self.get(path, "application/pdf").body)
                    if name != "quotes":
                        xml = self.get(path, "application/xml")
                        yield f"{name} xml", row["id"], xml.body.decode() if xml.status == 200 else xml.json["message"]
        for name in REPORTS:
            yield "report", name, self.data(f"/reports/{name}?from=2025-06-01&to={self.former.clock[:10]}")
        after = ""
        while events := self.data(f"/events?per_page=100{after}"):
            for event in events:
                yield "event", event["id"], event
            after = f"&after={events[-1]['id']}"


class Unchecked:
    """Checks no answers: other tests hold them against the document of the API."""

    def check(self, *_: object, **__: object) -> None: ...


def text_of(pdf: bytes) -> str:
    made = subprocess.run(["pdftotext", "-layout", "-", "-"], input=pdf, capture_output=True, check=True)
    return made.stdout.decode("utf-8", "replace")
