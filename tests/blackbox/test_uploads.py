"""Files of a real server: many large ones take little memory when they come and go, and a broken one leaves nothing."""

import hashlib
import http.client
import socket
import time
from contextlib import ExitStack, closing

from testing.process import at_once, children, resident, running, with_database

from retainer.kernel.uploads import MAX_FILE_BYTES
from retainer.settings import BASE_PATH
from tests.length import IS_FULL

COUNT = 24 if IS_FULL else 8
PIECE = bytes(range(256)) * 1024
MOST_BYTES = 100 * 1024 * 1024
"""How much more memory the server may take while the uploads run."""
HEAD = (
    '--limit\r\nContent-Disposition: form-data; name="record"\r\n\r\nclient\r\n'
    '--limit\r\nContent-Disposition: form-data; name="record_id"\r\n\r\n{}\r\n'
    '--limit\r\nContent-Disposition: form-data; name="content"; filename="scan.bin"\r\n\r\n'
)
TAIL = b"\r\n--limit--\r\n"


def memory(server):
    return sum(map(resident, [server.process.pid, *children(server.process.pid)]))


def upload(server, key, client_id, *, is_broken=False):
    """Send a file of the maximum size; return the status and the body of the response."""
    head = HEAD.format(client_id).encode()
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "multipart/form-data; boundary=limit",
        "Content-Length": str(len(head) + MAX_FILE_BYTES + len(TAIL)),
    }
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:
        connection.putrequest("POST", f"{BASE_PATH}/files")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(head)
        for _ in range(MAX_FILE_BYTES // len(PIECE) // (2 if is_broken else 1)):
            connection.send(PIECE)
        if is_broken:
            return 0
        connection.send(TAIL)
        response = connection.getresponse()
        response.read()
        return response.status


def test_many_large_files_at_once_take_little_memory(tmp_path):
    with running(with_database(tmp_path), RETAINER_MAX_FILE_MB="4000") as server:
        agency = server.agency("North", "agency")
        with server.client(agency["key"]) as client:
            record = client.post("/clients", {"name": "Bergmann Optik"}).data["id"]
            assert upload(server, agency["key"], record) == 201
            before, highest = memory(server), []

            def send(_):
                for _ in range(20):  # the only writer of the embedded database is busy for a while
                    status = upload(server, agency["key"], record)
                    highest.append(memory(server))
                    if status != 503:
                        break
                    time.sleep(2)
                return status

            statuses = at_once(COUNT, send)
            assert statuses == [201] * COUNT
            assert max(highest) - before < MOST_BYTES, [each - before for each in highest]
            assert client.get("/files").json["meta"]["total"] == COUNT + 1
            digest = hashlib.sha256(PIECE * (MAX_FILE_BYTES // len(PIECE))).hexdigest()
            assert {each["sha256"] for each in client.get("/files").data} == {digest}


def begin_download(server, key, file_id):
    """Ask for a file, and take no more of it than the beginning of the response; return the connection."""
    request = (
        f"GET {BASE_PATH}/files/{file_id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        "Accept: application/octet-stream\r\n\r\n"
    )
    link = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    link.sendall(request.encode())
    assert link.recv(12) == b"HTTP/1.1 200"
    return link


def test_many_clients_that_take_a_large_file_slowly_take_little_memory(tmp_path):
    with running(with_database(tmp_path)) as server, ExitStack() as links:
        agency = server.agency("North", "agency")
        with server.client(agency["key"]) as client:
            record = client.post("/clients", {"name": "Bergmann Optik"}).data["id"]
            assert [upload(server, agency["key"], record) for _ in range(2)] == [201, 201]
            before = memory(server)
            slow = [
                links.enter_context(begin_download(server, agency["key"], number % 2 + 1)) for number in range(COUNT)
            ]
            assert memory(server) - before < MOST_BYTES
            assert b"".join(take(slow[-1])) == PIECE * (MAX_FILE_BYTES // len(PIECE))


def take(link):
    """Yield what comes until the file is whole."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += link.recv(4096)
    _, _, part = head.partition(b"\r\n\r\n")
    yield part
    left = MAX_FILE_BYTES - len(part)
    while left:
        part = link.recv(1 << 20)
        assert part, f"{left} bytes are missing"
        left -= len(part)
        yield part


def test_a_file_whose_connection_breaks_leaves_nothing(tmp_path):
    with running(with_database(tmp_path)) as server:
        agency = server.agency("North", "agency")
        with server.client(agency["key"]) as client:
            record = client.post("/clients", {"name": "Bergmann Optik"}).data["id"]
            assert upload(server, agency["key"], record, is_broken=True) == 0
            assert client.get("/files").json["meta"]["total"] == 0
