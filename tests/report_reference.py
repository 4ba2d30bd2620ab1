"""The five reports told a second time, in plain Python: by a look at every row that the API lists, and at every day.

Books are what an agency has at a moment: the rows as they are answered, and what only operators know. A report takes
what a query asks for and tells the `data` of the answer. Amounts are whole minor units, days and moments are texts.
"""

from collections import defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import NamedTuple
from zoneinfo import ZoneInfo

DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ISSUED = ("sent", "partially_paid", "paid", "written_off")
NOT_COMPLETED = ("planned", "active", "on_hold")
COVERED = ("fixed_fee", "retainer")
UNDONE = ("todo", "in_progress", "in_review")
UNRESOLVED = ("open", "pending", "on_hold")
BILLED = ("invoice_count", "invoiced", "credited", "tax", "collected")
WORKED = ("tracked", "billable", "value")
PROFIT = (*WORKED, "line_revenue", "line_credit", "unbilled_time", "expenses", "cost", "missing")


def half_up(exact):
    """The nearest whole number; halves go away from zero."""
    nearest = floor(abs(exact) + Fraction(1, 2))
    return nearest if exact >= 0 else -nearest


def units(amount, currency):
    return int(Fraction(amount) * 10 ** DIGITS[currency])


def money(amount, currency):
    return f"{Decimal(int(amount)).scaleb(-DIGITS[currency]):f}"


def percent(part, whole):
    return Fraction(half_up(Fraction(10_000 * part, whole)), 100) if whole > 0 else None


def thousandths(value):
    """A percentage with at most three places."""
    text = f"{Decimal(half_up(value * 1000)).scaleb(-3):f}"
    return text.rstrip("0").rstrip(".")


def next_day(day):
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def month_begins(day):
    return f"{day[:8]}01"


def year_begins(day):
    return f"{day[:5]}01-01"


def year_before(day):
    return f"{int(day[:4]) - 1}{day[4:8]}01"


class Move(NamedTuple):
    """What a row adds to the figures of its day."""

    day: str
    currency: str
    client_id: int | None
    project_id: int | None
    user_id: int | None
    figures: dict[str, int | Fraction]


