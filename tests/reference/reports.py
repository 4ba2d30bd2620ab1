"""A reference model of the five reports, in plain Python: by a look at every row that the API lists, and at every day.

Books are what an agency has at a moment: the rows as they are answered, and what only operators know. A report takes
what a query asks for and returns the `data` of the answer. Amounts are whole minor units, days and moments are texts.
"""

import unicodedata
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tests.reference.arithmetic import day_after, half_up, in_units, money

WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ISSUED = ("sent", "partially_paid", "paid", "written_off")
NOT_COMPLETED = ("planned", "active", "on_hold")
COVERED = ("fixed_fee", "retainer")
UNDONE = ("todo", "in_progress", "in_review")
UNRESOLVED = ("open", "pending", "on_hold")
BILLED = ("invoice_count", "invoiced", "credited", "tax", "collected")
BALANCES = ("outstanding", "overdue", "refund_due")
WORKED = ("tracked", "billable", "value")
PROFIT = (*WORKED, "line_revenue", "line_credit", "unbilled_time", "expenses", "cost", "missing", "unpriced")


def sort_key(name):
    """What a name is sorted by: its letters without accents, and those only where all else is the same."""
    letters = unicodedata.normalize("NFD", name.casefold())
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Mn"), name.casefold()


def units(amount, currency):
    return int(in_units(amount, currency))


def percent(part, whole):
    return Fraction(half_up(Fraction(10_000 * part, whole)), 100) if whole > 0 else None


def thousandths(value):
    """A percentage with at most three places."""
    text = f"{Decimal(half_up(value * 1000)).scaleb(-3):f}"
    return text.rstrip("0").rstrip(".")


def next_day(day):
    return day_after(day, 1)


def month_begins(day):
    return f"{day[:8]}01"


def year_begins(day):
    return f"{day[:5]}01-01"


def year_before(day):
    return f"{int(day[:4]) - 1}{day[4:8]}01"


