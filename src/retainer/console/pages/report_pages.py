"""The pages of the business reports, and their CSV files.

The console is for admins, and admins may read everything that the scope `reports:read` opens: reports have no
restriction of their own.
"""

from retainer.console.page_context import NO_STORE, PageContext, Reply
from retainer.console.reports.building import build
from retainer.console.reports.controls import read_controls
from retainer.console.reports.declarations import REPORTS, Declaration
from retainer.errors import Refusal, invalid
from retainer.store.tx import Tx
from retainer.web.csv_files import csv_response


def show(tx: Tx, context: PageContext) -> Reply:
    declared = find(context)
    controls = read_controls(tx, context, declared.default_start)
    return context.render(
        "report",
        name=context.path_parameters["report"],
        title=declared.title,
        asked=controls,
        report=build(tx, declared, controls),
    )


def download(tx: Tx, context: PageContext) -> Reply:
    """Return the tables of a report as a CSV file. Raises `not_found`, and `validation_failed` for invalid controls."""
    declared = find(context)
    controls = read_controls(tx, context, declared.default_start)
    if context.query.errors:
        raise invalid(context.query.errors)
    file = f"{context.path_parameters['report']}-{controls.period.first}-to-{controls.period.to}"
    return csv_response(file, *build(tx, declared, controls).csv(), NO_STORE)


def find(context: PageContext) -> Declaration:
    if declared := REPORTS.get(context.path_parameters["report"]):
        return declared
    raise Refusal("not_found", "This report does not exist.")
