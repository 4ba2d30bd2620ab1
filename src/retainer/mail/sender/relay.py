"""The relay: the operator's mail server, and the dialogue that hands one message over to it (RFC 5321)."""

import smtplib
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

STEP_SECONDS = 30
"""How long the server may be silent."""
BEGIN_SECONDS = 90
"""Time limit of a dialogue until the message is sent, however the server spreads its replies."""
SLOWEST = 50_000
"""Bytes of a message that a line takes in a second at least."""
END_SECONDS = 300
"""How long it may take to accept a message that it has received: an end that comes too early sends it twice."""
MAX_REPLIES = 64 * 1024
"""Bytes of all replies of a dialogue: an endless one would fill the memory."""
PORTS = {"smtp": 587, "smtps": 465}
MAX_REPLY = 300
"""Characters of a reply that are kept."""
READY, DONE, GO_ON = 220, 250, 354
OK = frozenset(range(200, 300))
NOT_SIGNED_IN = 530
UNREACHABLE = "The mail server of this installation cannot be reached, or has ended the connection."
NO_SERVICE = "The mail server of this installation does not take mail at the moment."


class NotTaken(Exception):
    """The server has not taken a message, or has not said so. People of the account read the message.

    `is_final` if the server will never take it; `trouble` is what the operator should know of the server, or empty.
    """

    def __init__(self, message: str, *, is_final: bool = False, trouble: str = "") -> None:
        super().__init__(message)
        self.is_final, self.trouble = is_final, trouble


class Relay(NamedTuple):
    """The mail server of `RETAINER_SMTP_URL`; it says the name of our domain to it."""

    host: str
    port: int
    is_tls: bool
    """Whether TLS begins with the connection."""
    needs_tls: bool
    user: str
    password: str
    sender: str

    @classmethod
    def of(cls, address: str, sender: str) -> Self:
        url = urlsplit(address)
        user, password = unquote(url.username or ""), unquote(url.password or "")
        port = url.port or PORTS[url.scheme]
        return cls(url.hostname or "", port, url.scheme == "smtps", not url.query, user, password, sender)


class Mail(NamedTuple):
    """A message as it is sent: its size, and its bytes in pieces that end with a line."""

    size: int
    pieces: Iterable[bytes]


def longest_dialogue(size: int) -> float:
    """Return the seconds after which a dialogue that hands over this number of bytes has ended."""
    return BEGIN_SECONDS + STEP_SECONDS + size / SLOWEST + END_SECONDS


