"""A year of work: projects in all states with tasks and time, quotes, and expenses."""

from datetime import date, timedelta
from typing import Any

from retainer.billing import expenses
from retainer.billing.quotes import quotes
from retainer.crm.clients import Client
from retainer.demo.make import CONTENT, DemoProject, Scene, at, change, create, make
from retainer.rollups import doctor
from retainer.schema.work import time_entries as entries_table
from retainer.shared.relations import sent_fields
from retainer.work import milestones, projects, tasks, time_entries
from retainer.work.project_types import Project
from retainer.work.time_rules import TimeEntry

YEAR = 365
DURATIONS = (30, 60, 90, 120, 120, 180, 180, 240)
FULL_DAY, HALF_DAY = 420, 180
OUTCOMES = ("accepted",) * 4 + ("declined",) * 3 + ("sent", "cancelled", "draft")
TYPES = CONTENT["project_types"]


def work(scene: Scene) -> None:
    template = create(projects.create_project, scene.tx, name=f"Template: {TYPES[0]['name']}", is_template=True)
    for stage in TYPES[0]["stages"]:
        create(milestones.create_milestone, scene.tx, template.id, name=stage)
    internal = [create(projects.create_project, scene.tx, name=name).id for name in CONTENT["internal"]]
    busy = [client for client in scene.clients if client.status != "prospect"]
    for index, client in enumerate(busy):
        for turn in range(3):
            scene.jobs.append(_job(scene, TYPES[(index * 3 + turn) % len(TYPES)], client, is_running=turn == 0))
    for ago in range(YEAR, -1, -1):
        day = scene.ago(ago)
        for user in scene.people if day.weekday() < 5 else []:
            if scene.rng.random() > 0.07:
                _track(scene, internal, user, day, FULL_DAY if ago else HALF_DAY)
    doctor.rebuild(scene.tx)


