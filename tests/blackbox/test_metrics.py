"""Metrics: those of all workers on each worker's page, and no data of accounts."""

import json
import os
import re
import signal
import time
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
import time_machine
from prometheus_client.parser import text_string_to_metric_families
from testing.ports import free_port
from testing.process import children, running, until, with_database

from retainer.api import ROUTES
from retainer.server.monitoring.metrics import MetricsPage, SharedMetrics, Storage
from retainer.settings import BASE_PATH
from tests.contract_checker import documented
from tests.databases import any_database, only_sqlite
from tests.length import only_full

READS, REFUSALS = 40, 7


@pytest.fixture(scope="module")
def place(tmp_path_factory, postgresql_databases, valkey_process):
    """A server with two workers, and the port of its metrics."""
    url = postgresql_databases.copy(postgresql_databases.prototype)
    port = free_port()
    settings = {
        "RETAINER_DATABASE_URL": url,
        "RETAINER_VALKEY_URL": valkey_process.url,
        "RETAINER_METRICS": f"127.0.0.1:{port}",
    }
    with running(tmp_path_factory.mktemp("server"), "--workers", 2, **settings) as server:
        yield server, port
    postgresql_databases.discard(url)


def scrape(server, port):
    """Each sample: its name, labels and value."""
    with server.client() as client:
        client.port = port
        answer = client.send("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.body.decode())
    return [sample for family in families for sample in family.samples]


def value(samples, name):
    (sample,) = [sample for sample in samples if sample.name == f"retainer_{name}"]
    return sample.value


def counts(samples):
    return Counter(
        {
            (sample.labels["operation"], sample.labels["status"]): sample.value
            for sample in samples
            if sample.name == "retainer_request_duration_seconds_count"
        }
    )


def send(server, agency):
    """Requests over many connections, so that each worker gets some."""
    for number in range(READS):
        with server.client(agency["key"] if number >= REFUSALS else "rtn_wrong", "127.0.7.7") as client:
            client.get("/clients")
    return Counter({("listClients", "200"): READS - REFUSALS, ("none", "401"): REFUSALS})


@only_full
def test_requests_of_all_workers_add_up_and_outlast_their_deaths_and_renewals(place):
    server, port = place
    agency = server.agency("North & Söhne", "enterprise")
    before = until(lambda: counts(scrape(server, port)), "the request that found the server answering is counted")
    expected = before + send(server, agency)
    until(lambda: counts(scrape(server, port)) == expected, "all requests are counted")
    for death in (1, 2):
        os.kill(children(server.process.pid)[0], signal.SIGKILL)
        until(lambda n=death: value(scrape(server, port), "worker_deaths_total") == n, "the death is counted")
        until(lambda: value(scrape(server, port), "workers") == 2, "the worker is replaced")
        assert counts(scrape(server, port)) == expected
    old = set(children(server.process.pid))
    server.process.send_signal(signal.SIGHUP)
    until(lambda: len(set(children(server.process.pid)) - old) == 2, "the workers are renewed")
    assert counts(scrape(server, port)) == expected
    expected += send(server, agency)
    until(lambda: counts(scrape(server, port)) == expected, "new workers count on")


def test_gauges_tell_the_state_of_all_workers(place):
    server, port = place
    until(lambda: value(scrape(server, port), "request_slots") == 32, "only two workers are left")
    assert value(scrape(server, port), "workers") == 2
    until(lambda: value(scrape(server, port), "requests_running") == 0, "the last request has ended")
    samples = scrape(server, port)
    assert value(samples, "requests_waiting") == value(samples, "log_lines_dropped_total") == 0
    assert value(samples, "limiter_shared") == 1
    assert value(samples, "memory_bytes") > 2 * 10_000_000
    assert 10 < value(samples, "open_files") < value(samples, "open_files_limit")
    assert time.time() - 3600 < value(samples, "start_time_seconds") <= time.time()
    assert value(samples, "database_outage") == value(samples, "database_errors_total") == 0
    with server.client("rtn_" + "0" * 38, "127.0.7.9") as client:
        client.get("/me")
    samples = until(lambda: value(s := scrape(server, port), "database_connections") > 0 and s, "one is noted")
    assert value(samples, "database_connections") >= value(samples, "database_connections_idle") >= 0
    assert value(samples, "monitor_lateness_seconds") == value(samples, "webhook_lateness_seconds") == 0


def test_a_site_that_nobody_checks_and_an_event_that_nobody_sends_are_late(tmp_path):
    port = free_port()
    settings = {"RETAINER_METRICS": f"127.0.0.1:{port}", "RETAINER_MONITOR_ALLOW": "127.0.0.0/8"}
    with running(with_database(tmp_path), "--no-monitor", "--no-webhooks", **settings) as server:

        def lateness(name):
            return value(scrape(server, port), f"{name}_lateness_seconds")

        with server.client(server.agency("North", "enterprise")["key"]) as client:
            client.insist("POST", "/webhooks", {"url": "http://127.0.0.1:9/hooks"})
            assert lateness("webhook") == lateness("monitor") == 0
            client.insist("POST", "/sites", {"url": "https://shop.example"})
        for name in ("webhook", "monitor"):
            until(lambda name=name: lateness(name) > 0.5, f"{name}: something waits")


def test_labels_are_operations_and_statuses_alone(place):
    server, port = place
    operations = {operation.id for operation in ROUTES.operations} | {"none"}
    for sample in scrape(server, port):
        assert set(sample.labels) <= {"le", "operation", "status", "version"}
        assert sample.labels.get("operation", "none") in operations
        assert re.fullmatch("[1-5][0-9][0-9]", sample.labels.get("status", "200"))


def test_metrics_are_not_on_the_public_port_unless_a_setting_says_so(server, tmp_path):
    with server.client() as client:
        assert client.send("GET", "/metrics").status == 404
    with running(with_database(tmp_path), "--no-monitor", RETAINER_METRICS="public") as other:
        samples = scrape(other, other.port)
    assert value(samples, "workers") == 1
    assert [each.name for each in samples if "limiter" in each.name] == [], "there is no Valkey to be out of reach"


def test_failed_attempts_to_sign_in_are_counted(tmp_path):
    port = free_port()
    with running(with_database(tmp_path), "--no-monitor", RETAINER_METRICS=f"127.0.0.1:{port}") as server:
        assert value(scrape(server, port), "sign_in_failures_total") == 0
        with server.client() as client:
            form = b"email=nobody@north.example&password=wrong-password"
            kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{server.port}"}
            assert client.send("POST", "/console/sign-in", form, **kind).status == 422
        until(lambda: value(scrape(server, port), "sign_in_failures_total") == 1, "the failure is counted")


def figures(page):
    """The samples of requests on a page: by name, operation, status and bucket."""
    families = text_string_to_metric_families(page.answer().body.decode())
    found = {}
    for sample in (sample for family in families for sample in family.samples if "request_duration" in sample.name):
        labels = sample.labels
        found[sample.name.rpartition("_")[2], labels["operation"], labels["status"], labels.get("le")] = sample.value
    return found


@any_database
def test_what_the_table_does_not_know_counts_as_other_with_its_time(api):
    metrics = SharedMetrics(ROUTES, 2)
    first, second = metrics.slots
    for slot, operation, status in (
        (first, "listClients", 299),
        (second, "listClients", 299),
        (first, "noSuchOperation", 200),
        (first, None, 999),
        (second, "noSuchOperation", -1),
    ):
        slot.count(operation, status, 7000)
    found = figures(MetricsPage(metrics, api.store))
    counted = {key[1:3]: value for key, value in found.items() if key[0] == "count"}
    assert counted == {("listClients", "other"): 2, ("other", "200"): 1, ("none", "other"): 1, ("other", "other"): 1}
    assert found["sum", "listClients", "other", None] == 0.014
    assert found["bucket", "listClients", "other", "0.005"] == 0
    assert found["bucket", "listClients", "other", "0.01"] == 2


@any_database
def test_every_status_that_the_document_promises_has_figures_of_its_own(api):
    promised = {
        status
        for path in documented()["paths"].values()
        for operation in path.values()
        if isinstance(operation, dict)
        for status in operation.get("responses", {})
    }
    metrics = SharedMetrics(ROUTES, 1)
    for status in promised:
        metrics.slots[0].count("listClients", int(status), 1)
    found = figures(MetricsPage(metrics, api.store))
    assert {key[2] for key in found} == promised


@only_sqlite
def test_a_backup_is_late_once_its_time_has_passed_and_from_the_start_without_one(api, tmp_path):
    settings = replace(api.app.settings, backup_dir=tmp_path, backup_every=Decimal("0.5"))
    with time_machine.travel("2026-03-02T12:00:00Z", tick=False) as clock:
        storage = Storage(settings, api.engine.path)

        def late():
            (value,) = [
                sample.value for each in storage.collect() for sample in each.samples if "backup_late" in sample.name
            ]
            return value

        assert late() == 0
        clock.shift(600)
        assert late() == 600
        (tmp_path / f"{api.engine.path.stem}-20260302T114500Z.db.gz").touch()
        assert late() == 0
        clock.shift(600)
        assert late() == 300
        assert [each.samples[0].value for each in storage.collect() if "backup_age" in each.name] == [35 * 60]
    free, size = (each.samples[0].value for each in storage.collect() if "disk" in each.name)
    assert min(free, size) > 0


def test_every_request_reaches_logs_and_metrics_redirects_included(tmp_path):
    port = free_port()
    with running(with_database(tmp_path), "--no-monitor", RETAINER_METRICS=f"127.0.0.1:{port}") as server:
        agency = server.agency("North", "enterprise")
        with server.client(agency["key"], "127.0.7.8") as client:
            for _ in range(10):
                for target, status in (("/", 302), ("/console/", 303), (f"{BASE_PATH}/clients", 200)):
                    assert client.send("GET", target, Accept="text/html").status == status
        expected = Counter({("none", "302"): 10, ("none", "303"): 10, ("listClients", "200"): 10})
        until(lambda: counts(scrape(server, port)) >= expected, "the metrics have all")
        until(
            lambda: len(server.tell("requests", "list", agency["account_id"])["requests"]) == 10, "the log of its key"
        )
        assert server.stop() == 0
        lines = [json.loads(line) for line in server.log().splitlines()]
    logged = Counter(str(line["status"]) for line in lines if line["event"] == "request")
    assert {status: logged[status] for _, status in expected} == {"302": 10, "303": 10, "200": 10}
    assert "failure" not in {line["event"] for line in lines}