class Movement(NamedTuple):
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
        self.issued = [invoice for invoice in rows["invoices"] if invoice["status"] in ISSUED]
        self.names = {client["id"]: client["name"] for client in rows["clients"]}
        self.moves = [*self.time(), *self.expenses(), *(move for invoice in self.issued for move in self.bill(invoice))]

    def day(self, instant):
        return datetime.fromisoformat(instant).astimezone(self.zone).date().isoformat()

    def time(self):
        covered = {project["id"] for project in self.rows["projects"] if project["billing_type"] in COVERED}
        for entry in self.rows["time-entries"]:
            is_left = entry["billable"] and entry["invoice_id"] is None and entry["project_id"] not in covered
            is_priced = not entry["billable"] or entry["hourly_rate"] is not None
            minutes, rate = entry["duration_minutes"], self.rate(entry)
            value = units(entry["amount"], entry["currency"]) if is_priced else 0
            figures = {
                "tracked": minutes,
                "billable": minutes if entry["billable"] else 0,
                "value": value,
                "unbilled_time": value if is_left else 0,
                "unpriced": minutes if is_left and not is_priced else 0,
                "cost": Fraction(minutes * (rate or 0), 60),
                "missing": minutes if rate is None else 0,
            }
            yield Movement(
                entry["date"], entry["currency"], entry["client_id"], entry["project_id"], entry["user_id"], figures
            )

    def rate(self, entry):
        """What an hour of the user costs on the day of an entry."""
        past = [(day, rate) for day, rate in self.users[entry["user_id"]]["rates"].items() if day <= entry["date"]]
        return units(max(past)[1], self.account["currency"]) if past else None

    def expenses(self):
        for expense in self.rows["expenses"]:
            will_be_billed = expense["billable_amount"] if expense["billing_status"] == "unbilled" else 0
            figures = {"expenses": expense["net_amount"], "unbilled_expenses": will_be_billed}
            figures |= {"billable_expenses": expense["billable_amount"]}
            figures = {name: units(amount, expense["currency"]) for name, amount in figures.items()}
            yield Movement(
                expense["date"], expense["currency"], expense["client_id"], expense["project_id"], None, figures
            )

    def bill(self, invoice):
        """What an issued invoice brings: itself and its lines, its credit notes and their shares, its payments."""

        def move(day, project=None, **amounts):
            figures = {name: units(amount, invoice["currency"]) for name, amount in amounts.items()}
            return Movement(day, invoice["currency"], invoice["client_id"], project, None, figures)

        issued = move(
            invoice["issue_date"],
            invoiced=Fraction(invoice["total"]) - Fraction(invoice["tax_total"]),
            tax=invoice["tax_total"],
        )
        yield issued._replace(figures=issued.figures | {"invoice_count": 1})
        for line in invoice["lines"]:
            yield move(invoice["issue_date"], line["project_id"] or invoice["project_id"], line_revenue=line["amount"])
        for note, shares in credited(invoice):
            net = Fraction(note["total"]) - Fraction(note["tax_total"])
            yield move(note["issue_date"], credited=net, tax=-Fraction(note["tax_total"]))
            for project, share in shares.items():
                yield move(note["issue_date"], project, line_credit=share)
        for payment in invoice["payments"]:
            yield move(payment["paid_date"], collected=payment["amount"])

    def due(self, invoice, day):
        """What is outstanding of an issued invoice at the end of a day, and what its client is owed."""
        if invoice["issue_date"] > day:
            return 0, 0
        paid = [payment["amount"] for payment in invoice["payments"] if payment["paid_date"] <= day]
        taken_back = [note["total"] for note in invoice["credit_notes"] if note["issue_date"] <= day]
        balance = units(Fraction(invoice["total"]) - sum(map(Fraction, paid + taken_back)), invoice["currency"])
        is_over = invoice["written_off_at"] and self.day(invoice["written_off_at"]) <= day
        return 0 if is_over else max(0, balance), max(0, -balance)

    def budget(self, project):
        """What of its budgets a project has used, each with the whole of it."""
        entries = [entry for entry in self.rows["time-entries"] if entry["project_id"] == project["id"]]
        value = sum(Fraction(entry["amount"] or 0) for entry in entries if entry["currency"] == project["currency"])
        minutes = sum(entry["duration_minutes"] for entry in entries)
        both = ((value, Fraction(project["budget_amount"] or 0)), (minutes, project["budget_minutes"] or 0))
        return [(used, whole) for used, whole in both if whole > 0]


def credited(invoice):
    """The credit notes of an invoice in their order, each with what of its net is taken back from each project.

    Amounts are credited on invoices of one project only, or are all that is left.
    """
    left, project_of = defaultdict(Fraction), {}
    for line in invoice["lines"]:
        project_of[line["id"]] = project = line["project_id"] or invoice["project_id"]
        left[project] += Fraction(line["amount"])
    for note in sorted(invoice["credit_notes"], key=lambda note: note["id"]):
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


class ReportQuery:
    """What a report is asked for: a period, and what limits the rows."""

    def __init__(self, books, params, default_first=None):
        self.books = books
        self.last = params.get("to", books.today)
        self.first = params.get("from") or (default_first(self.last) if default_first else None)
        self.filters = {name: value for name, value in params.items() if name not in {"from", "to"}}
        self.currency = params.get("currency", books.account["currency"])
        self.moves = [move for move in books.moves if self.includes(move.day) and self.matches(move._asdict())]

    @property
    def period(self):
        return {"from": self.first, "to": self.last, "timezone": self.books.account["timezone"]}

    def includes(self, day):
        return day is not None and (self.first or "") <= day <= self.last

    def includes_instant(self, instant):
        return instant is not None and self.includes(self.books.day(instant))

    def matches(self, row):
        return all(row[name] == value for name, value in self.filters.items())

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
        return {key: sums for key, sums in found.items() if any(sums.values())}

    def balances(self):
        """Client, currency, what is due, what is overdue and what is owed to the client of each open invoice."""
        for invoice in self.books.issued:
            due, owed = self.books.due(invoice, self.last)
            if (due or owed) and self.matches(invoice):
                late = due if invoice["due_date"] < self.last else 0
                yield invoice["client_id"], invoice["currency"], (due, late, owed)

    def client_rows(self, collection):
        """Rows of the client that is asked for, or all."""
        client_key = "id" if collection == "clients" else "client_id"
        client = self.filters.get("client_id")
        return [row for row in self.books.rows[collection] if client in {None, row[client_key]}]

    def capacity(self, user):
        """The minutes that a user is available on the days of the period."""
        working = self.books.account["working_weekdays"]
        days = sum(WEEK[date.fromisoformat(day).weekday()] in working for day in self.days())
        return half_up(Fraction(user["weekly_capacity_minutes"] * days, len(working))) if working else 0


