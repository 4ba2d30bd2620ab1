"""A business day on six accounts of a cluster, sent to a server by six clients at the same time."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
from testing.process import running, tell

from retainer.settings import BASE_PATH
from tests.cluster.test_lost_worker import PORT_OF

ACCOUNTS = 6
REQUESTS = 19
"""That one account sends."""


def work_a_day(server, agency):
    """From the first contact to the paid invoice; return what the account has earned."""
    with server.client(agency["key"]) as client:

        def make(path, **body):
            answer = client.post(path, body)
            assert answer.status == 201, answer
            return answer.data

        customer = make("/clients", name="Bergmann Optik", email="buchhaltung@bergmann.example")["id"]
        make("/external-contacts", client_id=customer, last_name="Lenz")
        tag = make("/tags", name="Urgent")["id"]
        project = make("/projects", client_id=customer, name="Webshop", hourly_rate="90", tag_ids=[tag])["id"]
        task = make("/tasks", project_id=project, title="Write the texts")["id"]
        for minutes in (60, 90, 30):
            make("/time-entries", task_id=task, duration_minutes=minutes)
        make("/expenses", project_id=project, client_id=customer, amount="119", tax_rate="19", billable=True)
        ticket = make("/tickets", subject="The checkout is slow", client_id=customer)["id"]
        make(f"/tickets/{ticket}/replies", body="We are looking into it.")
        quote = make("/quotes", client_id=customer, lines=[{"description": "Shop", "unit_price": "500"}])
        assert quote["number"].endswith("0001")
        invoice = make("/invoices", client_id=customer, status="sent", unbilled_work={"time": {}, "expenses": {}})
        file = client.send("GET", f"{BASE_PATH}/invoices/{invoice['id']}", Accept="application/pdf")
        assert file.body.startswith(b"%PDF"), file
        total = invoice["total"]
        paid = client.call("PATCH", f"/invoices/{invoice['id']}", {"status": "paid"})
        assert paid.data["status"] == "paid", paid
        make(f"/invoices/{invoice['id']}/credit-notes", amount="10")
        report = client.get("/reports/overview").data
        assert client.get("/time-entries").json["meta"]["total"] == 3
        assert len(client.get("/events").data) >= 15
        return invoice["number"], total, report


def test_six_accounts_on_two_nodes_work_at_the_same_time(cluster, tmp_path):
    url = cluster.copy(cluster.prototype)
    try:
        with running(tmp_path, "--no-monitor", RETAINER_DATABASE_URL=url) as server:
            agencies = [server.agency(f"Day{number}", "enterprise") for number in range(ACCOUNTS)]
            with ThreadPoolExecutor(ACCOUNTS) as pool:
                days = list(pool.map(lambda agency: work_a_day(server, agency), agencies))
            assert days == [days[0]] * ACCOUNTS
            with psycopg.connect(url) as connection:
                ports = {connection.execute(PORT_OF, [agency["account_id"]]).fetchone() for agency in agencies}
            assert len(ports) == len(cluster.workers), "the accounts are on all workers"
        assert tell(tmp_path, "doctor", RETAINER_DATABASE_URL=url)["result"] == "ok"
        listed = tell(tmp_path, "account", "list", "--usage", RETAINER_DATABASE_URL=url)["accounts"]
        used = {one["id"]: (one["requests"], one["server_errors"]) for one in listed if one["rows"] > 50}
        assert [used[agency["account_id"]] for agency in agencies] == [(REQUESTS, 0)] * ACCOUNTS
    finally:
        cluster.drop(url)
