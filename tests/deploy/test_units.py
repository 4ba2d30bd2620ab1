"""The systemd units, the compose files and the alerts, read by their programs and by the product."""

import json
import re
import urllib.request

import pytest
import yaml
from testing.ports import free_port
from testing.process import running, with_database
from typer.testing import CliRunner

from retainer.cli import cli
from retainer.settings import load
from tests.deploy.programs import DEPLOY, run, sample

FILES = ("compose.yaml", "compose.postgresql.yaml")


def test_systemd_understands_the_service_and_its_socket(tmp_path):
    (tmp_path / "retainer.service").write_text(sample("retainer.service", ("/opt/retainer/bin/retainer", "/bin/true")))
    (tmp_path / "retainer.socket").write_text(sample("retainer.socket"))
    checked = run("systemd-analyze", "verify", tmp_path / "retainer.service", tmp_path / "retainer.socket")
    assert (checked.returncode, checked.stdout) == (0, "")


def test_a_misspelt_setting_of_a_unit_is_found(tmp_path):
    text = sample("retainer.service", ("/opt/retainer/bin/retainer", "/bin/true"), ("Restart=", "Restar="))
    (tmp_path / "retainer.service").write_text(text)
    assert "Restar" in run("systemd-analyze", "verify", tmp_path / "retainer.service").stdout


def test_prometheus_understands_the_alerts():
    checked = run("promtool", "check", "rules", DEPLOY / "alerts.yaml")
    assert checked.returncode == 0, checked.stdout


def test_the_alerts_and_the_dashboard_use_metrics_that_the_server_has(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    options = {"RETAINER_METRICS": address, "RETAINER_BACKUP_DIR": str(tmp_path / "backups")}
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups/retainer-20260101T000000Z.db.gz").touch()
    with running(with_database(tmp_path), "--no-monitor", **options) as server, server.client() as client:
        client.get("/me")
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
            offered = set(re.findall(r"^(retainer_\w+)", response.read().decode(), re.MULTILINE))
    shown = [panel["targets"] for panel in json.loads(sample("grafana.json"))["panels"]]
    for text in (sample("alerts.yaml"), str(shown)):
        used = set(re.findall(r"retainer_\w+", text))
        assert len(used) > 5
        assert used - {"retainer_limiter_shared"} <= offered


def test_no_alert_rings_on_a_server_with_nothing_but_defaults(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    with running(with_database(tmp_path), RETAINER_METRICS=address) as server, server.client() as client:
        client.get("/me")
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
            lines = [line for line in response.read().decode().splitlines() if line.startswith("retainer_")]
    measured = [line.rpartition(" ")[::2] for line in lines if not line.startswith("retainer_disk_")]
    series = [{"series": name, "values": f"{float(value)}x120"} for name, value in measured]
    names = re.findall(r"alert: (\w+)", sample("alerts.yaml"))
    tests = {
        "rule_files": [str(DEPLOY / "alerts.yaml")],
        "tests": [
            {
                "interval": "1m",
                "input_series": [*series, {"series": 'up{job="retainer"}', "values": "1x120"}],
                "alert_rule_test": [{"eval_time": "1h", "alertname": name, "exp_alerts": []} for name in names],
            }
        ],
    }
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests))
    tested = run("promtool", "test", "rules", tmp_path / "tests.yaml")
    assert tested.returncode == 0, tested.stdout
    assert len(names) > 10


@pytest.mark.parametrize("files", [FILES[:1], FILES])
def test_the_compose_files_set_what_the_product_accepts(files):
    service = {}
    for name in files:
        layer = yaml.safe_load(sample(name))["services"]["retainer"]
        service |= layer | {"environment": service.get("environment", {}) | layer["environment"]}
    interpolated = {
        name: re.sub(r"\$\{\w+(:-([^}]*)|:\?[^}]*)\}", r"\2", value) for name, value in service["environment"].items()
    }
    settings = load(interpolated)
    assert settings.trusted_proxies
    assert bool(settings.valkey_url) == (len(files) > 1)
    assert settings.database.startswith("postgresql://retainer:@postgresql" if len(files) > 1 else "sqlite")
    assert service["read_only"] is True
    options = service.get("command", ["serve"])
    assert set(re.findall(r"--\w+", " ".join(options))) <= set(
        re.findall(r"--\w+", CliRunner().invoke(cli, ["serve", "--help"]).stdout)
    )


def test_the_gateway_of_the_compose_network_is_the_trusted_proxy():
    compose = yaml.safe_load(sample("compose.yaml"))
    (network,) = compose["networks"]["default"]["ipam"]["config"]
    assert compose["services"]["retainer"]["environment"]["RETAINER_TRUSTED_PROXIES"] == f"{network['gateway']}/32"
