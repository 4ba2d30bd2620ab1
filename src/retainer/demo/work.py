"""Work: a year of projects in all states, with tasks and the time that people tracked."""

import random
from datetime import date, timedelta
from typing import NamedTuple

from retainer.crm import clients
from retainer.demo.agency import CONTENT, ProjectType
from retainer.demo.make import at, change, create, make
from retainer.rollups import doctor
from retainer.schema.work import time_entries as entries_table
from retainer.shared.relations import sent_fields
from retainer.store.tx import Tx
from retainer.work import milestones, projects, tasks, time_entries
from retainer.work.time_entry_types import TimeEntry

YEAR = 365
DURATIONS = (30, 60, 90, 120, 120, 180, 180, 240)
FULL_DAY, HALF_DAY = 420, 180


class Job(NamedTuple):
    """A project with the dates, the people and the tasks of its work."""

    project: projects.Project
    start: date
    end: date
    team: list[int]
    tasks: list[int]


class Work:
    """The work of an agency in the last year."""

    def __init__(self, tx: Tx, rng: random.Random, people: list[int]) -> None:
        self.tx, self.rng, self.people = tx, rng, people
        self.today = date.fromisoformat(tx.today)
        self.jobs: list[Job] = []
        self.internal: list[int] = []

    def plan(self, customers: list[clients.Client]) -> None:
        types = CONTENT.project_types
        template = create(projects.create_project, self.tx, name=f"Template: {types[0].name}", is_template=True)
        for stage in types[0].stages:
            create(milestones.create_milestone, self.tx, template.id, name=stage)
        self.internal = [create(projects.create_project, self.tx, name=name).id for name in CONTENT.internal]
        busy = [customer for customer in customers if customer.status != "prospect"]
        for index, customer in enumerate(busy):
            for turn in range(3):
                self._job(types[(index * 3 + turn) % len(types)], customer, is_running=turn == 0)

    def record(self) -> None:
        for ago in range(YEAR, -1, -1):
            day = self.today - timedelta(days=ago)
            at(self.tx, day)
            for user in self.people if day.weekday() < 5 else []:
                if self.rng.random() > 0.07:
                    self._day(user, day, FULL_DAY if ago else HALF_DAY)
        doctor.rebuild(self.tx)

    def close(self, customers: list[clients.Client]) -> None:
        """Archive clients now that their work is recorded: archived clients take none."""
        for customer in customers:
            if customer.status == "archived":
                change(clients.update_client, self.tx, customer.id, status="archived")

    def _job(self, kind: ProjectType, customer: clients.Client, *, is_running: bool) -> None:
        is_over = customer.status == "archived"
        earliest, latest = -YEAR, -250 if is_over else 20
        if is_running and not is_over:
            earliest, latest = -kind.days * 3 // 5, -kind.days // 4
        start = self.today + timedelta(days=self.rng.randint(earliest, latest))
        end = start + timedelta(days=kind.days * 11 // 10)
        if is_over:
            end = min(end, self.today - timedelta(days=150))
        at(self.tx, start - timedelta(days=10))
        project = self._project(kind, customer, start, is_over=is_over)
        stages = self._milestones(kind, project, start)
        ids = [self._task(kind, project, start, stages, index) for index in range(len(kind.tasks))]
        team = self.rng.sample(self.people, self.rng.randint(2, min(4, len(self.people))))
        self.jobs.append(Job(project, start, end, team, ids))

    def _project(self, kind: ProjectType, customer: clients.Client, start: date, *, is_over: bool) -> projects.Project:
        rate, due = int(customer.hourly_rate or 100), start + timedelta(days=kind.days)
        is_completed = is_over or (due < self.today and self.rng.random() < 0.8)
        is_fixed, is_retainer = kind.billing_type == "fixed_fee", kind.billing_type == "retainer"
        return create(
            projects.create_project,
            self.tx,
            name=f"{kind.name} {customer.name}",
            client_id=customer.id,
            code=f"{kind.name[:2].upper()}{len(self.jobs) + 1:03}",
            status="planned" if start > self.today else "completed" if is_completed else "active",
            billing_type=kind.billing_type,
            fixed_fee=kind.hours * rate * 3 // 2 if is_fixed else None,
            retainer_amount=45 * rate if is_retainer else None,
            budget_minutes=None if is_retainer else kind.hours * 60,
            start_date=start.isoformat(),
            due_date=due.isoformat(),
            manager_id=self.rng.choice(self.people),
        )

    def _milestones(self, kind: ProjectType, project: projects.Project, start: date) -> list[int]:
        ids = []
        for index, name in enumerate(kind.stages):
            due = start + timedelta(days=kind.days * (index + 1) // len(kind.stages))
            amount = int(project.fixed_fee) // len(kind.stages) if project.fixed_fee else None
            status = "completed" if due < self.today else "open"
            fields = {"name": name, "due_date": due.isoformat(), "amount": amount, "status": status}
            ids.append(create(milestones.create_milestone, self.tx, project.id, **fields).id)
        return ids

    def _task(self, kind: ProjectType, project: projects.Project, start: date, stages: list[int], index: int) -> int:
        due = start + timedelta(days=kind.days * (index + 1) // len(kind.tasks))
        days_late = (self.today - due).days
        is_done = days_late > 0 and (project.status == "completed" or self.rng.random() < 0.9)
        is_begun = days_late > -14
        at(self.tx, start - timedelta(days=10))
        task_id = create(
            tasks.create_task,
            self.tx,
            title=kind.tasks[index],
            project_id=project.id,
            milestone_id=stages[index * len(stages) // len(kind.tasks)] if stages else None,
            status="in_progress" if is_begun else "todo",
            priority=self.rng.choices(("low", "normal", "high", "urgent"), (2, 10, 4, 1))[0],
            assignee_id=self.rng.choice(self.people),
            start_date=(due - timedelta(days=10)).isoformat() if is_begun else None,
            due_date=due.isoformat(),
            estimated_minutes=kind.hours * 60 // len(kind.tasks) // 15 * 15,
        ).id
        if is_done:
            at(self.tx, due + timedelta(days=self.rng.randint(-4, 3)))
            change(tasks.update_task, self.tx, task_id, status="done")
        return task_id

    def _day(self, user: int, day: date, full: int) -> None:
        open_jobs = [job for job in self.jobs if user in job.team and job.start <= day <= job.end]
        worked = 0
        while worked < full:
            minutes = self.rng.choice(DURATIONS)
            worked += minutes
            work: dict[str, object] = {"project_id": self.rng.choice(self.internal)}
            if open_jobs and self.rng.random() < 0.92:
                job = self.rng.choice(open_jobs)
                task = {"task_id": self.rng.choice(job.tasks)} if self.rng.random() < 0.6 else {}
                work = {"project_id": job.project.id, "billable": self.rng.random() < 0.93, **task}
            fields = {"date": day.isoformat(), "user_id": user, "description": self.rng.choice(CONTENT.work), **work}
            sent = make(TimeEntry, duration_minutes=minutes, **fields)
            entry, _ = time_entries.build_time_entry(self.tx, sent, None, sent_fields(sent))
            self.tx.insert(entries_table, entry)
