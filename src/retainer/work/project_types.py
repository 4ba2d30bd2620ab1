"""The type of a project, with its status, its billing type, and what follows from its totals."""

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, and_, case

from retainer.billing import to_bill
from retainer.billing.quotes import types as quote_types
from retainer.crm.tags import TagIds
from retainer.schema import expressions
from retainer.store.row_mapper import Derived, RefersTo
from retainer.values.common import BudgetShare, ExternalId, Minutes, Share
from retainer.values.exact import percent
from retainer.values.kinds import Code30, Currency, Day, Id, Instant, Money, SignedMoney, Text191, Text10000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, AllowedOn, Record, RequiredUnless

Status = Annotated[
    Literal["planned", "active", "on_hold", "completed", "archived"],
    Meta(title="ProjectStatus"),
    "`completed` and `archived` are closed; reopen them as `active`. `archived` accepts no tasks, time or expenses.",
]
BillingType = Annotated[
    Literal["time_and_materials", "fixed_fee", "retainer", "non_billable"],
    Meta(title="ProjectBillingType"),
    "What the client pays for: time and expenses, a fixed fee, a monthly fee, or nothing.",
]
AutoInvoice = Annotated[
    Literal["off", "draft", "issue", "send"],
    Meta(title="ProjectAutoInvoice"),
    "`draft` bills each month that has begun and is on no invoice in a draft, `issue` issues it too, and `send` also "
    "sends it by mail; each month once. What cannot be sent, such as without an address, stays a draft.",
]


def unbilled(name: str) -> Callable[[Table], ColumnElement[int]]:
    """Return a total of unbilled time as an expression: 0 if a fee covers the project's time."""
    return lambda table: case((expressions.is_covered(table), 0), else_=table.c[name])


def budget_used(table: Table) -> ColumnElement[int | None]:
    """Return the greater share of budget_amount and budget_minutes, in hundredths of a percent; null without one."""
    of_amount = expressions.ratio(table.c.billable_amount, table.c.budget_amount)
    of_minutes = expressions.ratio(table.c.tracked_minutes, table.c.budget_minutes)
    has_both = and_(table.c.budget_amount > 0, table.c.budget_minutes > 0)
    greater = case((of_amount > of_minutes, of_amount), else_=of_minutes)
    return case((has_both, greater), (table.c.budget_amount > 0, of_amount), else_=of_minutes)


def done_ratio(table: Table) -> ColumnElement[int | None]:
    return expressions.ratio(table.c.tasks_done_count, table.c.tasks_count - table.c.tasks_cancelled_count)


class Project(Record):
    """Work for a client, or without one, for the agency itself."""

    name: Annotated[
        Text191,
        RequiredUnless("quote_id"),
        "Required without `quote_id`. Default with it: the quote's title or number.",
    ]
    client_id: Annotated[
        Id | None, "Null for internal work, which is never billed. Fixed once work was recorded for the client."
    ] = None
    code: Annotated[Code30 | None, "Short name of your choice, unique in the account, ignoring case."] = None
    description: Annotated[Text10000 | None, "The work to be done. `q` searches it."] = None
    status: Status = "active"
    billing_type: Annotated[
        BillingType,
        "Default: the template's. Without one, `time_and_materials` for clients and templates, else `non_billable`.",
    ] = SERVER_DEFAULT
    currency: Annotated[Currency, "Currency of the client, or of the account for internal work."] = READ_ONLY
    hourly_rate: Annotated[
        Money | None, "For time on the project. Null: the client's rate, else the user's, else the account's."
    ] = None
    fixed_fee: Annotated[
        Money | None, "Price of the whole project, which milestones divide. Only for the billing type `fixed_fee`."
    ] = None
    retainer_amount: Annotated[Money | None, "Monthly price. Only for the billing type `retainer`."] = None
    auto_invoice: Annotated[
        AutoInvoice,
        "What the first morning of a month does, in the account's zone. Only for the billing type `retainer`.",
    ] = "off"
    budget_amount: Annotated[Money | None, "Limit for `billable_amount`, before tax."] = None
    budget_minutes: Annotated[
        Annotated[Minutes, Meta(ge=0, le=1_000_000_000)] | None, "Limit for `tracked_minutes`."
    ] = None
    start_date: Annotated[Day | None, "First day of the work. Dates copied from a template move with it."] = None
    due_date: Annotated[Day | None, "Not before `start_date`. An open project is overdue from the next day on."] = None
    manager_id: Annotated[Id | None, "Active user who is in charge of the project."] = None
    quote_id: Annotated[
        Id | None,
        AllowedOn("Create"),
        quote_types.made_from("converted_project_id"),
        RefersTo("quotes"),
        "Accepted quote to convert: sets name, client, and its subtotal as `fixed_fee`, or with `billing_type` "
        "`time_and_materials` as `budget_amount`. The quote's invoice counts against the fee. Only on creation; once.",
    ] = None
    is_template: Annotated[
        bool,
        AllowedOn("Create"),
        "Only on creation. Lists, counts and reports exclude templates, which accept no time or money.",
    ] = False
    completed_at: Annotated[
        Instant | None, "When the project became `completed`. Null again when it is reopened, kept when it is archived."
    ] = READ_ONLY
    archived_at: Annotated[Instant | None, "When the project became `archived`, else null."] = READ_ONLY
    external_id: ExternalId = None
    tag_ids: TagIds = []
    tracked_minutes: Annotated[Minutes, "Time on the project, billable or not."] = READ_ONLY
    billable_minutes: Annotated[Minutes, "Billable time on the project, invoiced or not."] = READ_ONLY
    unbilled_minutes: Annotated[
        Minutes,
        Derived(unbilled("unbilled_minutes")),
        "Billable time with a rate that is not invoiced; 0 if a fixed fee or retainer covers it.",
    ] = READ_ONLY
    billable_amount: Annotated[
        Money, "Value of the billable time in the project's currency, invoiced or not, before tax."
    ] = READ_ONLY
    unbilled_amount: Annotated[
        Money,
        Derived(unbilled("unbilled_amount"), money=True),
        "Value of the unbilled time in the project's currency, before tax; 0 if a fee covers it.",
    ] = READ_ONLY
    to_bill_amount: Annotated[
        SignedMoney,
        Derived(to_bill.of_project, money=True),
        "What the next invoice would bill, in the project's currency, before tax: unbilled time and expenses until "
        "today, completed milestones, months of the retainer that have begun, and what is left of a completed "
        "project's fixed fee.",
    ] = READ_ONLY
    invoiced_amount: Annotated[
        SignedMoney, "Net of its lines on issued invoices, less credits, in the project's currency."
    ] = READ_ONLY
    expense_amount: Annotated[SignedMoney, "Net of its expenses in the project's currency, billable or not."] = (
        READ_ONLY
    )
    budget_used_percent: Annotated[
        BudgetShare | None,
        Derived(budget_used, percent),
        "`billable_amount` of `budget_amount`, or tracked time of `budget_minutes`: the greater. Null without budget.",
    ] = READ_ONLY
    progress_percent: Annotated[
        Share | None,
        Derived(done_ratio, percent),
        "Share of the tasks that are done, without cancelled ones; null without tasks.",
    ] = READ_ONLY
    template_id: Annotated[
        Id | None,
        AllowedOn("Create"),
        RefersTo("projects", is_template=True),
        "Template to copy: its milestones, tasks, and the fields that the body leaves out. Only on creation.",
    ] = WRITE_ONLY