class Books:
    """Rows by collection, invoices with their parts; users with `rates`, by the day from which each counts."""

    def __init__(self, rows, users, account, now):
        self.rows, self.users, self.account = rows, users, account
        self.zone = ZoneInfo(account["timezone"])
        self.today = self.day(now)
        self.issued = [it for it in rows["invoices"] if it["status"] in ISSUED]
        self.names = {it["id"]: it["name"] for it in rows["clients"]}
        self.moves = [*self.time(), *self.expenses(), *(move for it in self.issued for move in self.bill(it))]

    def day(self, instant):
        return datetime.fromisoformat(instant).astimezone(self.zone).date().isoformat()

    def time(self):
        covered = {it["id"] for it in self.rows["projects"] if it["billing_type"] in COVERED}
        for it in self.rows["time-entries"]:
            will_be_billed = it["billing_status"] == "unbilled" and it["project_id"] not in covered
            minutes, rate, value = it["duration_minutes"], self.rate(it), units(it["amount"], it["currency"])
            figures = {
                "tracked": minutes,
                "billable": minutes if it["billable"] else 0,
                "value": value,
                "unbilled_time": value if will_be_billed else 0,
                "cost": Fraction(minutes * (rate or 0), 60),
                "missing": minutes if rate is None else 0,
            }
            yield Move(it["date"], it["currency"], it["client_id"], it["project_id"], it["user_id"], figures)

    def rate(self, entry):
        """What an hour of the user costs on the day of an entry."""
        past = [(day, rate) for day, rate in self.users[entry["user_id"]]["rates"].items() if day <= entry["date"]]
        return units(max(past)[1], self.account["currency"]) if past else None

    def expenses(self):
        for it in self.rows["expenses"]:
            will_be_billed = it["billable_amount"] if it["billing_status"] == "unbilled" else 0
            figures = {"expenses": it["net_amount"], "unbilled_expenses": will_be_billed}
            figures |= {"billable_expenses": it["billable_amount"]}
            figures = {name: units(amount, it["currency"]) for name, amount in figures.items()}
            yield Move(it["date"], it["currency"], it["client_id"], it["project_id"], None, figures)

    def bill(self, it):
        """What an issued invoice brings: itself and its lines, its credit notes and their shares, its payments."""

        def move(day, project=None, **amounts):
            figures = {name: units(amount, it["currency"]) for name, amount in amounts.items()}
            return Move(day, it["currency"], it["client_id"], project, None, figures)

        issued = move(it["issue_date"], invoiced=Fraction(it["total"]) - Fraction(it["tax_total"]), tax=it["tax_total"])
        yield issued._replace(figures=issued.figures | {"invoice_count": 1})
        for line in it["lines"]:
            yield move(it["issue_date"], line["project_id"] or it["project_id"], line_revenue=line["amount"])
        for note, shares in credited(it):
            net = Fraction(note["total"]) - Fraction(note["tax_total"])
            yield move(note["issue_date"], credited=net, tax=-Fraction(note["tax_total"]))
            for project, share in shares.items():
                yield move(note["issue_date"], project, line_credit=share)
        for payment in it["payments"]:
            yield move(payment["paid_date"], collected=payment["amount"])

    def due(self, it, day):
        """What is outstanding of an issued invoice at the end of a day."""
        if it["issue_date"] > day or (it["written_off_at"] and self.day(it["written_off_at"]) <= day):
            return 0
        paid = [its["amount"] for its in it["payments"] if its["paid_date"] <= day]
        taken_back = [its["total"] for its in it["credit_notes"] if its["issue_date"] <= day]
        return max(0, units(Fraction(it["total"]) - sum(map(Fraction, paid + taken_back)), it["currency"]))

    def budget(self, project):
        """What of its budgets a project has used, each with the whole of it."""
        its = [entry for entry in self.rows["time-entries"] if entry["project_id"] == project["id"]]
        worth = sum(Fraction(entry["amount"]) for entry in its if entry["currency"] == project["currency"])
        minutes = sum(entry["duration_minutes"] for entry in its)
        both = ((worth, Fraction(project["budget_amount"] or 0)), (minutes, project["budget_minutes"] or 0))
        return [(used, whole) for used, whole in both if whole > 0]


def credited(invoice):
    """The credit notes of an invoice in their order, each with what of its net is taken back from each project.

    Amounts are credited on invoices of one project only, or are all that is left.
    """
    left, project_of = defaultdict(Fraction), {}
    for line in invoice["lines"]:
        project_of[line["id"]] = project = line["project_id"] or invoice["project_id"]
        left[project] += Fraction(line["amount"])
    for note in sorted(invoice["credit_notes"], key=lambda it: it["id"]):
        net, shares = Fraction(note["subtotal"]), defaultdict(Fraction)
        if net == sum(left.values()):
            shares = dict(left)
        elif len(left) == 1:
            shares[next(iter(left))] = net
        else:
            for line in note["lines"]:
                shares[project_of[line["invoice_line_id"]]] += Fraction(line["amount"])
        for project, share in shares.items():
            left[project] -= share
        yield note, shares


