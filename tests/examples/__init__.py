"""The examples of the reference, recorded: every operation once, and every refusal of the catalogue."""

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import time_machine
from testing.agencies import open_app

from retainer.errors import STATUS
from tests.contract_checker import ContractChecker
from tests.examples.day import OPERATIONS, day, open_studio, path_of, save_samples
from tests.examples.refusals import refusals
from tests.factories import Answer, ApiClient

MORNING = "2026-03-16T09:00:00Z"
HEADERS = ("content-type", "etag", "location", "retry-after", "www-authenticate", "allow")
"""What is recorded of the headers of an answer: those that not every answer has."""
REQUEST_ID = re.compile("req_[0-9a-f]{24}")
SHOWN_REQUEST_ID = "req_5f2b8c0d9a41e7736b10c2fe"
SECRET = re.compile("whsec_[0-9A-Za-z+/]+=*")
SHOWN_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = re.compile(r"client\?token=[0-9A-Za-z_-]{43}")
SHOWN_TOKEN = "client?token=kT0v4rB8-2sXyQmZ1cWn6HdJ9uLgE5fAoPi3RbNwVtM"
SHOWN_KEY = "rtn_7kQ2"
"""The beginning of the key in the examples; that of the key which the day is recorded with is random."""


class Recorder:
    """Lives through the day, and keeps what was sent and answered."""

    def __init__(self, api: ApiClient, clock: time_machine.Traveller) -> None:
        self.api, self.clock = api, clock
        self.examples: dict[str, Any] = {}

    def show(self, operation_id: str, *ids: int | str, query: dict[str, Any] | None = None, **body: Any) -> None:
        assert operation_id not in self.examples, f"{operation_id} has an example already"
        operation = OPERATIONS[operation_id]
        path = path_of(operation, ids)
        self.clock.shift(timedelta(seconds=47, microseconds=118_233))
        sent = body if body or operation.body else None
        answer = self.api.call(operation.method, path, sent, query=query or "")
        assert answer.status < 300, f"{operation_id}: {answer}"
        target = path + (f"?{urlencode(query)}" if query else "")
        request = {"method": operation.method, "path": target} | ({} if sent is None else {"request": sent})
        self.examples[operation_id] = request | recorded(answer)


def recorded(answer: Answer) -> dict[str, Any]:
    """What is kept of an answer."""
    headers = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
    if TOKEN.search(answer.body.decode()):
        del headers["etag"]  # it follows from the token, which is random
    return {"status": answer.status, "headers": headers} | ({"response": answer.json} if answer.body else {})


def record(database: str) -> str:
    """Live through the day on a migrated, empty database; return the examples as the package holds them."""
    with time_machine.travel(MORNING, tick=False) as clock:
        app = open_app(database)
        studio = open_studio(app.store)
        api = ApiClient(app, ContractChecker(), studio)
        save_samples(app.store, studio)
        recorder = Recorder(api, clock)
        day(recorder.show)
        answers = {answer.code: recorded(answer) for answer in refusals(api, studio)}
        errors = {code: answers.pop(code) for code in STATUS}
        assert not answers
        app.store.engine.close()
    text = json.dumps({"operations": recorder.examples, "errors": errors}, indent=1, ensure_ascii=False)
    text = TOKEN.sub(SHOWN_TOKEN, SECRET.sub(SHOWN_SECRET, text))
    return REQUEST_ID.sub(SHOWN_REQUEST_ID, text).replace(studio["key"][:8], SHOWN_KEY) + "\n"
