"""A mail server on a loopback address, which can refuse, stall or end the connection at each step of a dialogue."""

import contextlib
import email
import email.policy
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from typing import NamedTuple

from retainer.mail.sender.loop import Mailer
from retainer.server.renderers import RendererPool

SENDER = "mail@retainer.example"
CUT, STALL, LOSE = "cut", "stall", "lose the reply"
"""What a server can do instead of a reply: end the connection, say nothing, or accept a message and end it."""
STEPS = ("connect", "ehlo", "mail", "rcpt", "data", "body", "end")
"""The steps of a dialogue: `body` is in the middle of the message, and `end` is after it."""


class Got(NamedTuple):
    """A message that the server has accepted."""

    recipient: str
    sender: str
    content: bytes

    @property
    def message(self) -> EmailMessage:
        return email.message_from_bytes(self.content, policy=email.policy.default)

    @property
    def message_id(self) -> str:
        return str(self.message["Message-ID"])


class MailServer:
    """Keeps what it accepts. `answer` returns for a step and its recipient a reply, CUT, STALL, LOSE, or None."""

    def __init__(self, *, context: ssl.SSLContext | None = None, is_tls: bool = False, user: str = "") -> None:
        self.got: list[Got] = []
        self.answer: Callable[[str, str], str | None] = lambda *_: None
        self.context, self.is_tls, self.user = context, is_tls, user
        self.signed_in: list[str] = []
        self.announced: list[int] = []
        """The size of each message, as the client has announced it."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?tls=none"

    def close(self) -> None:
        """Die: refuse connections, and end those that are open."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        talk = Talk(self, connection)
        with contextlib.suppress(OSError):
            talk.run()
        self._open.discard(connection)
        talk.connection.close()
        connection.close()


class Cut(OSError):
    """The server ends the connection."""


class Talk:
    """A dialogue with one client."""

    def __init__(self, server: MailServer, connection: socket.socket) -> None:
        self.server, self.connection = server, connection
        self.recipient = self.sender = ""

    def run(self) -> None:
        if self.server.is_tls:
            self._secure()
        self.reader = self.connection.makefile("rb")
        self._reply("connect", "220 mail.example")
        while line := self.reader.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            if verb.upper() == "QUIT":
                self._send("221 bye")
                return
            getattr(self, verb.lower())(rest)

    def ehlo(self, _: str) -> None:
        offered = ["STARTTLS"] if self.server.context and not self.server.is_tls else []
        offered += ["AUTH PLAIN"] if self.server.user else []
        self._reply("ehlo", "\r\n".join([*(f"250-{each}" for each in ("mail.example", *offered)), "250 SIZE 40000000"]))

    helo = ehlo

    def starttls(self, _: str) -> None:
        self._send("220 go on")
        self._secure()
        self.reader = self.connection.makefile("rb")

    def _secure(self) -> None:
        assert self.server.context is not None
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)

    def auth(self, rest: str) -> None:
        self.server.signed_in.append(rest.partition(" ")[2])
        self._reply("auth", "235 welcome")

    def mail(self, rest: str) -> None:
        if size := rest.partition("size=")[2]:  # which clients do not send if the answer to EHLO was a trouble
            self.server.announced.append(int(size))
        self.sender = rest.partition("<")[2].partition(">")[0]
        self._reply("mail", "250 ok")

    def rcpt(self, rest: str) -> None:
        self.recipient = rest.partition("<")[2].partition(">")[0]
        self._reply("rcpt", "250 ok")

    def rset(self, _: str) -> None:
        self._send("250 ok")

    def data(self, _: str) -> None:
        if not self._reply("data", "354 go on"):
            return
        lines: list[bytes] = []
        while (line := self.reader.readline()) != b".\r\n":
            if not line:
                raise Cut
            lines.append(line[1:] if line.startswith(b".") else line)
            if len(lines) == 5 and self.server.answer("body", self.recipient) in {CUT, STALL}:
                self._do(self.server.answer("body", self.recipient))
        answer = self.server.answer("end", self.recipient)
        if answer is None or answer == LOSE:
            self.server.got.append(Got(self.recipient, self.sender, b"".join(lines)))
        self._do(answer)
        self._send(answer or "250 accepted")

    def _reply(self, step: str, usual: str) -> bool:
        answer = self.server.answer(step, self.recipient)
        self._do(answer)
        self._send(answer or usual)
        return answer is None

    def _do(self, answer: str | None) -> None:
        if answer in {CUT, LOSE}:
            raise Cut
        if answer == STALL:
            self.connection.recv(1)  # until the client has ended the connection
            raise Cut

    def _send(self, text: str) -> None:
        self.connection.sendall(f"{text}\r\n".encode())


class Post:
    """A mailer of an application, and the mail server that it uses; `send` sends what is due, once."""

    def __init__(self, api, server: MailServer | None = None, url: str = "") -> None:
        self.api, self.server, self.pool = api, server or MailServer(), RendererPool()
        self.url = url or self.server.url
        self.failures: list[tuple[str, BaseException]] = []
        self.notices: list[str] = []

    def mailer(self) -> Mailer:
        settings = replace(self.api.app.settings, smtp_url=self.url, mail_from=SENDER)
        return Mailer(
            self.api.store,
            settings,
            self.pool.run,
            lambda what, error: self.failures.append((what, error)),
            self.notices.append,
        )

    def send(self) -> int:
        """Send what is due; return the number of attempts."""
        count = self.mailer().run_once()
        assert self.failures == []
        return count

    def close(self) -> None:
        self.pool.close()
        self.server.close()

    def messages(self, **query):
        """The messages of the account, oldest first."""
        return self.api.get("/messages", {"sort": "created_at", "per_page": 100, **query}).data