class Question:
    """What a report is asked for: a period, and what limits the rows."""

    def __init__(self, books, asked, usual=None):
        self.books = books
        self.last = asked.get("to", books.today)
        self.first = asked.get("from") or (usual(self.last) if usual else None)
        self.only = {name: its for name, its in asked.items() if name not in {"from", "to"}}
        self.currency = asked.get("currency", books.account["currency"])
        self.moves = [move for move in books.moves if self.has(move.day) and self.means(move._asdict())]

    @property
    def period(self):
        return {"from": self.first, "to": self.last, "timezone": self.books.account["timezone"]}

    def has(self, day):
        return day is not None and (self.first or "") <= day <= self.last

    def saw(self, instant):
        return instant is not None and self.has(self.books.day(instant))

    def means(self, row):
        return all(row[name] == its for name, its in self.only.items())

    def days(self):
        day = self.first
        while day <= self.last:
            yield day
            day = next_day(day)

    def tally(self, by, names):
        """The figures added up, but for those that come to nothing."""
        found = {}
        for move in self.moves:
            for name in names & move.figures.keys():
                key = tuple(by(move))
                found.setdefault(key, dict.fromkeys(names, 0))[name] += move.figures[name]
        return {key: its for key, its in found.items() if any(its.values())}

    def balances(self):
        """Client, currency, what is due and what is overdue of each invoice of which something is outstanding."""
        for it in self.books.issued:
            due = self.books.due(it, self.last)
            if due and self.means(it):
                yield it["client_id"], it["currency"], due, due if it["due_date"] < self.last else 0

    def of_client(self, collection):
        """Rows of the client that is asked for, or all."""
        own = "id" if collection == "clients" else "client_id"
        client = self.only.get("client_id")
        return [it for it in self.books.rows[collection] if client in {None, it[own]}]

    def capacity(self, user):
        """The minutes that a user is available on the days of the period."""
        working = self.books.account["working_weekdays"]
        days = sum(WEEK[date.fromisoformat(day).weekday()] in working for day in self.days())
        return half_up(Fraction(user["weekly_capacity_minutes"] * days, len(working))) if working else 0


def revenue(currency, its):
    """The members that the revenue reports share."""
    net = its["invoiced"] - its["credited"]
    amounts = {name: its[name] for name in ("invoiced", "credited", "tax", "collected")} | {"revenue": net}
    return {"currency": currency} | {name: money(amount, currency) for name, amount in amounts.items()}


# The reports


def revenue_by_client(books, asked):
    its = Question(books, asked, year_begins)
    names = (*BILLED, "outstanding", "overdue")
    nothing = dict.fromkeys(names, 0)
    found = {key: nothing | sums for key, sums in its.tally(lambda it: (it.client_id, it.currency), {*BILLED}).items()}
    for client, currency, due, late in its.balances():
        sums = found.setdefault((client, currency), dict(nothing))
        sums["outstanding"] += due
        sums["overdue"] += late
    totals = defaultdict(lambda: dict(nothing))
    for (_, currency), sums in found.items():
        totals[currency] = {name: totals[currency][name] + sums[name] for name in names}

    def told(currency, sums, whole):
        nets = [part["invoiced"] - part["credited"] for part in (sums, whole)]
        dues = {name: money(sums[name], currency) for name in ("outstanding", "overdue")}
        more = {"invoice_count": sums["invoice_count"], "share_percent": percent(*nets)}
        return revenue(currency, sums) | dues | more

    rows = [
        {"client_id": client, "client_name": books.names[client]} | told(currency, sums, totals[currency])
        for (client, currency), sums in found.items()
    ]
    rows.sort(key=lambda it: (-Fraction(it["revenue"]), it["client_name"].casefold(), it["client_id"], it["currency"]))
    return {
        "period": its.period,
        "rows": rows,
        "totals": [told(currency, sums, sums) for currency, sums in sorted(totals.items())],
    }


def revenue_by_month(books, asked):
    its = Question(books, asked, year_before)
    names = {*BILLED, "expenses"}
    found = its.tally(lambda it: (it.day[:7], it.currency), names)
    totals = its.tally(lambda it: (it.currency,), names)
    currencies = sorted({currency for _, currency in found}) or [its.currency]

    def told(currency, sums):
        more = {"invoice_count": sums["invoice_count"], "expenses": money(sums["expenses"], currency)}
        return revenue(currency, sums) | more

    nothing = dict.fromkeys(names, 0)
    rows = [
        {"month": month} | told(currency, found.get((month, currency), nothing))
        for month in sorted({day[:7] for day in its.days()})
        for currency in currencies
    ]
    sums = [told(currency, totals.get((currency,), nothing)) for currency in currencies]
    return {"period": its.period, "rows": rows, "totals": sums}


