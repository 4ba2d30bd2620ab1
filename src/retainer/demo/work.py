"""Work: a year of projects in all states, with tasks and the time that people tracked; a smaller year before it."""

import random
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from retainer import schema
from retainer.crm import clients
from retainer.demo.agencies import INTERNAL, KINDS, WORK, Kind
from retainer.demo.make import at, change, create, make
from retainer.rollups import doctor
from retainer.shared.relations import sent_fields
from retainer.store.tx import Tx
from retainer.work import milestones, projects, tasks, time_entries
from retainer.work.time_entry_types import TimeEntry

YEAR = timedelta(days=365)
DURATIONS = (30, 60, 90, 120, 120, 180, 180, 240)
FULL_DAY, HALF_DAY = 420, 180
EARLIER_DURATIONS = (120, 150, 180, 240, 300)
STAGE_PERCENT = {2: (40, 60), 3: (20, 50, 30), 4: (15, 30, 40, 15)}
"""The parts of a fixed fee that the stages of a project are billed with."""


class Job(NamedTuple):
    """A project with the dates, the people and the tasks of its work."""

    project: projects.Project
    start: date
    end: date
    team: list[int]
    tasks: list[int]


class Work:
    """The work of an agency in the last two years."""

    def __init__(self, tx: Tx, rng: random.Random, people: list[int], tag_ids: dict[str, int]) -> None:
        self.tx, self.rng, self.people, self.tag_ids = tx, rng, people, tag_ids
        self.today = date.fromisoformat(tx.today)
        self.jobs: list[Job] = []
        self.earlier: list[Job] = []
        self.internal: list[int] = []

    def plan(self, customers: list[clients.Client]) -> None:
        """Create templates, internal projects, and three or four projects for every client that is no prospect."""
        for kind in (KINDS[0], KINDS[3]):
            self._template(kind)
        self.internal = [create(projects.create_project, self.tx, name=name).id for name in INTERNAL]
        busy = [customer for customer in customers if customer.status != "prospect"]
        for index, customer in enumerate(busy):
            for turn in range(3 + index % 2):
                self._job(KINDS[(index * 3 + turn) % len(KINDS)], customer, is_running=turn == 0)
        self._plan_earlier(busy)

    def _plan_earlier(self, customers: list[clients.Client]) -> None:
        """Create one project for each client in the year before, whose hours were billed month by month."""
        start, end = self.today - 2 * YEAR, self.today - YEAR - timedelta(days=1)
        at(self.tx, start)
        for customer in customers:
            fields = {"name": f"Website {customer.name}", "status": "completed", "billing_type": "time_and_materials"}
            project = create(projects.create_project, self.tx, client_id=customer.id, start_date=str(start), **fields)
            self.earlier.append(Job(project, start, end, self.people, []))

    def record(self) -> None:
        """Record the time of every working day. The sums are rebuilt once: that is faster than for each entry."""
        day = self.today - 2 * YEAR
        while day <= self.today:
            at(self.tx, day)
            for user in self.people if day.weekday() < 5 else []:
                is_away = self.rng.random() < 0.07
                if day < self.today - YEAR:
                    self._earlier_day(user, day)
                elif not is_away:
                    self._day(user, day, HALF_DAY if day == self.today else FULL_DAY)
            day += timedelta(days=1)
        at(self.tx, self.today)
        doctor.rebuild(self.tx)

    def close(self, customers: list[clients.Client]) -> None:
        """Archive clients now that their work is recorded: archived clients take none."""
        for customer in customers:
            if customer.status == "archived":
                change(clients.update_client, self.tx, customer.id, status="archived")

    def _template(self, kind: Kind) -> None:
        project = create(projects.create_project, self.tx, name=f"Template: {kind.name}", is_template=True)
        for stage in kind.stages:
            create(milestones.create_milestone, self.tx, project.id, name=stage)
        for title in kind.tasks:
            create(tasks.create_task, self.tx, title=title, project_id=project.id)

    def _job(self, kind: Kind, customer: clients.Client, *, is_running: bool) -> None:
        """Create a project with its milestones and tasks; a running one is in the middle of its time."""
        is_over = customer.status == "archived"
        earliest, latest = -365, -250 if is_over else 20
        if is_running and not is_over:
            earliest, latest = -kind.days * 3 // 5, -kind.days // 4
        start = self.today + timedelta(days=self.rng.randint(earliest, latest))
        end = start + timedelta(days=kind.days) * 1.1
        if is_over:
            end = min(end, self.today - timedelta(days=150))
        at(self.tx, start - timedelta(days=10))
        project = self._project(kind, customer, start, is_over=is_over)
        team = self.rng.sample(self.people, min(len(self.people), self.rng.randint(2, 4)))
        stages = self._milestones(kind, project, start)
        ids = [self._task(kind, project, start, stages, index) for index in range(len(kind.tasks))]
        self.jobs.append(Job(project, start, end, team, ids))

    def _project(self, kind: Kind, customer: clients.Client, start: date, *, is_over: bool) -> projects.Project:
        rate, due = int(customer.hourly_rate or 100), start + timedelta(days=kind.days)
        is_completed = is_over or (due < self.today and self.rng.random() < 0.8)
        status = "planned" if start > self.today else "completed" if is_completed else "active"
        is_fixed, is_retainer = kind.billing_type == "fixed_fee", kind.billing_type == "retainer"
        return create(
            projects.create_project,
            self.tx,
            name=f"{kind.name} {customer.name}",
            client_id=customer.id,
            code=f"{kind.name[:2].upper()}{len(self.jobs) + 1:03}",
            status=status,
            billing_type=kind.billing_type,
            fixed_fee=kind.hours * rate * 3 // 2 if is_fixed else None,
            retainer_amount=45 * rate if is_retainer else None,
            budget_minutes=None if is_retainer else kind.hours * 60,
            start_date=start.isoformat(),
            due_date=due.isoformat(),
            manager_id=self.rng.choice(self.people),
            tag_ids=[self.tag_ids["Retainer"]] if is_retainer else [],
        )

    def _milestones(self, kind: Kind, project: projects.Project, start: date) -> list[int]:
        """Create the milestones of a project, spread over its time; return their ids."""
        ids = []
        for index, name in enumerate(kind.stages):
            due = start + timedelta(days=kind.days * (index + 1) // len(kind.stages))
            percent = STAGE_PERCENT[len(kind.stages)][index]
            amount = int(project.fixed_fee) * percent // 100 if project.fixed_fee else None
            status = "completed" if due < self.today else "open"
            fields = {"name": name, "due_date": due.isoformat(), "amount": amount, "status": status}
            ids.append(create(milestones.create_milestone, self.tx, project.id, **fields).id)
        return ids

    def _task(self, kind: Kind, project: projects.Project, start: date, stages: list[int], index: int) -> int:
        due = start + timedelta(days=kind.days * (index + 1) // len(kind.tasks))
        days_late = (self.today - due).days
        is_done = days_late > 0 and (project.status == "completed" or self.rng.random() < 0.9)
        is_done = is_done or (-5 < days_late <= 0 and self.rng.random() < 0.4)
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
            tag_ids=[self.tag_ids["Waiting"]] if not is_done and self.rng.random() < 0.1 else [],
        ).id
        if is_done:
            at(self.tx, due + timedelta(days=self.rng.choice((-4, -3, -2, -1, -1, 0, 0, 1, 3))))
            change(tasks.update_task, self.tx, task_id, status="done")
        return task_id

    def _earlier_day(self, user: int, day: date) -> None:
        """Record a part of a day in the year before, when the team was smaller: one entry."""
        if self.rng.random() < 0.8:
            project_id = self.rng.choice(self.earlier).project.id
            self._entry(user, day, self.rng.choice(EARLIER_DURATIONS), {"project_id": project_id})

    def _day(self, user: int, day: date, full: int) -> None:
        """Record a working day of a person, until it is full."""
        open_jobs = [job for job in self.jobs if user in job.team and job.start <= day <= job.end]
        self.rng.shuffle(open_jobs)
        worked = 0
        while worked < full:
            minutes = self.rng.choice(DURATIONS)
            worked += minutes
            if open_jobs and self.rng.random() < 0.92:
                job = open_jobs[min(int(self.rng.expovariate(1)), len(open_jobs) - 1)]
                work = {"task_id": self.rng.choice(job.tasks)} if self.rng.random() < 0.6 else {}
                work |= {"project_id": job.project.id, "billable": self.rng.random() < 0.93}
            else:
                work = {"project_id": self.rng.choice(self.internal)}
            self._entry(user, day, minutes, work)

    def _entry(self, user: int, day: date, minutes: int, work: Mapping[str, object]) -> None:
        fields = {"date": day.isoformat(), "user_id": user, "description": self.rng.choice(WORK), **work}
        sent = make(TimeEntry, duration_minutes=minutes, **fields)
        entry, _ = time_entries.build_time_entry(self.tx, sent, None, sent_fields(sent))
        self.tx.insert(schema.work.time_entries, entry)
