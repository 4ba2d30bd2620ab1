"""The spare thread, on a socket that several workers share."""

import socket
import threading

import pytest

from retainer.kernel.http import Request
from retainer.server.http import spare_thread
from retainer.server.http.slots import BODY_SLOTS, BodyReader, RunningSlots
from retainer.server.http.spare_thread import SpareThread
from retainer.settings import Settings


class SlowBody:
    """A body that arrives when it is told to."""

    def __init__(self):
        self.is_waited_for, self.arrives = threading.Event(), threading.Event()

    def read(self, _size):
        self.is_waited_for.set()
        self.arrives.wait(30)
        return b"{}"


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as opened:
        opened.settimeout(30)
        yield opened


@pytest.fixture
def bodies(listener):
    """A reader of bodies, and the thread that asks whenever all its threads wait."""
    reader = BodyReader(RunningSlots(4))
    spare = SpareThread(listener, reader.running)
    spare.start()
    yield reader
    spare.stop()


def wait_for(bodies, body):
    environ = {
        "CONTENT_LENGTH": "2",
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": body,
    }
    with bodies.running:
        assert bodies.read(Request(environ, Settings()), 1) == b"{}"


def asked(listener):
    """A connection whose request has come."""
    link, _ = listener.accept()
    assert link.recv(1000) == spare_thread.REQUEST
    return link


def answer(link):
    with link:
        link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")


def test_it_asks_until_a_thread_of_its_own_process_answers(listener, bodies):
    first, second = SlowBody(), SlowBody()

    def answer_and_wait():
        spare_thread.page(bodies.running)
        answer(link)
        wait_for(bodies, second)

    threads = [threading.Thread(target=wait_for, args=(bodies, first)), threading.Thread(target=answer_and_wait)]
    threads[0].start()
    assert first.is_waited_for.wait(30)
    for _ in range(3):
        answer(asked(listener))  # another worker has answered
    link = asked(listener)
    assert bodies.running.is_short
    threads[1].start()
    assert second.is_waited_for.wait(30)
    assert bodies.running.is_short, "both threads known wait"
    asked(listener).close()
    for body, thread in zip((first, second), threads, strict=True):
        body.arrives.set()
        thread.join(30)
    assert bodies.free == BODY_SLOTS