def _job(scene: Scene, kind: dict[str, Any], client: Client, *, is_running: bool) -> DemoProject:
    is_over, days = client.status == "archived", kind["days"]
    earliest, latest = -YEAR, -250 if is_over else 20
    if is_running and not is_over:
        earliest, latest = -days * 3 // 5, -days // 4
    start = scene.today + timedelta(days=scene.rng.randint(earliest, latest))
    end = start + timedelta(days=days * 11 // 10)
    at(scene.tx, start - timedelta(days=10))
    project = _project(scene, kind, client, start, is_over=is_over)
    stages, names = [], kind["stages"]
    for index, name in enumerate(names):
        due = start + timedelta(days=days * (index + 1) // len(names))
        fields = {"name": name, "due_date": str(due), "status": "completed" if due < scene.today else "open"}
        fields["amount"] = int(project.fixed_fee) // len(names) if project.fixed_fee else None
        stages.append(create(milestones.create_milestone, scene.tx, project.id, **fields).id)
    ids = [_task(scene, kind, project, start, stages, index) for index in range(len(kind["tasks"]))]
    team = scene.rng.sample(scene.people, scene.rng.randint(2, min(4, len(scene.people))))
    return DemoProject(project, start, min(end, scene.today - timedelta(days=150)) if is_over else end, team, ids)


def _project(scene: Scene, kind: dict[str, Any], client: Client, start: date, *, is_over: bool) -> Project:
    rate, due = int(client.hourly_rate or 100), start + timedelta(days=kind["days"])
    is_completed = is_over or (due < scene.today and scene.rng.random() < 0.8)
    is_fixed, is_retainer = kind["billing_type"] == "fixed_fee", kind["billing_type"] == "retainer"
    return create(
        projects.create_project,
        scene.tx,
        name=f"{kind['name']} {client.name}",
        client_id=client.id,
        code=f"{kind['name'][:2].upper()}{len(scene.jobs) + 1:03}",
        status="planned" if start > scene.today else "completed" if is_completed else "active",
        billing_type=kind["billing_type"],
        fixed_fee=kind["hours"] * rate * 3 // 2 if is_fixed else None,
        retainer_amount=45 * rate if is_retainer else None,
        budget_minutes=None if is_retainer else kind["hours"] * 60,
        start_date=str(start),
        due_date=str(due),
        manager_id=scene.rng.choice(scene.people),
    )


def _task(scene: Scene, kind: dict[str, Any], project: Project, start: date, stages: list[int], index: int) -> int:
    count = len(kind["tasks"])
    due = start + timedelta(days=kind["days"] * (index + 1) // count)
    days_late = (scene.today - due).days
    is_begun = days_late > -14
    at(scene.tx, start - timedelta(days=10))
    task_id = create(
        tasks.create_task,
        scene.tx,
        title=kind["tasks"][index],
        project_id=project.id,
        milestone_id=stages[index * len(stages) // count] if stages else None,
        status="in_progress" if is_begun else "todo",
        priority=scene.rng.choices(("low", "normal", "high", "urgent"), (2, 10, 4, 1))[0],
        assignee_id=scene.rng.choice(scene.people),
        start_date=str(due - timedelta(days=10)) if is_begun else None,
        due_date=str(due),
        estimated_minutes=kind["hours"] * 60 // count // 15 * 15,
    ).id
    if days_late > 0 and (project.status == "completed" or scene.rng.random() < 0.9):
        at(scene.tx, due + timedelta(days=scene.rng.randint(-4, 3)))
        change(tasks.update_task, scene.tx, task_id, status="done")
    return task_id


def _track(scene: Scene, internal: list[int], user: int, day: date, full: int) -> None:
    rng = scene.rng
    running = [job for job in scene.jobs if user in job.team and job.start <= day <= job.end]
    while full > 0:
        minutes = rng.choice(DURATIONS)
        full -= minutes
        done: dict[str, object] = {"project_id": rng.choice(internal)}
        if running and rng.random() < 0.92:
            job = rng.choice(running)
            done = {"project_id": job.project.id, "billable": rng.random() < 0.93}
            done |= {"task_id": rng.choice(job.tasks)} if rng.random() < 0.6 else {}
        fields = {"date": str(day), "user_id": user, "description": rng.choice(CONTENT["work"]), **done}
        sent = make(TimeEntry, duration_minutes=minutes, **fields)
        entry, _ = time_entries.build_time_entry(scene.tx, sent, None, sent_fields(sent))
        scene.tx.insert(entries_table, entry)


def offer(scene: Scene) -> None:
    """Write three quotes for every client; the newest is undecided, unless the client is archived."""
    rng, plans = scene.rng, []
    for index, client in enumerate(scene.clients):
        for turn in range(3):
            age = (
                rng.randint(260, 360) if client.status == "archived" else rng.randint(*((25, 360) if turn else (1, 24)))
            )
            plans.append((age, index, TYPES[(index + turn) % len(TYPES)]))
    for age, index, kind in sorted(plans, key=lambda plan: -plan[0]):
        client, issued, outcome = scene.clients[index], scene.ago(age), rng.choice(OUTCOMES)
        price = {"unit": "hours", "unit_price": client.hourly_rate or "100"}
        texts = kind["stages"] or kind["tasks"][:3]
        lines = [{"description": text, "quantity": rng.randint(8, 60), **price} for text in texts]
        fields = {"title": f"{kind['name']} {client.name}", "status": "draft" if outcome == "draft" else "sent"}
        quote = create(quotes.create_quote, scene.tx, client_id=client.id, lines=lines, **fields).data
        decided = issued + timedelta(days=rng.randint(3, 18))
        if outcome not in {"draft", "sent"} and decided <= scene.today:
            at(scene.tx, decided)
            reason = "Over our budget this year" if outcome == "declined" else None
            change(quotes.update_quote, scene.tx, quote.id, status=outcome, decline_reason=reason)
    scene.ago(0)


def spend(scene: Scene) -> None:
    rng = scene.rng
    for _ in range(140):
        low, high = (spent := {**rng.choice(CONTENT["expenses"])}).pop("amounts")
        project = rng.choice(scene.jobs).project if rng.random() < 0.7 else None
        create(
            expenses.create_expense,
            scene.tx,
            **spent,
            amount=f"{rng.randint(low, high)}.{rng.randint(0, 99):02}",
            project_id=project and project.id,
            user_id=rng.choice(scene.people),
            date=str(scene.today - timedelta(days=rng.randint(0, 364))),
            tax_rate="19",
            markup_percent="10" if project and spent["category"] == "Stock" else "0",
            reimbursable=spent["category"] == "Travel",
        )
