"""The day of a client that openapi-python-client has generated."""

import os
from functools import partial
from importlib import import_module

from retainer_client import AuthenticatedClient, models
from retainer_client.types import UNSET

server = AuthenticatedClient(base_url=os.environ["RETAINER_URL"], token=os.environ["RETAINER_KEY"])


def parsed(operation, *ids, **arguments):
    return import_module(f"retainer_client.api.{operation}").sync_detailed(*ids, client=server, **arguments)


def call(operation, *ids, **arguments):
    answer = parsed(operation, *ids, **arguments)
    assert answer.status_code < 300, answer
    return answer.parsed and answer.parsed.data


def any_object(**fields):
    made = models.BatchOperationBodyType0()
    made.additional_properties.update(fields)
    return made


optician = call("clients.create_client", body=models.ClientCreate(name="Optik Sommer", tax_rate="19"))
sofie = models.ExternalContactCreate(client_id=optician.id, last_name="Sommer", role=models.ExternalContactRole.BILLING)
contact = call("external_contacts.create_external_contact", body=sofie)
project = call(
    "projects.create_project", body=models.ProjectCreate(name="Shop", client_id=optician.id, hourly_rate="95")
)
task = call("tasks.create_task", body=models.TaskCreate(title="Import", project_id=project.id))
for minutes in (90, 30):
    call("time_entries.create_time_entry", body=models.TimeEntryCreate(duration_minutes=minutes, task_id=task.id))

offered = models.QuoteLineUpsert(description="Concept", quantity="2", unit_price="500.00")
new_quote = partial(models.QuoteCreate, client_id=optician.id, contact_id=contact.id, lines=[offered])
offer = call("quotes.create_quote", body=new_quote(title="Shop"))
line = models.QuoteLineCreate(description="Training", unit_price="760")
added = call("quotes.create_quote_line", offer.id, body=line)
call("quotes.delete_quote_line", offer.id, added.id)
call("quotes.update_quote", offer.id, body=models.QuoteUpdate(status=models.QuoteStatus.SENT))
accepted = models.QuoteUpdate(status=models.QuoteStatus.ACCEPTED, accepted_by="Sofie Sommer")
call("quotes.replace_quote", offer.id, body=accepted)
assert call("quotes.get_quote", offer.id).status == "accepted"
call("quotes.delete_quote", call("quotes.create_quote", body=new_quote()).id)

invoice = call("invoices.create_invoice", body=models.InvoiceCreate(quote_id=offer.id))
call("invoices.update_invoice", invoice.id, body=models.InvoiceUpdate(status=models.InvoiceStatus.SENT))
payment = models.InvoiceUpdate(record_payment=models.RecordPayment(amount="190.00"))
paid = call("invoices.update_invoice", invoice.id, body=payment)
assert (paid.total, paid.balance_due, paid.status) == ("1190.00", "1000.00", "partially_paid")
credit = models.CreditNoteCreate(amount="119.00", reason=models.CreditNoteReason.GOODWILL)
call("credit_notes.create_credit_note", invoice.id, body=credit)
hours = models.UnbilledWork(time=models.UnbilledTime(group_by=models.UnbilledTimeGrouping.TASK))
work = call("invoices.create_invoice", body=models.InvoiceCreate(client_id=optician.id, unbilled_work=hours))
assert work.subtotal == "190.00"

(row,) = call("reports.get_report_revenue_by_client", client_id=optician.id).rows
assert call("reports.get_report_overview").money
newest = {"status": [models.QuoteStatus.ACCEPTED], "sort": [models.QuoteSort.CREATED_AT_DESCENDING]}
assert call("quotes.list_quotes", **newest)[0].id == offer.id
(whole,) = call("clients.list_clients", ids=[optician.id])
assert (type(whole), whole.name) == (models.Client, "Optik Sommer")
(listed,) = call("clients.list_clients", ids=[optician.id], fields=[models.ClientField.NAME])
single = call("clients.get_client", optician.id, fields=[models.ClientField.NAME])
for limited in (listed, single):
    assert (type(limited), limited.name, limited.city) == (models.PartialClient, "Optik Sommer", UNSET)
tag = models.BatchOperation(method=models.BatchMethod.POST, path="/tags", body=any_object(name="Batch 3"))
(result,) = call("batches.run_batch", body=models.BatchCreate(operations=[tag], atomic=True)).results
assert (result.status, result.body["data"]["name"]) == (201, "Batch 3")
refused = parsed("clients.create_client", body=models.ClientCreate(name="")).parsed
assert "name" in refused.errors.additional_properties
assert parsed("quotes.get_quote", 10**9).parsed.code == models.ErrorCode.NOT_FOUND
print(row.revenue)
