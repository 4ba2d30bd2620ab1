"""One limit for many processes, with a real Valkey and without it."""

import itertools
import multiprocessing
import re
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
import time_machine
from testing.process import PATIENCE, at_once, until

from retainer.identity.sign_in.throttle import SharedFailures
from retainer.kernel.limits import WINDOW_SECONDS
from retainer.kernel.limits_valkey import PREFIX, TIMEOUT_SECONDS, SharedWindow
from tests.length import length, only_full
from tests.skips import find_program
from tests.valkey_process import ValkeyProcess, relay, shared_by, until_shared

COMMANDS = "+evalsha +script|load +time +lindex +llen +ltrim +rpush +pexpire +pttl +get +set +del +select"
"""What a user of Valkey must be allowed to do, as docs/scaling.md says."""
CHANGES = ["Valkey is out of reach", "Valkey is back"]


@pytest.fixture
def process(valkey_process):
    """The Valkey that tests share, empty."""
    valkey_process.client.flushall()
    return valkey_process


@pytest.fixture
def disposable_process(tmp_path):
    """A Valkey that a test may end as it likes."""
    process = ValkeyProcess(tmp_path)
    yield process
    process.kill()


@pytest.fixture
def open_window():
    """Opens windows, each with a list of its warnings; after the test their connections close."""
    windows = []

    def opening(url, timeout=PATIENCE):
        warnings = []
        windows.append(SharedWindow(url, warnings.append, timeout=timeout))
        return windows[-1], warnings

    yield opening
    for window in windows:
        window._client.close()  # noqa: SLF001  # or a collection of garbage closes them, with a warning in any test


@pytest.fixture
def two_windows(process, open_window):
    """The windows of two servers with one Valkey."""
    return [open_window(process.url)[0] for _ in range(2)]


def subjects(warnings):
    """What each warning is about."""
    return [re.split(r" \(|\. ", text)[0] for text in warnings]


def hits_of_a_process(url, key, count, limit):
    """Hit a key from four threads; return what remained after admitted hits, the waits of the others, and warnings."""
    warnings = []
    window = SharedWindow(url, warnings.append, timeout=PATIENCE)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: window.hit(key, limit), range(count)))
    waits = [allowance.retry_after for allowance in found if allowance.retry_after is not None]
    return [allowance.remaining for allowance in found if allowance.retry_after is None], waits, warnings


@only_full
def test_of_a_thousand_hits_of_four_processes_exactly_six_hundred_are_admitted(process):
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        for turn in range(length(20)):
            parts = [pool.submit(hits_of_a_process, process.url, f"turn {turn}", 250, 600) for _ in range(4)]
            remaining, waits, warnings = zip(*(part.result() for part in parts), strict=True)
            assert warnings == ([], [], [], [])
            assert sorted(itertools.chain(*remaining)) == list(range(600)), "each is handed out once"
            assert all(1 <= wait <= WINDOW_SECONDS for wait in itertools.chain(*waits))


def test_a_key_takes_little_memory_and_expires_by_itself(process):
    with shared_by(process) as (clock, window):
        for _ in range(700):
            window.hit("k", 600)
        key = PREFIX + "k"
        assert process.windows() == {"k": 600}
        assert process.client.memory_usage(key) < 12 * 600
        assert 0 < process.client.pttl(key) <= WINDOW_SECONDS * 1000
        clock.wait(30)
        window.hit("k", 600, amount=0)
        window.hit("k", 600)
        assert process.client.pttl(key) <= (WINDOW_SECONDS - 30) * 1000, "only an admitted hit makes it last"
        clock.wait(30)
        assert process.windows() == {}


def test_a_request_is_one_call_about_one_key_and_a_forgotten_script_is_sent_again(process, open_window):
    window, _ = open_window(process.url)
    process.client.config_resetstat()
    for _ in range(10):
        window.hit("k", 600)
    called = process.info("commandstats")
    assert called["cmdstat_evalsha"]["calls"] == 10
    inside = {"time", "lindex", "llen", "rpush", "pexpire"}
    assert set(called) == {f"cmdstat_{name}" for name in ("evalsha", "config|resetstat", *inside)}
    process.client.script_flush()
    assert window.hit("k", 600).remaining == 600 - 11
    assert process.windows() == {"k": 11}


def test_the_clocks_of_the_servers_do_not_matter(process):
    with shared_by(process) as (_, window):
        real = time.time()
        for hours in (0, 5, -5):
            with time_machine.travel(real + hours * 3600):
                allowance = window.hit("k", 3)
            assert allowance.retry_after is None
            assert real < allowance.reset < real + 2 * WINDOW_SECONDS
        assert window.hit("k", 3).retry_after is not None


@pytest.mark.parametrize(("back", "remaining"), [(-0.5, 0), (0.5, 0), (30, 599), (3600, 599)])
def test_a_clock_of_valkey_that_is_set_back_locks_nobody_out(process, two_windows, back, remaining):
    first, other = two_windows
    for _ in range(599):
        first.hit("k", 600)
    process.age(-back)
    assert other.hit("k", 600).remaining == remaining
    if not remaining:
        assert other.hit("k", 600).retry_after <= WINDOW_SECONDS + 1


def test_no_process_admits_more_than_the_limit_when_valkey_forgets(process, two_windows):
    first, other = two_windows
    for _ in range(5):
        assert first.hit("k", 5).retry_after is None
    assert other.hit("k", 5).retry_after is not None
    process.client.flushall()
    assert 1 <= first.hit("k", 5).retry_after <= WINDOW_SECONDS
    assert other.hit("k", 5).remaining == 4