def revenue(currency, sums):
    """The fields that the revenue reports share."""
    net = sums["invoiced"] - sums["credited"]
    amounts = {name: sums[name] for name in ("invoiced", "credited", "tax", "collected")} | {"revenue": net}
    return {"currency": currency} | {name: money(amount, currency) for name, amount in amounts.items()}


# The reports


def revenue_by_client(books, params):
    scope = ReportQuery(books, params, year_begins)
    names = (*BILLED, *BALANCES)
    nothing = dict.fromkeys(names, 0)
    found = {
        key: nothing | sums
        for key, sums in scope.tally(lambda move: (move.client_id, move.currency), {*BILLED}).items()
    }
    for client, currency, balances in scope.balances():
        sums = found.setdefault((client, currency), dict(nothing))
        for name, balance in zip(BALANCES, balances, strict=True):
            sums[name] += balance
    totals = defaultdict(lambda: dict(nothing))
    for (_, currency), sums in found.items():
        totals[currency] = {name: totals[currency][name] + sums[name] for name in names}

    def figures_of(currency, sums, whole):
        nets = [part["invoiced"] - part["credited"] for part in (sums, whole)]
        dues = {name: money(sums[name], currency) for name in BALANCES}
        more = {"invoice_count": sums["invoice_count"], "share_percent": percent(*nets)}
        return revenue(currency, sums) | dues | more

    rows = [
        {"client_id": client, "client_name": books.names[client]} | figures_of(currency, sums, totals[currency])
        for (client, currency), sums in found.items()
    ]
    rows.sort(
        key=lambda row: (-Fraction(row["revenue"]), sort_key(row["client_name"]), row["client_id"], row["currency"])
    )
    return {
        "period": scope.period,
        "rows": rows,
        "totals": [figures_of(currency, sums, sums) for currency, sums in sorted(totals.items())],
    }


def revenue_by_month(books, params):
    scope = ReportQuery(books, params, year_before)
    names = {*BILLED, "expenses"}
    found = scope.tally(lambda move: (move.day[:7], move.currency), names)
    totals = scope.tally(lambda move: (move.currency,), names)
    currencies = sorted({currency for _, currency in found}) or [scope.currency]

    def figures_of(currency, sums):
        more = {"invoice_count": sums["invoice_count"], "expenses": money(sums["expenses"], currency)}
        return revenue(currency, sums) | more

    nothing = dict.fromkeys(names, 0)
    rows = [
        {"month": month} | figures_of(currency, found.get((month, currency), nothing))
        for month in sorted({day[:7] for day in scope.days()})
        for currency in currencies
    ]
    sums = [figures_of(currency, totals.get((currency,), nothing)) for currency in currencies]
    return {"period": scope.period, "rows": rows, "totals": sums}


