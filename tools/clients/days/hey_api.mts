// The day of a client that @hey-api/openapi-ts has generated.
import assert from "node:assert";
import * as api from "./hey_api/sdk.gen";
import { client as server } from "./hey_api/client.gen";

server.setConfig({ baseUrl: process.env.RETAINER_URL as never, auth: process.env.RETAINER_KEY });

async function done<T>(call: Promise<{ data?: { data: T }; error?: unknown }>): Promise<T> {
  const { data, error } = await call;
  assert(data, JSON.stringify(error));
  return data.data;
}

const client = await done(api.createClient({ body: { name: "Optik Sommer", tax_rate: "19" } }));
const contact = await done(
  api.createExternalContact({ body: { client_id: client.id, last_name: "Sommer", role: "billing" } }),
);
const project = await done(api.createProject({ body: { name: "Shop", client_id: client.id, hourly_rate: "95" } }));
const task = await done(api.createTask({ body: { title: "Import", project_id: project.id } }));
for (const duration_minutes of [90, 30]) {
  await done(api.createTimeEntry({ body: { duration_minutes, task_id: task.id } }));
}

const lines = [{ description: "Concept", quantity: "2", unit_price: "500.00" }];
const offer = await done(
  api.createQuote({ body: { client_id: client.id, contact_id: contact.id, title: "Shop", lines } }),
);
const path = { quote_id: offer.id };
const added = await done(api.createQuoteLine({ path, body: { description: "Training", unit_price: "760" } }));
await api.deleteQuoteLine({ path: { ...path, line_id: added.id }, throwOnError: true });
for (const status of ["sent", "accepted"] as const) {
  await done(api.updateQuote({ path, body: { status } }));
}

const invoice = await done(api.createInvoice({ body: { quote_id: offer.id } }));
const billed = { path: { invoice_id: invoice.id } };
await done(api.updateInvoice({ ...billed, body: { status: "sent" } }));
const paid = await done(api.updateInvoice({ ...billed, body: { record_payment: { amount: "190.00" } } }));
assert.deepEqual([paid.status, paid.balance_due], ["partially_paid", "1000.00"]);
await done(api.createCreditNote({ ...billed, body: { amount: "119.00", reason: "goodwill" } }));
const unbilled_work = { time: { group_by: "task" } } as const;
const work = await done(api.createInvoice({ body: { client_id: client.id, unbilled_work } }));
assert.equal(work.subtotal, "190.00");

const { rows } = await done(api.getReportRevenueByClient({ query: { client_id: client.id } }));
assert((await done(api.getReportOverview())).money);
const ids = [client.id], fields = ["name"] as const;
const [listed] = await done(api.listClients({ query: { ids, fields: [...fields] } }));
const single = await done(api.getClient({ path: { client_id: client.id }, query: { fields: [...fields] } }));
for (const limited of [listed, single]) {
  assert.deepEqual(limited, { id: client.id, name: "Optik Sommer" });
  assert.equal(limited.city, undefined);
}
const tag = { method: "POST", path: "/tags", body: { name: "Batch 2", color: "#0a84ff" } } as const;
const { data: batch } = await api.runBatch({ body: { operations: [tag], atomic: true } });
const { status: tagged, body: answered } = batch!.data.results[0];
assert.deepEqual([tagged, Object.keys(answered ?? {})], [201, ["data"]]);
const { error } = await api.getQuote({ path: { quote_id: 1e9 } });
assert.equal(error?.code, "not_found");
console.log(rows[0].revenue);