def test_a_valkey_that_hangs_is_asked_a_few_times_and_its_late_answers_reach_nobody(disposable_process, open_window):
    window, warnings = open_window(disposable_process.url, TIMEOUT_SECONDS)
    until_shared(window)
    at_once(16, lambda _: window.hit("a", 3000), 600)
    until_shared(window)
    disposable_process.client.config_resetstat()
    disposable_process.hang()
    found = at_once(16, lambda _: window.hit("a", 3000), 600)
    assert [allowance.retry_after for allowance in found] == [None] * 600
    assert not window.is_shared
    for _ in range(700):
        last = window.hit("b", 600)
    assert last.retry_after is not None, "the process limits"
    disposable_process.go_on()
    until_shared(window)
    assert disposable_process.calls() < 200, "few of 1,300 requests asked"
    for number in range(40):
        assert window.hit(f"c{number}", 9).remaining == 8
    until_shared(window)
    assert subjects(warnings) == CHANGES * (len(warnings) // 2)


def test_connections_that_went_silent_are_not_used_again(process, open_window):
    with relay(process) as network:
        window, _ = open_window(f"valkey://127.0.0.1:{network.port}", TIMEOUT_SECONDS)
        until(lambda: at_once(8, lambda _: window.hit("a", 3000), 40) and network.connections >= 4, "some are open")
        until_shared(window)
        network.cut_off()
        window.hit("a", 3000)
        assert not window.is_shared
        until_shared(window)
        at_once(8, lambda _: window.hit("a", 3000), 40)
        assert network.unanswered <= 1, "the others were closed"


def test_each_change_is_said_once_and_a_valkey_that_holds_nothing_is_taken_as_it_is(disposable_process, open_window):
    window, warnings = open_window(disposable_process.url)
    for _ in range(3):
        assert window.hit("k", 600).remaining == 599
        disposable_process.kill()
        at_once(16, lambda _: window.hit("other", 600), 100)
        disposable_process.start()
        until_shared(window)
        assert disposable_process.windows() == {}
    assert subjects(warnings) == CHANGES * 3


@pytest.mark.parametrize("setting", ["maxmemory", "min-replicas-to-write"])
def test_a_valkey_that_takes_no_writes_is_out_of_reach_until_it_does(disposable_process, open_window, setting):
    window, warnings = open_window(disposable_process.url)
    disposable_process.client.config_set(setting, "1")
    before = disposable_process.calls()
    assert window.hit("k", 600).remaining == 599
    until(lambda: window.hit("k", 10**6) and disposable_process.calls() >= before + 3, "Valkey was asked again, twice")
    assert not window.is_shared
    disposable_process.client.config_set(setting, "0")
    until_shared(window)
    assert subjects(warnings) == CHANGES


def test_a_server_starts_without_valkey_and_finds_it_later(disposable_process, open_window):
    disposable_process.kill()
    window, warnings = open_window(disposable_process.url)
    assert not window.is_shared
    assert window.hit("k", 1).retry_after is None
    assert window.hit("k", 1).retry_after is not None
    disposable_process.start()
    until_shared(window)
    assert subjects(warnings) == CHANGES


def test_a_server_without_requests_finds_valkey_by_its_sweep(disposable_process, open_window):
    disposable_process.kill()
    window, warnings = open_window(disposable_process.url)
    disposable_process.start()
    until(lambda: window.sweep() or window.is_shared, "requests are limited together")
    assert subjects(warnings) == CHANGES


def test_a_user_needs_few_rights_and_a_wrong_password_is_not_shown(disposable_process, open_window):
    rights = ("reset", "on", ">s3cr3t/?", f"~{PREFIX}*", *COMMANDS.split())
    disposable_process.client.execute_command("ACL", "SETUSER", "office", *rights)
    address = f"127.0.0.1:{disposable_process.port}"
    window, warnings = open_window(f"valkey://office:s3cr3t%2F%3F@{address}")
    for seconds in (40, 30, -3600):
        window.hit("k", 9)
        disposable_process.age(seconds)
    assert window.hit("k", 9).retry_after is None
    failures = SharedFailures(window)
    for _ in range(2):
        failures.hit("k", 9)
        failures.forgive("k", 1)
    assert (window.is_shared, warnings) == (True, [])
    other, warnings = open_window(f"valkey://office:wrong-one@{address}")
    assert not other.is_shared
    assert "invalid username-password pair" in warnings[0]
    assert "wrong-one" not in warnings[0]


def test_a_number_in_the_address_is_a_database_with_windows_of_its_own(process, two_windows, open_window):
    elsewhere, _ = open_window(process.url.replace("/0", "/1"))
    assert [window.hit("k", 9).remaining for window in (*two_windows, elsewhere)] == [8, 7, 8]


def test_what_is_no_valkey_disturbs_no_request(open_window):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        window, warnings = open_window(f"valkey://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()
    assert window.hit("k", 5).remaining == 4
    assert not window.is_shared
    assert subjects(warnings) == CHANGES[:1]


@pytest.fixture
def tls_port(process, tmp_path, monkeypatch):
    """A port at which Valkey is reached by TLS, as localhost; the certificate is trusted."""
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -keyout key.pem -out cert.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    words = [find_program("openssl"), "req", *options.split(), *names]
    subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with relay(process, context) as found:
        yield found.port


def test_by_tls_the_certificate_must_name_the_host(tls_port, open_window):
    named, warnings = open_window(f"valkeys://localhost:{tls_port}")
    assert [named.hit("k", 2).remaining for _ in range(2)] == [1, 0]
    assert (named.is_shared, warnings) == (True, [])
    other, warnings = open_window(f"valkeys://127.0.0.1:{tls_port}")
    assert not other.is_shared
    assert "certificate verify failed" in warnings[0]