def utilisation(books, params):
    scope = ReportQuery(books, params, month_begins)

    def figures_of(available, target, found):
        tracked, billable = (sum(sums[name] for sums in found.values()) for name in ("tracked", "billable"))
        by_currency = {currency: money(sums["value"], currency) for currency, sums in sorted(found.items())}
        main_value = by_currency.pop(scope.currency, money(0, scope.currency))
        return {
            "available_minutes": available,
            "tracked_minutes": tracked,
            "billable_minutes": billable,
            "utilisation_percent": percent(tracked, available),
            "billable_utilisation_percent": percent(billable, available),
            "billable_share_percent": percent(billable, tracked),
            "target_percent": target,
            "currency": scope.currency,
            "billable_value": main_value,
            "other_currencies": [
                {"currency": name, "billable_value": value} for name, value in by_currency.items() if Decimal(value)
            ],
        }

    found = scope.tally(lambda move: (move.user_id, move.currency), {*WORKED})
    rows, available, weighed = [], 0, 0
    for user_id, user in sorted(books.users.items(), key=lambda item: (sort_key(item[1]["name"]), item[0])):
        worked = {currency: sums for (who, currency), sums in found.items() if who == user_id}
        if scope.filters.get("user_id", user_id) == user_id and (user["is_active"] or worked):
            room, target = scope.capacity(user), Fraction(user["target_percent"])
            who = {"user_id": user_id, "user_name": user["name"], "is_active": user["is_active"], "groups": None}
            rows.append(who | figures_of(room, thousandths(target), worked))
            available, weighed = available + room, weighed + room * target
    target = thousandths(Fraction(weighed, available)) if available else None
    worked = {currency: sums for (currency,), sums in scope.tally(lambda move: (move.currency,), {*WORKED}).items()}
    return {"period": scope.period, "rows": rows, "totals": [figures_of(available, target, worked)]}


def project_profitability(books, params):
    scope = ReportQuery(books, params)
    names = {*PROFIT}
    found = scope.tally(lambda move: (move.project_id, move.currency), names)
    totals = defaultdict(lambda: dict.fromkeys(names, 0))
    for (_, currency), sums in found.items():
        sums["cost"] = half_up(sums["cost"])
        totals[currency] = {name: totals[currency][name] + sums[name] for name in names}

    def figures_of(currency, sums):
        net = sums["line_revenue"] - sums["line_credit"]
        left, known = net - sums["cost"] - sums["expenses"], currency == books.account["currency"]
        amounts = {"billable_value": sums["value"], "revenue": net, "unbilled_amount": sums["unbilled_time"]}
        amounts |= {"expense_cost": sums["expenses"], "labour_cost": sums["cost"], "profit": left}
        return {name: money(amount, currency) for name, amount in amounts.items()} | {
            "currency": currency,
            "tracked_minutes": sums["tracked"],
            "billable_minutes": sums["billable"],
            "missing_cost_rate_minutes": sums["missing"],
            "unpriced_minutes": sums["unpriced"],
            "margin_percent": percent(left, net) if known else None,
            **({} if known else {"labour_cost": None, "profit": None}),
        }

    rows = [project_of(books, project) | figures_of(currency, sums) for (project, currency), sums in found.items()]
    rows.sort(
        key=lambda row: (
            -Fraction(row["revenue"]),
            sort_key(row["project_name"] or ""),
            row["project_id"] or 0,
            row["currency"],
        )
    )
    sums = [figures_of(currency, sums) for currency, sums in sorted(totals.items())]
    return {"period": scope.period, "rows": rows, "totals": sums}


def project_of(books, project_id):
    """What the row of a project says of it, or of none."""
    project = next((row for row in books.rows["projects"] if row["id"] == project_id), None)
    used = [percent(*parts) for parts in books.budget(project)] if project else []
    return {
        "project_id": project_id,
        "project_name": project and project["name"],
        "client_id": project and project["client_id"],
        "client_name": project and books.names.get(project["client_id"]),
        "status": project and project["status"],
        "billing_type": project and project["billing_type"],
        "budget_used_percent": max(used, default=None),
    }


def overview(books, params):
    scope = ReportQuery(books, params, month_begins)
    return {
        "period": scope.period,
        "money": money_of(scope),
        "time": time_of(scope),
        "clients": {
            "active": sum(client["status"] == "active" for client in scope.client_rows("clients")),
            "new": sum(scope.includes_instant(client["created_at"]) for client in scope.client_rows("clients")),
        },
        **work_of(scope),
        **support_of(scope),
    }


