"""Dialogues with mail servers that break the rules: each ends in time and in little memory, and gives nothing away."""

import contextlib
import socket
import threading
import time
import tracemalloc

import pytest
from testing.process import PATIENCE

from retainer.mail.sender import relay
from retainer.mail.sender.relay import Dialogue, Mail, NotTaken, Relay
from tests.mail.server import SENDER, MailServer

LINES = Mail(12, [b"Subject: x\r\n"])
PASSWORD = "unser Päßwort"


@pytest.fixture
def server():
    made = MailServer()
    yield made
    made.close()


@contextlib.contextmanager
def answering(talk, **options):
    """A server that calls `talk` with each connection; yield its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    for name, value in options.items():
        listener.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    talk(connection)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def send(port, message=LINES, *, user="", host="127.0.0.1"):
    """Hand a message over; return why it was not taken, for people and for the operator."""
    url = f"smtp://{user}{host}:{port}?tls=none"
    try:
        Dialogue(Relay.of(url, SENDER)).send("jo@x.example", message)
    except NotTaken as error:
        return str(error), error.trouble
    return None


def endless(line, pause=0.0):
    def talk(connection):
        while True:
            connection.sendall(line)
            time.sleep(pause)

    return talk


@pytest.mark.parametrize("line", [b"220-still\r\n" * 6000, b"2" * 65536], ids=["lines", "line"])
def test_a_reply_that_never_ends_is_not_read_to_its_end(line):
    with answering(endless(line)) as port:
        tracemalloc.start()
        said, trouble = send(port)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert said == relay.UNREACHABLE
    assert len(trouble) <= relay.MAX_REPLY
    assert peak < 2 * relay.MAX_REPLIES + 300_000


def test_a_reply_that_comes_drop_by_drop_has_to_end_in_time(monkeypatch):
    monkeypatch.setattr(relay, "BEGIN_SECONDS", 0.5)
    with answering(endless(b"2", 0.05)) as port:
        began = time.monotonic()
        assert send(port) is not None
    assert time.monotonic() - began < PATIENCE


def test_a_slow_line_may_take_longer_than_a_step_for_all_of_a_message(monkeypatch):
    monkeypatch.setattr(relay, "SLOWEST", 1000)
    pieces, read = [b"x" * 65534 + b"\r\n"] * 60, bytearray()

    def talk(connection):
        for reply in (b"220 a\r\n", b"250 a\r\n", b"250 a\r\n", b"250 a\r\n", b"354 a\r\n"):
            if reply.startswith(b"354"):  # from now on: the steps before it may take as long as they do
                monkeypatch.setattr(relay, "STEP_SECONDS", 0.6)
            connection.sendall(reply)
            read[:] = connection.recv(100)
        while not read.endswith(b"\r\n.\r\n"):
            time.sleep(0.02)
            read.extend(connection.recv(65536))
        connection.sendall(b"250 a\r\n")

    with answering(talk, SO_RCVBUF=65536) as port:
        assert send(port, Mail(sum(map(len, pieces)), pieces)) is None
    assert bytes(read) == b"".join(pieces) + b".\r\n"


def test_lines_that_begin_with_a_dot_arrive_wherever_pieces_end(server):
    pieces = [b".\r\n", b"..\r\na.\r\n", b".b\r\n.\r\n", b".\r\n"]
    assert send(server.port, Mail(20, pieces)) is None
    assert server.got[0].content == b"".join(pieces)


@pytest.mark.parametrize("refusal", ["535 wrong: {}", "535-wrong\r\n535 {}"])
def test_a_server_that_repeats_the_password_does_not_show_it_to_anyone(server, refusal):
    server.user = "me"
    seen = []

    def answer(step, _):
        seen.extend(server.signed_in)
        return refusal.format(f"{server.signed_in[-1]} {PASSWORD}") if step == "auth" else None

    server.answer = answer
    said, trouble = send(server.port, user="me:unser%20P%C3%A4%C3%9Fwort@")
    assert said == relay.NO_SERVICE
    assert trouble.startswith("It refuses the user: wrong")
    assert PASSWORD not in trouble
    assert seen[-1] not in trouble


def test_a_password_with_umlauts_signs_in(server):
    server.user = "me"
    assert send(server.port, user="me:unser%20P%C3%A4%C3%9Fwort@") is None
    assert server.signed_in == ["AG1lAHVuc2VyIFDDpMOfd29ydA=="]


def test_a_server_without_sign_in_is_named_to_the_operator_and_gets_no_mail(server):
    said, trouble = send(server.port, user="me:secret@")
    assert (said, server.got) == (relay.NO_SERVICE, [])
    assert trouble == "It offers no way to sign in, but RETAINER_SMTP_URL has a user."


def test_a_server_that_is_full_at_its_greeting_is_tried_later(server):
    server.answer = lambda step, _: "421 too many connections" if step == "connect" else None
    assert send(server.port) == (relay.NO_SERVICE, "It answers 421 too many connections")


def test_a_name_that_no_name_server_knows_is_told_to_the_operator():
    said, trouble = send(25, host="mail.invalid")
    assert said == relay.UNREACHABLE
    assert trouble
