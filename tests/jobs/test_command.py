"""The commands that list jobs, stop and continue them, and the daily jobs that a server makes."""

from sqlalchemy import update
from testing.process import command, query, running, tell, until, with_database

from retainer.identity.actors import absent_user, operator_of
from retainer.jobs import jobs
from retainer.jobs.kinds import Job
from retainer.schema import jobs as schema
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


def refused(folder, *arguments):
    result = command(folder, *arguments)
    assert (result.status, result.out) == (1, ""), result
    return result.err.strip()


def test_a_job_is_stopped_and_continues_as_in_the_console(tmp_path):
    folder = with_database(tmp_path)
    admin = ("--admin-name", "Ana", "--admin-email", "ana@north.example")
    account = tell(folder, "account", "create", "--name", "North", *admin)
    store = Store(connect(f"sqlite:///{folder / 'data' / 'retainer.db'}"))
    with store.begin(operator_of(store, account["account_id"]), write=True) as tx:
        by_clock = jobs.start(tx, "tagging", "Make tags", {}, total=9)
        daily = jobs.start(tx, "daily", "Daily", {})
    with store.begin(absent_user(store, account["user_id"]), write=True) as tx:
        of_user = jobs.start(tx, "tagging", "Make tags", {}, total=9)
    for job, user in ((by_clock, None), (of_user, account["user_id"])):
        assert "Only a job that was stopped or has failed can continue." in refused(folder, "job", "continue", job)
        assert tell(folder, "job", "stop", job)["status"] == "stopped"
        assert refused(folder, "job", "stop", job) == "This job has ended already. Nothing was changed."
        assert tell(folder, "job", "continue", job) == {
            "job": job,
            "title": "Make tags",
            "status": "waiting",
            "done": 0,
            "refused": 0,
        }
        with store.begin(operator_of(store, account["account_id"]), write=False) as tx:
            assert tx.get(schema.jobs, job, Job).user_id == user
    for other in (daily, 999):
        for step in ("stop", "continue"):
            assert refused(folder, "job", step, other) == f"There is no job {other}."


def test_an_import_that_was_undone_does_not_continue_by_the_command(tmp_path):
    folder = with_database(tmp_path)
    admin = ("--admin-name", "Ana", "--admin-email", "ana@north.example")
    account_id = tell(folder, "account", "create", "--name", "North", *admin)["account_id"]
    (tmp_path / "list.csv").write_text("Name\nNordwind\n")
    done = tell(folder, "import", "csv", tmp_path / "list.csv", "--account", account_id, "--kind", "clients")
    store = Store(connect(f"sqlite:///{folder / 'data' / 'retainer.db'}"))
    with store.begin(operator_of(store, account_id), write=True) as tx:
        tx.change(update(schema.jobs).where(schema.jobs.c.id == done["job"]).values(status="stopped"))
    tell(folder, "import", "undo", done["job"])
    assert refused(folder, "job", "continue", done["job"]) == (
        "This import was undone, so it can't continue. Import the file again."
    )


def test_the_list_of_jobs_says_which_import_was_a_dry_run(tmp_path):
    folder = with_database(tmp_path)
    admin = ("--admin-name", "Ana", "--admin-email", "ana@north.example")
    account_id = tell(folder, "account", "create", "--name", "North", *admin)["account_id"]
    (tmp_path / "list.csv").write_text("Name\nNordwind\n")
    arguments = (tmp_path / "list.csv", "--account", account_id, "--kind", "clients")
    tell(folder, "import", "csv", *arguments, "--dry-run")
    tell(folder, "import", "csv", *arguments)
    heading, real, dry = command(folder, "jobs").out.splitlines()
    place = heading.index("is_dry_run")
    assert [row[place:].split()[0] for row in (real, dry)] == ["no", "yes"]