def money_of(scope):
    names = {*BILLED[1:], "expenses", "value", "unbilled_time", "billable_expenses", "unbilled_expenses"}
    sums = {currency: figures for (currency,), figures in scope.tally(lambda move: (move.currency,), names).items()}
    due = defaultdict(list)
    for _, currency, balances in scope.balances():
        due[currency].append(balances)
    rows = []
    for currency in sorted({*due, *sums}) or [scope.currency]:
        figures = sums.get(currency, dict.fromkeys(names, 0))
        amounts = {name: figures[name] for name in ("expenses", "unbilled_time", "unbilled_expenses")}
        amounts |= zip(BALANCES, map(sum, zip((0, 0, 0), *due[currency], strict=True)), strict=True)
        row = revenue(currency, figures) | {name: money(amount, currency) for name, amount in amounts.items()}
        rows.append(row | {"overdue_count": sum(late > 0 for _, late, _ in due[currency])})
    return rows


def time_of(scope):
    moves = [move for move in scope.moves if "tracked" in move.figures]
    tracked, billable = (sum(move.figures[name] for move in moves) for name in ("tracked", "billable"))
    users = [(user_id, user) for user_id, user in scope.books.users.items()]
    present = {move.user_id for move in moves}
    available = sum(scope.capacity(user) for user_id, user in users if user["is_active"] or user_id in present)
    return {
        "tracked_minutes": tracked,
        "billable_minutes": billable,
        "available_minutes": available,
        "utilisation_percent": percent(tracked, available),
        "billable_utilisation_percent": percent(billable, available),
        "unpriced_minutes": sum(move.figures["unpriced"] for move in moves),
    }


def work_of(scope):
    """Projects, tasks and quotes."""
    today, projects, tasks = scope.books.today, scope.client_rows("projects"), scope.client_rows("tasks")
    running = [project for project in projects if project["status"] in NOT_COMPLETED]
    undone = [task for task in tasks if task["status"] in UNDONE]
    quotes = {
        step: sum(scope.includes_instant(quote[f"{step}_at"]) for quote in scope.client_rows("quotes"))
        for step in ("sent", "accepted", "declined")
    }
    rate = percent(quotes["accepted"], quotes["accepted"] + quotes["declined"])
    return {
        "projects": {
            "active": sum(project["status"] == "active" for project in projects),
            "over_budget": sum(any(used > whole for used, whole in scope.books.budget(project)) for project in running),
            "overdue": sum((project["due_date"] or today) < today for project in running),
        },
        "tasks": {
            "open": len(undone),
            "overdue": sum((task["due_date"] or today) < today for task in undone),
            "completed": sum(
                task["status"] == "done" and scope.includes_instant(task["completed_at"]) for task in tasks
            ),
        },
        "quotes": quotes | {"win_rate_percent": rate},
    }


def support_of(scope):
    """Tickets and sites."""
    tickets, sites = scope.client_rows("tickets"), scope.client_rows("sites")
    opened = [ticket for ticket in tickets if scope.includes_instant(ticket["created_at"])]
    waiting = [ticket for ticket in tickets if ticket["status"] in UNRESOLVED]
    minutes = sorted(ticket["first_response_minutes"] for ticket in opened if ticket["first_response_at"])
    middle = minutes[(len(minutes) - 1) // 2 : len(minutes) // 2 + 1]
    return {
        "tickets": {
            "opened": len(opened),
            "resolved": sum(scope.includes_instant(ticket["resolved_at"]) for ticket in tickets),
            "open_now": len(waiting),
            "unanswered_now": sum(ticket["first_response_at"] is None for ticket in waiting),
            "median_first_response_minutes": half_up(Fraction(sum(middle), len(middle))) if middle else None,
        },
        "sites": {
            "total": len(sites),
            **{status: sum(site["status"] == status for site in sites) for status in ("up", "down", "unknown")},
            "with_updates": sum(bool(site["plugin_updates_count"] or site["core_update_available"]) for site in sites),
        },
    }


REPORTS = {
    "overview": overview,
    "revenue-by-client": revenue_by_client,
    "revenue-by-month": revenue_by_month,
    "utilisation": utilisation,
    "project-profitability": project_profitability,
}
