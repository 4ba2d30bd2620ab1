"""The command that lists jobs, and the daily jobs that a server makes."""

from testing.process import query, running, tell, until, with_database

from retainer.identity.actors import operator_of
from retainer.jobs import jobs
from retainer.store.engines import connect
from retainer.store.tx import Store


def test_a_server_gives_an_account_its_daily_job_and_the_command_lists_others(tmp_path):
    folder = with_database(tmp_path)
    with running(folder, "--no-monitor") as server:
        account_id = server.agency("North", "enterprise")["account_id"]
    path = folder / "data" / "retainer.db"
    with running(folder, "--no-monitor"):
        daily = "SELECT status FROM jobs WHERE kind = 'daily' AND next_step_at > created_at AND status = 'waiting'"
        until(lambda: query(path, daily), "the daily job has been done, and is due tomorrow")
    store = Store(connect(f"sqlite:///{path}"))
    with store.begin(operator_of(store, account_id), write=True) as tx:
        job_id = jobs.start(tx, "tagging", "Make tags", {}, total=9)
    for arguments in ((), ("--account", account_id)):
        (job,) = tell(folder, "jobs", *arguments)["jobs"]
        assert (job["account_id"], job["id"], job["title"], job["total"]) == (account_id, job_id, "Make tags", 9)