def utilisation(books, asked):
    its = Question(books, asked, month_begins)

    def told(available, target, found):
        tracked, billable = (sum(sums[name] for sums in found.values()) for name in ("tracked", "billable"))
        worth = {currency: money(sums["value"], currency) for currency, sums in sorted(found.items())}
        own = worth.pop(its.currency, money(0, its.currency))
        return {
            "available_minutes": available,
            "tracked_minutes": tracked,
            "billable_minutes": billable,
            "utilisation_percent": percent(tracked, available),
            "billable_utilisation_percent": percent(billable, available),
            "billable_share_percent": percent(billable, tracked),
            "target_percent": target,
            "currency": its.currency,
            "billable_value": own,
            "other_currencies": [{"currency": name, "billable_value": value} for name, value in worth.items()],
        }

    found = its.tally(lambda it: (it.user_id, it.currency), {*WORKED})
    rows, available, weighed = [], 0, 0
    for own, user in sorted(books.users.items(), key=lambda it: (it[1]["name"].casefold(), it[0])):
        worked = {currency: sums for (who, currency), sums in found.items() if who == own}
        if its.only.get("user_id", own) == own and (user["is_active"] or worked):
            room, target = its.capacity(user), Fraction(user["target_percent"])
            who = {"user_id": own, "user_name": user["name"], "is_active": user["is_active"]}
            rows.append(who | told(room, thousandths(target), worked))
            available, weighed = available + room, weighed + room * target
    target = thousandths(Fraction(weighed, available)) if available else None
    worked = {currency: sums for (currency,), sums in its.tally(lambda it: (it.currency,), {*WORKED}).items()}
    return {"period": its.period, "rows": rows, "totals": [told(available, target, worked)]}


def project_profitability(books, asked):
    its = Question(books, asked)
    names = {*PROFIT}
    found = its.tally(lambda it: (it.project_id, it.currency), names)
    totals = defaultdict(lambda: dict.fromkeys(names, 0))
    for (_, currency), sums in found.items():
        sums["cost"] = half_up(sums["cost"])
        totals[currency] = {name: totals[currency][name] + sums[name] for name in names}

    def told(currency, sums):
        net = sums["line_revenue"] - sums["line_credit"]
        left, known = net - sums["cost"] - sums["expenses"], currency == books.account["currency"]
        amounts = {"billable_value": sums["value"], "revenue": net, "unbilled_amount": sums["unbilled_time"]}
        amounts |= {"expense_cost": sums["expenses"], "labour_cost": sums["cost"], "profit": left}
        return {name: money(amount, currency) for name, amount in amounts.items()} | {
            "currency": currency,
            "tracked_minutes": sums["tracked"],
            "billable_minutes": sums["billable"],
            "missing_cost_rate_minutes": sums["missing"],
            "margin_percent": percent(left, net) if known else None,
            **({} if known else {"labour_cost": None, "profit": None}),
        }

    rows = [project_of(books, project) | told(currency, sums) for (project, currency), sums in found.items()]
    rows.sort(
        key=lambda it: (
            -Fraction(it["revenue"]),
            (it["project_name"] or "").casefold(),
            it["project_id"] or 0,
            it["currency"],
        )
    )
    sums = [told(currency, sums) for currency, sums in sorted(totals.items())]
    return {"period": its.period, "rows": rows, "totals": sums}


def project_of(books, own):
    """What the row of a project says of it, or of none."""
    it = next((it for it in books.rows["projects"] if it["id"] == own), None)
    used = [percent(*parts) for parts in books.budget(it)] if it else []
    return {
        "project_id": own,
        "project_name": it and it["name"],
        "client_id": it and it["client_id"],
        "client_name": it and books.names.get(it["client_id"]),
        "status": it and it["status"],
        "billing_type": it and it["billing_type"],
        "budget_used_percent": max(used, default=None),
    }


def overview(books, asked):
    its = Question(books, asked, month_begins)
    return {
        "period": its.period,
        "money": money_of(its),
        "time": time_of(its),
        "clients": {
            "active": sum(it["status"] == "active" for it in its.of_client("clients")),
            "new": sum(its.saw(it["created_at"]) for it in its.of_client("clients")),
        },
        **work_of(its),
        **care_of(its),
    }


