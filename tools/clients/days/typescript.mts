// The day of types that openapi-typescript has generated, with openapi-fetch.
import assert from "node:assert";
import createClient from "openapi-fetch";
import type { paths } from "./schema.ts";

const headers = { Authorization: `Bearer ${process.env.RETAINER_KEY}` };
const { GET, POST, PUT, PATCH, DELETE } = createClient<paths>({ baseUrl: process.env.RETAINER_URL, headers });

async function done<T>(call: Promise<{ data?: { data: T }; error?: unknown }>): Promise<T> {
  const { data, error } = await call;
  assert(data, JSON.stringify(error));
  return data.data;
}

const client = await done(POST("/clients", { body: { name: "Optik Sommer", tax_rate: "19" } }));
const contact = await done(
  POST("/external-contacts", { body: { client_id: client.id, last_name: "Sommer", role: "billing" } }),
);
const project = await done(POST("/projects", { body: { name: "Shop", client_id: client.id, hourly_rate: "95" } }));
const task = await done(POST("/tasks", { body: { title: "Import", project_id: project.id } }));
for (const duration_minutes of [90, 30]) {
  await done(POST("/time-entries", { body: { duration_minutes, task_id: task.id } }));
}

const lines = [{ description: "Concept", quantity: "2", unit_price: "500.00" }];
const offer = await done(
  POST("/quotes", { body: { client_id: client.id, contact_id: contact.id, title: "Shop", lines } }),
);
const path = { quote_id: offer.id };
const added = await done(
  POST("/quotes/{quote_id}/lines", { params: { path }, body: { description: "Training", unit_price: "760" } }),
);
await DELETE("/quotes/{quote_id}/lines/{line_id}", { params: { path: { ...path, line_id: added.id } } });
for (const status of ["sent", "accepted"] as const) {
  await done(PATCH("/quotes/{quote_id}", { params: { path }, body: { status } }));
}

const invoice = await done(POST("/invoices", { body: { quote_id: offer.id } }));
const params = { path: { invoice_id: invoice.id } };
await done(PATCH("/invoices/{invoice_id}", { params, body: { status: "sent" } }));
const paid = await done(PATCH("/invoices/{invoice_id}", { params, body: { record_payment: { amount: "190.00" } } }));
assert.deepEqual([paid.status, paid.balance_due], ["partially_paid", "1000.00"]);
await done(POST("/invoices/{invoice_id}/credit-notes", { params, body: { amount: "119.00", reason: "goodwill" } }));
const unbilled_work = { time: { group_by: "task" } } as const;
const work = await done(POST("/invoices", { body: { client_id: client.id, unbilled_work } }));
assert.equal(work.subtotal, "190.00");

const { rows } = await done(GET("/reports/revenue-by-client", { params: { query: { client_id: client.id } } }));
assert((await done(GET("/reports/overview"))).money);
const ids = [client.id], fields = ["name"] as const;
const [listed] = await done(GET("/clients", { params: { query: { ids, fields: [...fields] } } }));
const single = await done(
  GET("/clients/{client_id}", { params: { path: { client_id: client.id }, query: { fields: [...fields] } } }),
);
for (const limited of [listed, single]) {
  assert.deepEqual(limited, { id: client.id, name: "Optik Sommer" });
  assert.equal(limited.city, undefined);
}
const tag = { method: "POST", path: "/tags", body: { name: "Batch", color: "#0a84ff" } } as const;
const { data: batch } = await POST("/batch", { body: { operations: [tag], atomic: true } });
const { status: tagged, body: answered } = batch!.data.results[0];
assert.deepEqual([tagged, Object.keys(answered ?? {})], [201, ["data"]]);
const renamed = await PUT("/clients/external:{external_id}", {
  params: { path: { external_id: "crm-7" }, header: { "If-None-Match": "*" } },
  body: { name: "Optik Winter" },
});
assert.equal(renamed.data?.data.external_id, "crm-7");
const receiver = await done(POST("/webhooks", { body: { url: "https://example.com/hooks", status: "paused" } }));
assert.equal(receiver.status, "paused");
const { error } = await GET("/quotes/{quote_id}", { params: { path: { quote_id: 1e9 } } });
assert.equal(error?.code, "not_found");
console.log(rows[0].revenue);
