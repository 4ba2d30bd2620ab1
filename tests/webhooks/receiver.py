"""A receiver of webhooks on a loopback address, and an agency whose webhooks call it."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import NamedTuple

from standardwebhooks import Webhook

from retainer.events.sender.loop import Sender

LOOPBACK = (ip_network("127.0.0.0/8"),)


class Got(NamedTuple):
    """A request that has arrived, and the status that it was answered with."""

    headers: dict
    body: bytes
    status: int

    @property
    def event(self):
        return json.loads(self.body)

    @property
    def message_id(self):
        return self.headers["webhook-id"]


class Listener(ThreadingHTTPServer):
    """Lets connections wait, instead of dropping what its thread has not accepted yet."""

    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A sender that stops hangs up, which is no error of the receiver."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Receiver:
    """Keeps what it gets; `answer` returns the status of a response for an event."""

    def __init__(self):
        self.got = []
        self.answer = lambda _: 200
        self.headers = {}
        self.content = b"thanks"
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.answer(json.loads(body))
                receiver.got.append(Got({name.lower(): text for name, text in self.headers.items()}, body, status))
                self.send_response(status)
                self.send_header("content-length", str(len(receiver.content)))
                for name, text in receiver.headers.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(receiver.content)

            def log_message(self, *_):
                pass

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def accepted(self):
        return [each for each in self.got if 200 <= each.status < 300]

    @property
    def events(self):
        """The ids of the accepted events, in the order in which they arrived."""
        return [each.event["id"] for each in self.accepted]

    def fail(self, status=500, *, events=None):
        """Answer with a status, of these events only if there are any."""
        self.answer = lambda event: status if events is None or event["id"] in events else 200

    def recover(self):
        self.answer = lambda _: 200

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Hooked:
    """A webhook of an agency, its secret and its receiver; `send` sends what is due, once."""

    def __init__(self, api, **members):
        self.api, self.receiver = api, Receiver()
        made = api.post("/webhooks", {"url": self.receiver.url, **members})
        self.id, self.secret = made.data["id"], made.json["meta"]["secret"]
        self.path = f"/webhooks/{self.id}"
        self.failures, self.notices = [], []

    def sender(self, store=None):
        return Sender(
            store or self.api.store,
            LOOPBACK,
            "",
            lambda what, error: self.failures.append((what, error)),
            self.notices.append,
        )

    def send(self):
        """Send what is due; return the number of attempts."""
        count = self.sender().run_once()
        assert self.failures == []
        return count

    def read(self):
        return self.api.get(self.path).data

    def deliveries(self, **query):
        """The deliveries, oldest first."""
        return self.api.get(f"{self.path}/deliveries", {"per_page": 100, "sort": "id", **query}).data

    def verify(self, got, secret=None):
        return Webhook(secret or self.secret).verify(got.body, got.headers)