def money_of(its):
    names = {*BILLED[1:], "expenses", "value", "unbilled_time", "billable_expenses", "unbilled_expenses"}
    sums = {currency: figures for (currency,), figures in its.tally(lambda it: (it.currency,), names).items()}
    due = defaultdict(list)
    for _, currency, balance, late in its.balances():
        due[currency].append((balance, late))
    rows = []
    for currency in sorted({*due, *sums}) or [its.currency]:
        figures = sums.get(currency, dict.fromkeys(names, 0))
        amounts = {name: figures[name] for name in ("expenses", "unbilled_time", "unbilled_expenses")}
        amounts["outstanding"], amounts["overdue"] = map(sum, zip((0, 0), *due[currency], strict=True))
        row = revenue(currency, figures) | {name: money(amount, currency) for name, amount in amounts.items()}
        rows.append(row | {"overdue_count": sum(late > 0 for _, late in due[currency])})
    return rows


def time_of(its):
    moves = [move for move in its.moves if "tracked" in move.figures]
    tracked, billable = (sum(move.figures[name] for move in moves) for name in ("tracked", "billable"))
    users = [(own, user) for own, user in its.books.users.items()]
    present = {move.user_id for move in moves}
    available = sum(its.capacity(user) for own, user in users if user["is_active"] or own in present)
    return {
        "tracked_minutes": tracked,
        "billable_minutes": billable,
        "available_minutes": available,
        "utilisation_percent": percent(tracked, available),
        "billable_utilisation_percent": percent(billable, available),
    }


def work_of(its):
    """Projects, tasks and quotes."""
    today, projects, tasks = its.books.today, its.of_client("projects"), its.of_client("tasks")
    running = [it for it in projects if it["status"] in NOT_COMPLETED]
    undone = [it for it in tasks if it["status"] in UNDONE]
    quotes = {
        step: sum(its.saw(it[f"{step}_at"]) for it in its.of_client("quotes"))
        for step in ("sent", "accepted", "declined")
    }
    rate = percent(quotes["accepted"], quotes["accepted"] + quotes["declined"])
    return {
        "projects": {
            "active": sum(it["status"] == "active" for it in projects),
            "over_budget": sum(any(used > whole for used, whole in its.books.budget(it)) for it in running),
            "overdue": sum((it["due_date"] or today) < today for it in running),
        },
        "tasks": {
            "open": len(undone),
            "overdue": sum((it["due_date"] or today) < today for it in undone),
            "completed": sum(it["status"] == "done" and its.saw(it["completed_at"]) for it in tasks),
        },
        "quotes": quotes | {"win_rate_percent": rate},
    }


def care_of(its):
    """Tickets and sites."""
    tickets, sites = its.of_client("tickets"), its.of_client("sites")
    opened = [it for it in tickets if its.saw(it["created_at"])]
    waiting = [it for it in tickets if it["status"] in UNRESOLVED]
    minutes = sorted(it["first_response_minutes"] for it in opened if it["first_response_at"])
    middle = minutes[(len(minutes) - 1) // 2 : len(minutes) // 2 + 1]
    return {
        "tickets": {
            "opened": len(opened),
            "resolved": sum(its.saw(it["resolved_at"]) for it in tickets),
            "open_now": len(waiting),
            "unanswered_now": sum(it["first_response_at"] is None for it in waiting),
            "median_first_response_minutes": half_up(Fraction(sum(middle), len(middle))) if middle else None,
        },
        "sites": {
            "total": len(sites),
            **{status: sum(it["status"] == status for it in sites) for status in ("up", "down", "unknown")},
            "with_updates": sum(bool(it["plugin_updates_count"] or it["core_update_available"]) for it in sites),
        },
    }


REPORTS = {
    "overview": overview,
    "revenue-by-client": revenue_by_client,
    "revenue-by-month": revenue_by_month,
    "utilisation": utilisation,
    "project-profitability": project_profitability,
}