class Dialogue:
    """A connection that hands over one message; another thread may end it."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self._server = smtplib.SMTP(local_hostname=relay.sender.rpartition("@")[2], timeout=STEP_SECONDS)
        self._is_ended = False
        self._timer = threading.Timer(0, self.end)

    def end(self) -> None:
        """End the connection in whatever step it is."""
        self._is_ended = True
        if self._server.sock is not None:
            with suppress(OSError):
                self._server.sock.shutdown(socket.SHUT_RDWR)

    def send(self, recipient: str, message: Mail) -> None:
        """Hand a message over; the server has accepted it. Raises NotTaken."""
        self._allow(BEGIN_SECONDS)
        try:
            self._open()
            self._hand_over(recipient, message)
        except NotTaken:
            with suppress(smtplib.SMTPException, OSError):
                self._server.quit()
            raise
        except smtplib.SMTPAuthenticationError as error:
            reason = _text(error.smtp_error)
            for secret in relay_secrets(self.relay):  # which a server can repeat
                reason = reason.replace(secret, "…")
            raise NotTaken(NO_SERVICE, trouble=f"It refuses the user: {reason}") from None
        except smtplib.SMTPNotSupportedError:
            raise NotTaken(
                NO_SERVICE, trouble="It offers no way to sign in, but RETAINER_SMTP_URL has a user."
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise NotTaken(NO_SERVICE, trouble=f"Its certificate is not valid: {error.verify_message}.") from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise NotTaken(UNREACHABLE, trouble=_text(str(error))) from None
        finally:
            self._timer.cancel()
            self._server.close()

    def _allow(self, seconds: float) -> None:
        """End the connection after some seconds, unless the next step has begun then."""
        self._timer.cancel()
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True
        self._timer.start()

    def _open(self) -> None:
        relay, server = self.relay, self._server
        context = ssl.create_default_context()
        connection = socket.create_connection((relay.host, relay.port), STEP_SECONDS)
        self._use(connection)
        if self._is_ended:
            raise ConnectionAbortedError
        if relay.is_tls:
            self._use(context.wrap_socket(connection, server_hostname=relay.host))
        self._expect({READY}, *server.getreply())
        server.ehlo_or_helo_if_needed()
        if relay.needs_tls and not relay.is_tls:
            if not server.has_extn("starttls"):
                advice = "Use smtps://, or ?tls=none if the server is on this machine"
                raise NotTaken(NO_SERVICE, trouble=f"It offers no TLS on port {relay.port}. {advice}.")
            self._expect({READY}, *server.docmd("STARTTLS"))
            self._use(context.wrap_socket(connection, server_hostname=relay.host))  # what came before may be forged
            server.ehlo_resp = server.helo_resp = None
            server.ehlo()
        if relay.user:
            self._sign_in()

    def _use(self, connection: socket.socket) -> None:
        self._server.sock, self._server.file = connection, Replies(connection)

    def _sign_in(self) -> None:
        """Sign in, also with letters that the standard library does not send (RFC 4616). Raises SMTPException."""
        relay, server = self.relay, self._server
        if (relay.user + relay.password).isascii():
            server.login(relay.user, relay.password)
            return
        code, reply = server.docmd("AUTH", f"PLAIN {plain_sign_in(relay)}")
        if code not in OK:
            raise smtplib.SMTPAuthenticationError(code, reply)

    def _hand_over(self, recipient: str, message: Mail) -> None:
        server = self._server
        size = [f"size={message.size}"] if server.has_extn("size") else []
        code, reply = server.mail(self.relay.sender, size)
        if code == 552:
            raise NotTaken(f"The mail server takes no message of this size: {_text(reply)}", is_final=True)
        self._expect(OK, code, reply)
        code, reply = server.rcpt(recipient)
        if code not in OK:
            raise self._refused("this address", code, reply)
        self._expect({GO_ON}, *server.docmd("DATA"), of_message=True)
        self._allow(STEP_SECONDS + message.size / SLOWEST)
        for piece in message.pieces:
            lines = piece.replace(b"\n.", b"\n..")
            server.send(b"." + lines if lines.startswith(b".") else lines)
        self._allow(END_SECONDS)
        if server.sock is not None:
            server.sock.settimeout(END_SECONDS)
        server.send(b".\r\n")
        code, reply = server.getreply()
        if code not in OK:
            raise self._refused("the message", code, reply)
        if server.sock is not None:
            server.sock.settimeout(1)  # the message is accepted, whatever follows
        with suppress(smtplib.SMTPException, OSError):
            server.quit()

    def _expect(self, codes: frozenset[int] | set[int], code: int, reply: bytes, *, of_message: bool = False) -> None:
        if code not in codes:
            if of_message:
                raise self._refused("the message", code, reply)
            raise NotTaken(NO_SERVICE, trouble=f"It answers {code} {_text(reply)}")

    def _refused(self, what: str, code: int, reply: bytes) -> NotTaken:
        if code == NOT_SIGNED_IN:
            return NotTaken(NO_SERVICE, trouble=f"It answers {code} {_text(reply)}")
        is_final = 500 <= code < 600
        verb = "refuses" if is_final else "does not take"
        end = "" if is_final else " yet"
        return NotTaken(f"The mail server {verb} {what}{end}: {code} {_text(reply)}", is_final=is_final)


class Replies:
    """What a server sends in a connection, of which a limited part is read: its end follows."""

    def __init__(self, connection: socket.socket) -> None:
        self._file, self._left = connection.makefile("rb"), MAX_REPLIES

    def readline(self, size: int) -> bytes:
        line = self._file.readline(min(size, self._left))
        self._left -= len(line)
        return line

    def close(self) -> None:
        self._file.close()


def plain_sign_in(relay: Relay) -> str:
    return b64encode(f"\0{relay.user}\0{relay.password}".encode()).decode()


def relay_secrets(relay: Relay) -> list[str]:
    """Return the password in each form in which it is sent."""
    return [plain_sign_in(relay), b64encode(relay.password.encode()).decode(), relay.password]


def _text(reply: bytes | str) -> str:
    """Return a reply as people read it, on one line."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:MAX_REPLY]
