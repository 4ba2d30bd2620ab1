"""Unbilled work: the request that bills what matches, kind by kind, and what it leaves out."""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta

from retainer.values.common import RoundingDirection, RoundingMinutes, RoundingUnit
from retainer.values.kinds import Currency, Day, Id, SignedMoney

MAX_ITEMS = 1000
"""Maximum number of time entries or expenses on a line."""
Ids = Annotated[list[Id], Meta(max_length=MAX_ITEMS)]


class DayRange(msgspec.Struct):
    """The days of the work to bill."""

    from_: Annotated[Day | None, "First day, inclusive; null: no limit."] = msgspec.field(name="from", default=None)
    to: Annotated[Day | None, "Last day, inclusive; null: today."] = None


class Rounding(msgspec.Struct):
    """How the hours of lines are rounded; the time entries keep their minutes."""

    minutes: Annotated[RoundingMinutes, "Hours become multiples of this many minutes; 1 rounds nothing."]
    to: RoundingDirection = "up"
    each: RoundingUnit = "entry"

    def sum_up(self, durations: Sequence[int]) -> int:
        """Return the sum of minutes, rounded."""
        parts = durations if self.each == "entry" else [sum(durations)]
        more = self.minutes - 1 if self.to == "up" else self.minutes // 2
        return sum((part + more) // self.minutes * self.minutes for part in parts)


class UnbilledTime(DayRange):
    """Which time to bill, and how to group it into lines."""

    project_ids: Annotated[
        Ids | None,
        "Only time on these projects. Omitted: all time, except on fixed-fee and retainer projects, which the fee "
        "covers. Time without a rate is never billed.",
    ] = None
    group_by: Annotated[
        Literal["entry", "task", "user", "project"],
        Meta(title="UnbilledTimeGrouping"),
        "One line for each; no line mixes projects.",
    ] = "project"
    rounding: Annotated[
        Rounding | None, "Rounds hours, with a line for each rate; omitted: as the account says. Entries stay the same."
    ] = None


class UnbilledExpenses(DayRange):
    """Which expenses to bill, and how to group them into lines."""

    project_ids: Annotated[Ids | None, "Only expenses for these projects; null: all."] = None
    group_by: Annotated[
        Literal["entry", "category", "project"],
        Meta(title="UnbilledExpensesGrouping"),
        "One line for each; no line mixes projects. Lines of `project` are called by the expenses' descriptions.",
    ] = "project"


class UnbilledMilestones(msgspec.Struct):
    """Which completed milestones to bill, one line for each."""

    project_ids: Annotated[Ids | None, "Only milestones of these projects; null: of all."] = None


class UnbilledFees(DayRange):
    """Which months of retainers to bill, one line for each: those from the month of `from` to the month of `to`."""

    project_ids: Annotated[Ids | None, "Only fees of these projects; null: of all."] = None


class UnbilledFixedFees(msgspec.Struct):
    """Of which projects to bill what is left of their fixed fees, one line for each."""

    project_ids: Annotated[Ids | None, "Only these projects, completed or not; null: all completed ones."] = None


Selection = UnbilledTime | UnbilledExpenses | UnbilledMilestones | UnbilledFees | UnbilledFixedFees


class UnbilledWork(msgspec.Struct):
    """Which unbilled work of the client, in the invoice's currency, to bill."""

    time: Annotated[UnbilledTime | None, "Which time to bill, `{}` for all; null: none."] = None
    expenses: Annotated[UnbilledExpenses | None, "Which expenses to bill, `{}` for all; null: none."] = None
    milestones: Annotated[
        UnbilledMilestones | None,
        "Which completed milestones with an amount, on no invoice, to bill, `{}` for all; null: none.",
    ] = None
    fees: Annotated[
        UnbilledFees | None,
        "Which months of retainers to bill, `{}` for all; null: none. Each month that has begun matches, from the "
        "project's start to its end, unless it is on an invoice.",
    ] = None
    fixed_fees: Annotated[
        UnbilledFixedFees | None,
        "Of which fixed fees to bill what is left, `{}` for those of completed projects; null: none. Lines of the "
        "project count against its fee, but for time and expenses, and milestones are billed by themselves.",
    ] = None


SELECTIONS: dict[str, type[Selection]] = {
    name: get_args(hint)[0] for name, hint in get_type_hints(UnbilledWork).items()
}
"""The kinds of unbilled work, and what selects some of each."""
WITH_DAYS = [name for name, selection in SELECTIONS.items() if issubclass(selection, DayRange)]


def everything_until(last: str) -> dict[str, dict[str, str]]:
    """Return the `unbilled_work` that asks for all work until a day."""
    return {name: {"to": last} if name in WITH_DAYS else {} for name in SELECTIONS}


class LeftOut(msgspec.Struct):
    """Work that matches `unbilled_work` and is not billed."""

    reason: Annotated[
        Literal["covered", "unpriced", "other_currency", "fee_billed", "open_fee"],
        Meta(title="LeftOutReason"),
        "`covered`: a fixed fee or retainer pays for the time, and its project was not named; `unpriced`: the time has "
        "no rate; `other_currency`: bill the work on another invoice, with this `currency`; `fee_billed`: the "
        "milestones would bill more than the fixed fee, as other lines, perhaps of its quote, bill it already; "
        "`open_fee`: what is left of the fixed fees of projects that are not completed.",
    ]
    count: Annotated[int, "Number of time entries, expenses, milestones, months, or projects of an `open_fee`."]
    minutes: Annotated[int, "Sum of the minutes of the time entries."]
    currency: Annotated[Currency, "Currency of the work; that of the invoice, unless the reason is `other_currency`."]
    amount: Annotated[SignedMoney | None, "Sum of the amounts, before tax; null if `unpriced`."]
