"""A year of work: projects in all states, their tasks, and what everybody did on every working day."""

import random
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from sqlalchemy import update

from retainer import schema
from retainer.crm import clients
from retainer.demo.agencies import INTERNAL, KINDS, WORK, Kind
from retainer.demo.make import at, make
from retainer.rollups.changes import changing
from retainer.rollups.sources import TASKS
from retainer.store.tx import Tx
from retainer.values.exact import as_instant, utcnow
from retainer.work import milestones, projects, tasks, time_entries
from retainer.work.time_entry_types import TimeEntry

YEAR = timedelta(days=365)
PIECES = (15, 30, 30, 45, 45, 60, 60, 75, 90, 120)  # minutes
FULL_DAY = 420
SLICES = {1: (1,), 2: (0.4, 0.6), 3: (0.2, 0.5, 0.3), 4: (0.15, 0.3, 0.4, 0.15)}


class Job(NamedTuple):
    """A project, when it ran, who worked on it, and on what."""

    project: projects.Project
    start: date
    end: date
    team: list[int]
    tasks: list[int]


class Work:
    """The work of one agency in the year until today."""

    def __init__(self, tx: Tx, rng: random.Random, people: list[int], tag_ids: dict[str, int]) -> None:
        self.tx, self.rng, self.people, self.tag_ids = tx, rng, people, tag_ids
        self.today = date.fromisoformat(tx.today)
        self.jobs: list[Job] = []
        self.internal: list[int] = []

    def plan(self, customers: list[clients.Client]) -> None:
        """Create templates, internal projects, and three or four projects for every client that is no prospect."""
        for kind in KINDS[:1] + KINDS[3:4]:
            template = self._project(kind, f"Template: {kind.name}", None, self.today, is_template=True)
            self._fill(kind, template, self.today)
        for name in INTERNAL:
            self.internal.append(projects.create_project(self.tx, make(projects.Project, name=name)).id)
        busy = [customer for customer in customers if customer.status != "prospect"]
        for place, customer in enumerate(busy):
            for turn in range(3 + place % 2):
                kind = KINDS[(place * 3 + turn) % len(KINDS)]
                self._job(kind, customer, is_running=turn == 0)

    def record(self) -> None:
        """Record what everybody did, day by day."""
        day = self.today - YEAR
        while day < self.today:
            at(self.tx, day)
            for user in self.people if day.weekday() < 5 else []:
                if self.rng.random() > 0.07:  # away otherwise
                    self._day(user, day)
            day += timedelta(days=1)
        at(self.tx, self.today)

    def close(self, customers: list[clients.Client]) -> None:
        """Archive clients whose work is recorded by now: archived clients take none."""
        for customer in customers:
            if customer.status == "archived":
                self.tx.update(schema.crm.clients, customer)

    def _job(self, kind: Kind, customer: clients.Client, *, is_running: bool) -> None:
        """Create a project with its team and tasks; a running one is in the middle of its time."""
        length = timedelta(days=kind.days)
        gone = customer.status == "archived"
        earliest, latest = -365, -250 if gone else 20
        if is_running and not gone:
            earliest, latest = -kind.days * 3 // 5, -kind.days // 4
        start = self.today + timedelta(days=self.rng.randint(earliest, latest))
        at(self.tx, start - timedelta(days=10))
        project = self._project(kind, f"{kind.name} {customer.name}", customer, start)
        team = self.rng.sample(self.people, min(len(self.people), self.rng.randint(2, 4)))
        end = min(start + length * 1.1, self.today - timedelta(days=150)) if gone else start + length * 1.1
        self.jobs.append(Job(project, start, end, team, self._fill(kind, project, start)))

    def _project(
        self, kind: Kind, name: str, customer: clients.Client | None, start: date, *, is_template: bool = False
    ) -> projects.Project:
        rate = (customer and customer.hourly_rate) or 100
        due = start + timedelta(days=kind.days)
        gone = customer is not None and customer.status == "archived"
        status = "completed" if gone or (due < self.today and self.rng.random() < 0.8) else "active"
        return projects.create_project(
            self.tx,
            make(
                projects.Project,
                name=name,
                client_id=customer.id if customer else None,
                code=f"{kind.name[:2].upper()}{len(self.jobs) + 1:03}" if customer else None,
                status="planned" if start > self.today else status,
                billing_type=kind.billing_type if customer else None,
                fixed_fee=kind.hours * int(rate) * 3 // 2 if customer and kind.billing_type == "fixed_fee" else None,
                retainer_amount=45 * int(rate) if customer and kind.billing_type == "retainer" else None,
                budget_minutes=kind.hours * 60 if customer and kind.billing_type != "retainer" else None,
                start_date=start.isoformat(),
                due_date=due.isoformat(),
                manager_id=self.rng.choice(self.people),
                is_template=is_template,
                tag_ids=[self.tag_ids["Retainer"]] if kind.billing_type == "retainer" else [],
            ),
        )

    def _fill(self, kind: Kind, project: projects.Project, start: date) -> list[int]:
        """Create milestones and tasks, spread over the project's time; return the ids of the tasks."""
        stages = []
        for place, name in enumerate(kind.stages, 1):
            due = start + timedelta(days=kind.days * place // len(kind.stages))
            share = SLICES[len(kind.stages)][place - 1]
            amount = project.fixed_fee and str(round(int(project.fixed_fee) * int(share * 100) / 100))
            status = "completed" if due < self.today and not project.is_template else "open"
            fields = {"name": name, "due_date": due.isoformat(), "amount": amount, "status": status}
            milestone = milestones.build_milestone(self.tx, make(milestones.Milestone, **fields), project)
            stages.append(self.tx.insert(schema.work.milestones, milestone))
        return [self._task(kind, project, start, stages, place) for place in range(len(kind.tasks))]

    def _task(self, kind: Kind, project: projects.Project, start: date, stages: list[int], place: int) -> int:
        due = start + timedelta(days=kind.days * (place + 1) // len(kind.tasks))
        late = (self.today - due).days
        done = late > 0 and (project.status == "completed" or self.rng.random() < 0.9)
        done = done or (-5 < late <= 0 and self.rng.random() < 0.4)
        state = "in_progress" if late > -14 else "todo"
        if project.is_template:
            done, state = False, "todo"
        task = tasks.create_task(
            self.tx,
            make(
                tasks.Task,
                title=kind.tasks[place],
                project_id=project.id,
                milestone_id=stages[place * len(stages) // len(kind.tasks)] if stages else None,
                status=state,
                priority=self.rng.choices(("low", "normal", "high", "urgent"), (2, 10, 4, 1))[0],
                assignee_id=None if project.is_template else self.rng.choice(self.people),
                start_date=None if state == "todo" else (due - timedelta(days=10)).isoformat(),
                due_date=due.isoformat(),
                estimated_minutes=kind.hours * 60 // len(kind.tasks) // 15 * 15,
                tag_ids=[self.tag_ids["Waiting"]] if not done and self.rng.random() < 0.1 else [],
            ),
        ).id
        if done:
            self._finish(task, due)
        return task

    def _finish(self, task: int, due: date) -> None:
        """Let a task be done a few days before or after it was due."""
        day = due + timedelta(days=self.rng.choice((-4, -3, -2, -1, -1, 0, 0, 1, 3)))
        done = min(as_instant(datetime.combine(day, time(15, 10), UTC)), utcnow())
        values = {"status": "done", "completed_at": done, "updated_at": done}
        with changing(self.tx, TASKS, task):
            self.tx.run(update(schema.work.tasks).where(schema.work.tasks.c.id == task).values(values))

    def _day(self, user: int, day: date) -> None:
        """Record one working day of one person."""
        open_jobs = [job for job in self.jobs if user in job.team and job.start <= day <= job.end]
        self.rng.shuffle(open_jobs)
        worked = 0
        while worked < FULL_DAY:
            minutes = self.rng.choice(PIECES)
            worked += minutes
            kind = self.rng.choice(list(WORK))
            fields = {"description": self.rng.choice(WORK[kind]), "date": day.isoformat(), "user_id": user}
            if open_jobs and self.rng.random() < 0.92:
                job = open_jobs[min(int(self.rng.expovariate(1)), len(open_jobs) - 1)]
                on = {"task_id": self.rng.choice(job.tasks)} if self.rng.random() < 0.6 else {}
                on |= {"project_id": job.project.id, "billable": self.rng.random() < 0.93}
            else:
                on = {"project_id": self.rng.choice(self.internal)}
            entry = make(TimeEntry, duration_minutes=minutes, **fields, **on)
            time_entries.record_time(self.tx, entry)
