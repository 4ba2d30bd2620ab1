"""The day of models that datamodel-codegen has generated: they make the bodies and read the answers."""

import os

import httpx
import retainer_models as models

KEY = {"Authorization": f"Bearer {os.environ['RETAINER_KEY']}"}
server = httpx.Client(headers=KEY, event_hooks={"response": [lambda answer: answer.raise_for_status()]}, timeout=30)


def call(method, path, answered=None, body=None, **query):
    sent = body.model_dump(mode="json", exclude_unset=True) if body else None
    answer = server.request(method, os.environ["RETAINER_URL"] + path, json=sent, params=query)
    return answered and answered.model_validate_json(answer.text).data


optician = call("POST", "/clients", models.ClientResponse, models.ClientCreate(name="Optik Sommer", tax_rate="19"))
contact = models.ExternalContactCreate(client_id=optician.id, last_name="Sommer", role="billing")
contact = call("POST", "/external-contacts", models.ExternalContactResponse, contact)
project = models.ProjectCreate(name="Shop", client_id=optician.id, hourly_rate="95")
project = call("POST", "/projects", models.ProjectResponse, project)
task = call("POST", "/tasks", models.TaskResponse, models.TaskCreate(title="Import", project_id=project.id))
for minutes in (90, 30):
    tracked = models.TimeEntryCreate(duration_minutes=minutes, task_id=task.id)
    call("POST", "/time-entries", models.TimeEntryResponse, tracked)

offered = models.QuoteLineUpsert(description="Concept", quantity="2", unit_price="500.00")
offer = models.QuoteCreate(client_id=optician.id, contact_id=contact.id, title="Shop", lines=[offered])
offer = call("POST", "/quotes", models.QuoteResponse, offer)
line = models.QuoteLineCreate(description="Training", unit_price="760")
added = call("POST", f"/quotes/{offer.id}/lines", models.QuoteLineResponse, line)
call("DELETE", f"/quotes/{offer.id}/lines/{added.id}")
for status in ("sent", "accepted"):
    offer = call("PATCH", f"/quotes/{offer.id}", models.QuoteResponse, models.QuoteUpdate(status=status))
assert offer.status == models.QuoteStatus.accepted

invoice = call("POST", "/invoices", models.InvoiceResponse, models.InvoiceCreate(quote_id=offer.id))
for change in ({"status": "sent"}, {"record_payment": {"amount": "190.00"}}):
    paid = call("PATCH", f"/invoices/{invoice.id}", models.InvoiceResponse, models.InvoiceUpdate(**change))
assert str(paid.balance_due) == "1000.00"
credit = models.CreditNoteCreate(amount="119.00", reason="goodwill")
call("POST", f"/invoices/{invoice.id}/credit-notes", models.CreditNoteResponse, credit)
work = models.InvoiceCreate(client_id=optician.id, unbilled_work={"time": {"group_by": "task"}})
assert str(call("POST", "/invoices", models.InvoiceResponse, work).subtotal) == "190.00"

(whole,) = call("GET", "/clients", models.ClientPage, ids=optician.id)
assert whole.name == "Optik Sommer"
(listed,) = call("GET", "/clients", models.PartialClientPage, ids=optician.id, fields="name")
single = call("GET", f"/clients/{optician.id}", models.PartialClientResponse, fields="name")
assert all((limited.name, limited.city) == ("Optik Sommer", None) for limited in (listed, single))

report = call("GET", "/reports/revenue-by-client", models.RevenueByClientReportResponse, client_id=optician.id)
assert call("GET", "/reports/overview", models.OverviewResponse).money
print(report.rows[0].revenue)
