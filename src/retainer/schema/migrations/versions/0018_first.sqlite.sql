CREATE TABLE accounts (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	name TEXT NOT NULL,
	"plan" TEXT NOT NULL,
	trial_ends_at TEXT,
	api_enabled INTEGER NOT NULL,
	currency TEXT NOT NULL,
	timezone TEXT NOT NULL,
	hourly_rate INTEGER,
	tax_rate TEXT,
	payment_terms_days INTEGER NOT NULL,
	early_payment_discount_percent TEXT,
	early_payment_discount_days INTEGER,
	client_number_pattern TEXT NOT NULL,
	quote_number_pattern TEXT DEFAULT 'Q-{YYYY}-{0000}' NOT NULL,
	invoice_number_pattern TEXT DEFAULT 'INV-{YYYY}-{0000}' NOT NULL,
	credit_note_number_pattern TEXT DEFAULT 'CN-{YYYY}-{0000}' NOT NULL,
	working_weekdays TEXT NOT NULL,
	legal_name TEXT,
	address_line1 TEXT,
	address_line2 TEXT,
	city TEXT,
	region TEXT,
	postal_code TEXT,
	country TEXT,
	vat_number TEXT,
	registration_number TEXT,
	email TEXT,
	phone TEXT,
	website TEXT,
	iban TEXT,
	bic TEXT,
	bank_name TEXT,
	document_language TEXT DEFAULT 'en' NOT NULL,
	document_color TEXT DEFAULT '#4b53d6' NOT NULL,
	is_small_business INTEGER DEFAULT '0' NOT NULL,
	tax_outside_eu TEXT DEFAULT 'not_subject' NOT NULL,
	tax_exemption_reason_en TEXT,
	tax_exemption_reason_de TEXT,
	quote_introduction_en TEXT,
	quote_introduction_de TEXT,
	quote_terms_en TEXT,
	quote_terms_de TEXT,
	invoice_introduction_en TEXT,
	invoice_introduction_de TEXT,
	invoice_terms_en TEXT,
	invoice_terms_de TEXT,
	document_footer_en TEXT,
	document_footer_de TEXT,
	logo_id INTEGER,
	require_second_factor INTEGER DEFAULT '0' NOT NULL
)
 STRICT;

CREATE TABLE pauses (
	name TEXT NOT NULL,
	since TEXT NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pauses_pk PRIMARY KEY (name)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE clients (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	name TEXT NOT NULL,
	number TEXT NOT NULL,
	number_folded TEXT NOT NULL,
	number_sort TEXT NOT NULL,
	status TEXT NOT NULL,
	email TEXT,
	invoice_email TEXT,
	phone TEXT,
	website TEXT,
	address_line1 TEXT,
	address_line2 TEXT,
	city TEXT,
	region TEXT,
	postal_code TEXT,
	country TEXT,
	vat_number TEXT,
	registration_number TEXT,
	currency TEXT NOT NULL,
	hourly_rate INTEGER,
	tax_rate TEXT,
	payment_terms_days INTEGER NOT NULL,
	early_payment_discount_percent TEXT,
	early_payment_discount_days INTEGER,
	notes TEXT,
	language TEXT,
	contacts_count INTEGER DEFAULT '0' NOT NULL,
	projects_count INTEGER DEFAULT '0' NOT NULL,
	sites_count INTEGER DEFAULT '0' NOT NULL,
	external_id TEXT,
	name_sort TEXT NOT NULL,
	email_folded TEXT,
	invoice_email_folded TEXT,
	search TEXT NOT NULL,
	CONSTRAINT clients_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT clients_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT clients_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT clients_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX clients_by_account_id_created_at_id ON clients (account_id, created_at, id);

CREATE INDEX clients_by_account_id_name ON clients (account_id, name);

CREATE INDEX clients_by_account_id_name_sort_id ON clients (account_id, name_sort, id);

CREATE INDEX clients_by_account_id_number_sort_id ON clients (account_id, number_sort, id);

CREATE INDEX clients_by_account_id_updated_at_id ON clients (account_id, updated_at, id);

CREATE INDEX clients_by_email_folded ON clients (account_id, email_folded) WHERE email_folded IS NOT NULL;

CREATE INDEX clients_by_invoice_email_folded ON clients (account_id, invoice_email_folded) WHERE invoice_email_folded IS NOT NULL;

CREATE INDEX clients_by_vat_number ON clients (account_id, vat_number) WHERE vat_number IS NOT NULL;

CREATE INDEX clients_with_amount ON clients (account_id) WHERE hourly_rate != 0;

CREATE TABLE events (
	account_id INTEGER NOT NULL,
	id INTEGER NOT NULL,
	at TEXT NOT NULL,
	type TEXT NOT NULL,
	record_id INTEGER NOT NULL,
	parent_id INTEGER,
	fields TEXT NOT NULL,
	user_id INTEGER,
	key_id INTEGER,
	request_id TEXT,
	CONSTRAINT events_pk PRIMARY KEY (account_id, id),
	CONSTRAINT events_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE logos (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	content BLOB NOT NULL,
	sha256 TEXT NOT NULL,
	CONSTRAINT logos_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT logos_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE TABLE project_sums (
	account_id INTEGER NOT NULL,
	bucket TEXT NOT NULL,
	client_id INTEGER NOT NULL,
	project_id INTEGER NOT NULL,
	currency TEXT NOT NULL,
	tracked_minutes INTEGER DEFAULT '0' NOT NULL,
	billable_minutes INTEGER DEFAULT '0' NOT NULL,
	billable_value INTEGER DEFAULT '0' NOT NULL,
	billed_value INTEGER DEFAULT '0' NOT NULL,
	unpriced_minutes INTEGER DEFAULT '0' NOT NULL,
	labour_cost INTEGER DEFAULT '0' NOT NULL,
	missing_cost_rate_minutes INTEGER DEFAULT '0' NOT NULL,
	CONSTRAINT project_sums_pk PRIMARY KEY (account_id, bucket, client_id, project_id, currency),
	CONSTRAINT project_sums_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE refusals (
	account_id INTEGER NOT NULL,
	answered_at TEXT NOT NULL,
	number INTEGER NOT NULL,
	code TEXT NOT NULL,
	names TEXT NOT NULL,
	CONSTRAINT refusals_pk PRIMARY KEY (account_id, answered_at, number),
	CONSTRAINT refusals_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE series (
	account_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	last INTEGER NOT NULL,
	CONSTRAINT series_pk PRIMARY KEY (account_id, name),
	CONSTRAINT series_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE tags (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	name TEXT NOT NULL,
	name_folded TEXT NOT NULL,
	name_sort TEXT NOT NULL,
	color TEXT,
	usage_count INTEGER DEFAULT '0' NOT NULL,
	search TEXT NOT NULL,
	CONSTRAINT tags_unique_account_id_name_folded UNIQUE (account_id, name_folded),
	CONSTRAINT tags_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX tags_by_account_id_created_at_id ON tags (account_id, created_at, id);

CREATE INDEX tags_by_account_id_name_sort_id ON tags (account_id, name_sort, id);

CREATE TABLE totals (
	account_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	count INTEGER NOT NULL,
	CONSTRAINT totals_pk PRIMARY KEY (account_id, name),
	CONSTRAINT totals_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE user_sums (
	account_id INTEGER NOT NULL,
	bucket TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	currency TEXT NOT NULL,
	tracked_minutes INTEGER DEFAULT '0' NOT NULL,
	billable_minutes INTEGER DEFAULT '0' NOT NULL,
	billable_value INTEGER DEFAULT '0' NOT NULL,
	billed_value INTEGER DEFAULT '0' NOT NULL,
	unpriced_minutes INTEGER DEFAULT '0' NOT NULL,
	CONSTRAINT user_sums_pk PRIMARY KEY (account_id, bucket, user_id, currency),
	CONSTRAINT user_sums_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE users (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	name TEXT NOT NULL,
	email TEXT NOT NULL,
	email_folded TEXT NOT NULL,
	role TEXT NOT NULL,
	is_active INTEGER NOT NULL,
	weekly_capacity_minutes INTEGER NOT NULL,
	target_percent TEXT NOT NULL,
	hourly_rate INTEGER,
	password_hash TEXT,
	name_sort TEXT NOT NULL,
	search TEXT NOT NULL,
	CONSTRAINT users_unique_account_id_email_folded UNIQUE (account_id, email_folded),
	CONSTRAINT users_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT users_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX users_by_account_id_name_sort_id ON users (account_id, name_sort, id);

CREATE INDEX users_by_email_folded ON users (email_folded);

CREATE TABLE api_keys (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	hash TEXT NOT NULL,
	prefix TEXT NOT NULL,
	last_four TEXT NOT NULL,
	scopes TEXT NOT NULL,
	expires_at TEXT,
	revoked_at TEXT,
	last_used_at TEXT,
	last_used_address TEXT,
	replaced_by_id INTEGER,
	CONSTRAINT api_keys_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT api_keys_ref_account_id_replaced_by_id FOREIGN KEY(account_id, replaced_by_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT api_keys_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT api_keys_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE UNIQUE INDEX api_keys_unique_hash ON api_keys (hash);

CREATE TABLE audit_entries (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	action TEXT NOT NULL,
	user_id INTEGER,
	address TEXT,
	target TEXT NOT NULL,
	target_id INTEGER NOT NULL,
	target_name TEXT NOT NULL,
	"before" TEXT,
	"after" TEXT,
	CONSTRAINT audit_entries_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT audit_entries_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT audit_entries_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX audit_entries_by_account_id_created_at_id ON audit_entries (account_id, created_at, id);

CREATE INDEX audit_entries_by_account_id_target_target_id_created_at_id ON audit_entries (account_id, target, target_id, created_at, id);

CREATE TABLE clients_tags (
	account_id INTEGER NOT NULL,
	record_id INTEGER NOT NULL,
	tag_id INTEGER NOT NULL,
	CONSTRAINT clients_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT clients_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES clients (account_id, id),
	CONSTRAINT clients_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT clients_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX clients_tags_by_account_id_tag_id ON clients_tags (account_id, tag_id);

CREATE TABLE cost_rates (
	account_id INTEGER NOT NULL,
	user_id INTEGER NOT NULL,
	from_date TEXT NOT NULL,
	amount INTEGER NOT NULL,
	CONSTRAINT cost_rates_pk PRIMARY KEY (account_id, user_id, from_date),
	CONSTRAINT cost_rates_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT cost_rates_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE external_contacts (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	client_id INTEGER NOT NULL,
	first_name TEXT,
	last_name TEXT,
	name TEXT NOT NULL,
	email TEXT,
	phone TEXT,
	mobile TEXT,
	job_title TEXT,
	role TEXT NOT NULL,
	is_primary INTEGER NOT NULL,
	status TEXT NOT NULL,
	notes TEXT,
	external_id TEXT,
	last_name_sort TEXT NOT NULL,
	email_folded TEXT,
	search TEXT NOT NULL,
	CONSTRAINT external_contacts_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT external_contacts_unique_account_id_client_id_email_folded UNIQUE (account_id, client_id, email_folded),
	CONSTRAINT external_contacts_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT external_contacts_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT external_contacts_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX external_contacts_by_account_id_created_at_id ON external_contacts (account_id, created_at, id);

CREATE INDEX external_contacts_by_account_id_last_name_sort_id ON external_contacts (account_id, last_name_sort, id);

CREATE INDEX external_contacts_by_account_id_updated_at_id ON external_contacts (account_id, updated_at, id);

CREATE TABLE password_links (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	hash TEXT NOT NULL,
	expires_at TEXT NOT NULL,
	CONSTRAINT password_links_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT password_links_unique_account_id_user_id UNIQUE (account_id, user_id),
	CONSTRAINT password_links_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT password_links_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE UNIQUE INDEX password_links_unique_hash ON password_links (hash);

CREATE TABLE pending_sign_ins (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	hash TEXT NOT NULL,
	expires_at TEXT NOT NULL,
	CONSTRAINT pending_sign_ins_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT pending_sign_ins_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT pending_sign_ins_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE UNIQUE INDEX pending_sign_ins_unique_hash ON pending_sign_ins (hash);

CREATE TABLE projects (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	client_id INTEGER,
	name TEXT NOT NULL,
	code TEXT,
	code_folded TEXT,
	code_sort TEXT,
	description TEXT,
	status TEXT NOT NULL,
	billing_type TEXT NOT NULL,
	currency TEXT NOT NULL,
	hourly_rate INTEGER,
	fixed_fee INTEGER,
	retainer_amount INTEGER,
	budget_amount INTEGER,
	budget_minutes INTEGER,
	start_date TEXT,
	due_date TEXT,
	manager_id INTEGER,
	is_template INTEGER NOT NULL,
	completed_at TEXT,
	archived_at TEXT,
	tracked_minutes INTEGER DEFAULT '0' NOT NULL,
	billable_minutes INTEGER DEFAULT '0' NOT NULL,
	unbilled_minutes INTEGER DEFAULT '0' NOT NULL,
	billable_amount INTEGER DEFAULT '0' NOT NULL,
	unbilled_amount INTEGER DEFAULT '0' NOT NULL,
	invoiced_amount INTEGER DEFAULT '0' NOT NULL,
	expense_amount INTEGER DEFAULT '0' NOT NULL,
	tasks_count INTEGER DEFAULT '0' NOT NULL,
	tasks_done_count INTEGER DEFAULT '0' NOT NULL,
	tasks_cancelled_count INTEGER DEFAULT '0' NOT NULL,
	external_id TEXT,
	name_sort TEXT NOT NULL,
	search TEXT NOT NULL,
	CONSTRAINT projects_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT projects_unique_account_id_code_folded UNIQUE (account_id, code_folded),
	CONSTRAINT projects_ref_account_id_manager_id FOREIGN KEY(account_id, manager_id) REFERENCES users (account_id, id),
	CONSTRAINT projects_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT projects_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT projects_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX projects_by_account_id_code_sort_id ON projects (account_id, code_sort, id);

CREATE INDEX projects_by_account_id_created_at_id ON projects (account_id, created_at, id);

CREATE INDEX projects_by_account_id_is_template_name_sort_id ON projects (account_id, is_template, name_sort, id);

CREATE INDEX projects_by_account_id_updated_at_id ON projects (account_id, updated_at, id);

CREATE INDEX projects_by_client ON projects (account_id, client_id, is_template);

CREATE INDEX projects_with_amount ON projects (account_id) WHERE hourly_rate != 0 OR fixed_fee != 0 OR retainer_amount != 0 OR budget_amount != 0;

CREATE TABLE recovery_codes (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	hash TEXT NOT NULL,
	CONSTRAINT recovery_codes_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT recovery_codes_unique_account_id_user_id_hash UNIQUE (account_id, user_id, hash),
	CONSTRAINT recovery_codes_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT recovery_codes_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE TABLE second_factors (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	secret TEXT NOT NULL,
	last_step INTEGER NOT NULL,
	CONSTRAINT second_factors_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT second_factors_unique_account_id_user_id UNIQUE (account_id, user_id),
	CONSTRAINT second_factors_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT second_factors_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE TABLE sessions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	hash TEXT NOT NULL,
	last_used_at TEXT NOT NULL,
	ended_at TEXT,
	address TEXT,
	user_agent TEXT,
	proposed_secret TEXT,
	sent_form TEXT,
	answer TEXT,
	CONSTRAINT sessions_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT sessions_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT sessions_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE UNIQUE INDEX sessions_unique_hash ON sessions (hash);

CREATE TABLE timers (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	user_id INTEGER NOT NULL,
	work TEXT NOT NULL,
	description TEXT,
	started_at TEXT NOT NULL,
	CONSTRAINT timers_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT timers_unique_account_id_user_id UNIQUE (account_id, user_id),
	CONSTRAINT timers_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT timers_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE TABLE external_contacts_tags (
	account_id INTEGER NOT NULL,
	record_id INTEGER NOT NULL,
	tag_id INTEGER NOT NULL,
	CONSTRAINT external_contacts_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT external_contacts_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT external_contacts_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT external_contacts_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX external_contacts_tags_by_account_id_tag_id ON external_contacts_tags (account_id, tag_id);

CREATE TABLE idempotency_keys (
	account_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	value TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	created_at TEXT NOT NULL,
	status INTEGER NOT NULL,
	headers TEXT NOT NULL,
	body BLOB NOT NULL,
	CONSTRAINT idempotency_keys_pk PRIMARY KEY (account_id, key_id, value),
	CONSTRAINT idempotency_keys_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT idempotency_keys_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX idempotency_keys_by_created_at ON idempotency_keys (created_at);

CREATE TABLE milestones (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	project_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	description TEXT,
	status TEXT NOT NULL,
	start_date TEXT,
	due_date TEXT,
	amount INTEGER,
	currency TEXT NOT NULL,
	position INTEGER NOT NULL,
	completed_at TEXT,
	tasks_count INTEGER DEFAULT '0' NOT NULL,
	tasks_done_count INTEGER DEFAULT '0' NOT NULL,
	search TEXT NOT NULL,
	CONSTRAINT milestones_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT milestones_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT milestones_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX milestones_by_account_id_project_id_position_id ON milestones (account_id, project_id, position, id);

CREATE TABLE operation_hours (
	account_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	operation TEXT NOT NULL,
	hour TEXT NOT NULL,
	requests INTEGER NOT NULL,
	client_errors INTEGER NOT NULL,
	server_errors INTEGER NOT NULL,
	limited INTEGER NOT NULL,
	CONSTRAINT operation_hours_pk PRIMARY KEY (account_id, key_id, operation, hour),
	CONSTRAINT operation_hours_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT operation_hours_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX operation_hours_by_account_id_operation_key_id_hour ON operation_hours (account_id, operation, key_id, hour);

CREATE TABLE projects_tags (
	account_id INTEGER NOT NULL,
	record_id INTEGER NOT NULL,
	tag_id INTEGER NOT NULL,
	CONSTRAINT projects_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT projects_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES projects (account_id, id),
	CONSTRAINT projects_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT projects_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX projects_tags_by_account_id_tag_id ON projects_tags (account_id, tag_id);

CREATE TABLE quotes (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	client_id INTEGER NOT NULL,
	contact_id INTEGER,
	project_id INTEGER,
	converted_project_id INTEGER,
	number TEXT NOT NULL,
	number_folded TEXT NOT NULL,
	number_sort TEXT NOT NULL,
	title TEXT,
	status TEXT NOT NULL,
	issue_date TEXT NOT NULL,
	valid_until TEXT NOT NULL,
	currency TEXT NOT NULL,
	notes TEXT,
	terms TEXT,
	tax_exemption_reason TEXT,
	decline_reason TEXT,
	accepted_by TEXT,
	subtotal INTEGER NOT NULL,
	tax_total INTEGER NOT NULL,
	total INTEGER NOT NULL,
	tax_breakdown TEXT NOT NULL,
	sent_at TEXT,
	accepted_at TEXT,
	declined_at TEXT,
	external_id TEXT,
	search TEXT NOT NULL,
	CONSTRAINT quotes_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT quotes_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT quotes_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT quotes_ref_account_id_converted_project_id FOREIGN KEY(account_id, converted_project_id) REFERENCES projects (account_id, id),
	CONSTRAINT quotes_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT quotes_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT quotes_unique_account_id_converted_project_id UNIQUE (account_id, converted_project_id),
	CONSTRAINT quotes_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT quotes_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX quotes_by_account_id_client_id_created_at_id ON quotes (account_id, client_id, created_at, id);

CREATE INDEX quotes_by_account_id_contact_id ON quotes (account_id, contact_id);

CREATE INDEX quotes_by_account_id_created_at_id ON quotes (account_id, created_at, id);

CREATE INDEX quotes_by_account_id_number_sort_id ON quotes (account_id, number_sort, id);

CREATE INDEX quotes_by_account_id_project_id ON quotes (account_id, project_id);

CREATE INDEX quotes_by_account_id_updated_at_id ON quotes (account_id, updated_at, id);

CREATE INDEX quotes_by_moments ON quotes (account_id, sent_at, accepted_at, declined_at, client_id);

CREATE TABLE request_hours (
	account_id INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	hour TEXT NOT NULL,
	requests INTEGER NOT NULL,
	client_errors INTEGER NOT NULL,
	server_errors INTEGER NOT NULL,
	limited INTEGER NOT NULL,
	busiest_minute INTEGER DEFAULT '0' NOT NULL,
	CONSTRAINT request_hours_pk PRIMARY KEY (account_id, key_id, hour),
	CONSTRAINT request_hours_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT request_hours_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE requests (
	account_id INTEGER NOT NULL,
	answered_at TEXT NOT NULL,
	number INTEGER NOT NULL,
	key_id INTEGER NOT NULL,
	request_id TEXT NOT NULL,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	operation TEXT,
	status INTEGER NOT NULL,
	duration_us INTEGER NOT NULL,
	address TEXT,
	record TEXT,
	CONSTRAINT requests_pk PRIMARY KEY (account_id, answered_at, number),
	CONSTRAINT requests_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT requests_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX requests_by_failure ON requests (account_id, (status / 100), answered_at, number) WHERE status >= 400;

CREATE INDEX requests_by_key_id ON requests (account_id, key_id, answered_at, number);

CREATE INDEX requests_by_record ON requests (account_id, record, answered_at, number) WHERE record IS NOT NULL;

CREATE INDEX requests_by_request_id ON requests (account_id, request_id, answered_at, number) WHERE (request_id < 'req_' OR request_id >= 'req`');

CREATE TABLE sites (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	url TEXT NOT NULL,
	name TEXT NOT NULL,
	client_id INTEGER,
	project_id INTEGER,
	environment TEXT NOT NULL,
	platform TEXT NOT NULL,
	monitoring_enabled INTEGER NOT NULL,
	check_interval_seconds INTEGER NOT NULL,
	expected_status TEXT,
	keyword TEXT,
	maintenance_until TEXT,
	observed TEXT DEFAULT 'unknown' NOT NULL,
	failures INTEGER DEFAULT '0' NOT NULL,
	last_checked_at TEXT,
	down_since TEXT,
	last_status_code INTEGER,
	response_time_ms INTEGER,
	last_error TEXT,
	ssl_expires_at TEXT,
	uptime_24h INTEGER,
	uptime_7d INTEGER,
	uptime_30d INTEGER,
	uptime_at TEXT,
	next_check_at TEXT,
	wp_version TEXT,
	wp_update_version TEXT,
	php_version TEXT,
	plugins_count INTEGER NOT NULL,
	plugin_updates_count INTEGER NOT NULL,
	core_update_available INTEGER NOT NULL,
	last_synced_at TEXT,
	external_id TEXT,
	name_sort TEXT NOT NULL,
	search TEXT NOT NULL,
	CONSTRAINT sites_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT sites_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT sites_unique_account_id_url UNIQUE (account_id, url),
	CONSTRAINT sites_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT sites_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT sites_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX sites_by_account_id_client_id_name_sort_id ON sites (account_id, client_id, name_sort, id);

CREATE INDEX sites_by_account_id_created_at_id ON sites (account_id, created_at, id);

CREATE INDEX sites_by_account_id_name_sort_id ON sites (account_id, name_sort, id);

CREATE INDEX sites_by_account_id_project_id ON sites (account_id, project_id);

CREATE INDEX sites_by_account_id_updated_at_id ON sites (account_id, updated_at, id);

CREATE INDEX sites_due ON sites (monitoring_enabled, next_check_at);

CREATE TABLE webhooks (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	url TEXT NOT NULL,
	description TEXT,
	types TEXT,
	scopes TEXT NOT NULL,
	key_id INTEGER,
	status TEXT NOT NULL,
	status_reason TEXT,
	position INTEGER NOT NULL,
	pending_count INTEGER DEFAULT '0' NOT NULL,
	last_delivered_at TEXT,
	api_url TEXT NOT NULL,
	secret TEXT NOT NULL,
	former_secrets TEXT,
	is_failing INTEGER DEFAULT '0' NOT NULL,
	next_attempt_at TEXT,
	leased_until TEXT NOT NULL,
	search TEXT NOT NULL,
	CONSTRAINT webhooks_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT webhooks_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT webhooks_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX webhooks_by_account_id_created_at_id ON webhooks (account_id, created_at, id);

CREATE INDEX webhooks_by_account_id_updated_at_id ON webhooks (account_id, updated_at, id);

CREATE TABLE invoices (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	client_id INTEGER NOT NULL,
	project_id INTEGER,
	contact_id INTEGER,
	quote_id INTEGER,
	number TEXT,
	number_folded TEXT,
	number_sort TEXT,
	status TEXT NOT NULL,
	issue_date TEXT,
	due_date TEXT,
	purchase_order TEXT,
	subject TEXT,
	notes TEXT,
	terms TEXT,
	tax_exemption_reason TEXT,
	currency TEXT NOT NULL,
	subtotal INTEGER NOT NULL,
	tax_total INTEGER NOT NULL,
	total INTEGER NOT NULL,
	tax_breakdown TEXT NOT NULL,
	amount_paid INTEGER NOT NULL,
	amount_credited INTEGER NOT NULL,
	balance_due INTEGER NOT NULL,
	client_snapshot TEXT,
	issuer_snapshot TEXT,
	sent_at TEXT,
	paid_at TEXT,
	voided_at TEXT,
	written_off_at TEXT,
	external_id TEXT,
	search TEXT,
	CONSTRAINT invoices_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT invoices_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT invoices_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT invoices_ref_account_id_quote_id FOREIGN KEY(account_id, quote_id) REFERENCES quotes (account_id, id),
	CONSTRAINT invoices_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT invoices_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT invoices_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT invoices_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX invoices_by_account_id_client_id_created_at_id ON invoices (account_id, client_id, created_at, id);

CREATE INDEX invoices_by_account_id_contact_id ON invoices (account_id, contact_id);

CREATE INDEX invoices_by_account_id_created_at_id ON invoices (account_id, created_at, id);

CREATE INDEX invoices_by_account_id_due_date_id ON invoices (account_id, due_date, id);

CREATE INDEX invoices_by_account_id_number_sort_id ON invoices (account_id, number_sort, id);

CREATE INDEX invoices_by_account_id_project_id ON invoices (account_id, project_id);

CREATE INDEX invoices_by_account_id_status_due_date ON invoices (account_id, status, due_date);

CREATE INDEX invoices_by_account_id_updated_at_id ON invoices (account_id, updated_at, id);

CREATE INDEX invoices_by_issue_date ON invoices (account_id, issue_date, id, status, client_id, project_id, currency, subtotal, tax_total);

CREATE INDEX invoices_by_quote_id ON invoices (account_id, quote_id) WHERE quote_id IS NOT NULL;

CREATE UNIQUE INDEX invoices_unique_quote_id ON invoices (account_id, quote_id) WHERE status != 'void' AND (amount_credited = 0 OR amount_credited < total);

CREATE INDEX invoices_unsettled ON invoices (account_id, id, total, amount_paid, amount_credited) WHERE amount_paid + amount_credited != total;

CREATE INDEX invoices_with_refund_due ON invoices (account_id, id) WHERE amount_paid + amount_credited + balance_due > total;

CREATE TABLE quote_lines (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	quote_id INTEGER NOT NULL,
	description TEXT NOT NULL,
	quantity TEXT NOT NULL,
	unit TEXT,
	unit_price TEXT NOT NULL,
	discount_percent TEXT NOT NULL,
	tax_rate TEXT NOT NULL,
	project_id INTEGER,
	amount INTEGER NOT NULL,
	currency TEXT NOT NULL,
	position INTEGER NOT NULL,
	CONSTRAINT quote_lines_ref_account_id_quote_id FOREIGN KEY(account_id, quote_id) REFERENCES quotes (account_id, id),
	CONSTRAINT quote_lines_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT quote_lines_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT quote_lines_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX quote_lines_by_account_id_project_id ON quote_lines (account_id, project_id);

CREATE INDEX quote_lines_by_account_id_quote_id_position ON quote_lines (account_id, quote_id, position);

CREATE TABLE site_checks (
	account_id INTEGER NOT NULL,
	site_id INTEGER NOT NULL,
	checked_at TEXT NOT NULL,
	is_up INTEGER NOT NULL,
	CONSTRAINT site_checks_pk PRIMARY KEY (account_id, site_id, checked_at),
	CONSTRAINT site_checks_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_checks_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE site_hours (
	account_id INTEGER NOT NULL,
	site_id INTEGER NOT NULL,
	hour TEXT NOT NULL,
	up INTEGER NOT NULL,
	down INTEGER NOT NULL,
	responses INTEGER DEFAULT '0' NOT NULL,
	response_ms INTEGER DEFAULT '0' NOT NULL,
	CONSTRAINT site_hours_pk PRIMARY KEY (account_id, site_id, hour),
	CONSTRAINT site_hours_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_hours_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE site_incidents (
	account_id INTEGER NOT NULL,
	site_id INTEGER NOT NULL,
	started_at TEXT NOT NULL,
	ended_at TEXT,
	cause TEXT,
	CONSTRAINT site_incidents_pk PRIMARY KEY (account_id, site_id, started_at),
	CONSTRAINT site_incidents_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_incidents_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE site_plugins (
	account_id INTEGER NOT NULL,
	site_id INTEGER NOT NULL,
	slug TEXT NOT NULL,
	name TEXT NOT NULL,
	version TEXT,
	version_order TEXT,
	status TEXT NOT NULL,
	update_version TEXT,
	auto_update INTEGER NOT NULL,
	update_available INTEGER NOT NULL,
	CONSTRAINT site_plugins_pk PRIMARY KEY (account_id, site_id, slug),
	CONSTRAINT site_plugins_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_plugins_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX site_plugins_by_account_id_slug_version_order ON site_plugins (account_id, slug, version_order);

CREATE TABLE sites_tags (
	account_id INTEGER NOT NULL,
	record_id INTEGER NOT NULL,
	tag_id INTEGER NOT NULL,
	CONSTRAINT sites_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT sites_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES sites (account_id, id),
	CONSTRAINT sites_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT sites_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX sites_tags_by_account_id_tag_id ON sites_tags (account_id, tag_id);

CREATE TABLE tickets (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	client_id INTEGER,
	contact_id INTEGER,
	site_id INTEGER,
	project_id INTEGER,
	number INTEGER NOT NULL,
	subject TEXT NOT NULL,
	description TEXT,
	requester_name TEXT,
	requester_email TEXT,
	status TEXT NOT NULL,
	priority TEXT NOT NULL,
	type TEXT NOT NULL,
	assignee_id INTEGER,
	due_at TEXT,
	first_response_at TEXT,
	first_response_minutes INTEGER,
	resolved_at TEXT,
	closed_at TEXT,
	resolution_minutes INTEGER,
	reopened_count INTEGER NOT NULL,
	last_reply_at TEXT,
	last_reply_by TEXT,
	replies_count INTEGER DEFAULT '0' NOT NULL,
	tracked_minutes INTEGER DEFAULT '0' NOT NULL,
	external_id TEXT,
	requester_email_folded TEXT,
	search TEXT NOT NULL,
	CONSTRAINT tickets_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT tickets_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT tickets_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT tickets_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT tickets_ref_account_id_assignee_id FOREIGN KEY(account_id, assignee_id) REFERENCES users (account_id, id),
	CONSTRAINT tickets_unique_account_id_number UNIQUE (account_id, number),
	CONSTRAINT tickets_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT tickets_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT tickets_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX tickets_by_account_id_assignee_id_created_at_id ON tickets (account_id, assignee_id, created_at, id);

CREATE INDEX tickets_by_account_id_client_id_created_at_id ON tickets (account_id, client_id, created_at, id);

CREATE INDEX tickets_by_account_id_contact_id ON tickets (account_id, contact_id);

CREATE INDEX tickets_by_account_id_created_at_id ON tickets (account_id, created_at, id);

CREATE INDEX tickets_by_account_id_project_id ON tickets (account_id, project_id);

CREATE INDEX tickets_by_account_id_site_id ON tickets (account_id, site_id);

CREATE INDEX tickets_by_account_id_status_created_at_id ON tickets (account_id, status, created_at, id);

CREATE INDEX tickets_by_account_id_updated_at_id ON tickets (account_id, updated_at, id);

CREATE INDEX tickets_by_requester_email_folded ON tickets (account_id, requester_email_folded, created_at, id) WHERE requester_email_folded IS NOT NULL;

CREATE INDEX tickets_by_resolved_at ON tickets (account_id, resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE webhook_deliveries (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	webhook_id INTEGER NOT NULL,
	event_id INTEGER,
	type TEXT NOT NULL,
	record_id INTEGER NOT NULL,
	status TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	attempted_at TEXT,
	next_attempt_at TEXT,
	response_status INTEGER,
	response_body TEXT,
	duration_ms INTEGER,
	error TEXT,
	failing_since TEXT,
	CONSTRAINT webhook_deliveries_ref_account_id_webhook_id FOREIGN KEY(account_id, webhook_id) REFERENCES webhooks (account_id, id),
	CONSTRAINT webhook_deliveries_unique_account_id_webhook_id_event_id UNIQUE (account_id, webhook_id, event_id),
	CONSTRAINT webhook_deliveries_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT webhook_deliveries_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX webhook_deliveries_by_account_id_created_at_id ON webhook_deliveries (account_id, created_at, id);

CREATE INDEX webhook_deliveries_by_account_id_webhook_id_id ON webhook_deliveries (account_id, webhook_id, id);

CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (account_id, webhook_id) WHERE status = 'pending';

CREATE TABLE credit_notes (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	invoice_id INTEGER NOT NULL,
	client_id INTEGER NOT NULL,
	number TEXT NOT NULL,
	number_folded TEXT NOT NULL,
	number_sort TEXT NOT NULL,
	currency TEXT NOT NULL,
	issue_date TEXT NOT NULL,
	reason TEXT NOT NULL,
	description TEXT,
	lines TEXT NOT NULL,
	subtotal INTEGER NOT NULL,
	tax_total INTEGER NOT NULL,
	total INTEGER NOT NULL,
	tax_breakdown TEXT NOT NULL,
	applied_amount INTEGER NOT NULL,
	refundable_amount INTEGER NOT NULL,
	issuer_snapshot TEXT,
	search TEXT NOT NULL,
	CONSTRAINT credit_notes_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT credit_notes_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT credit_notes_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT credit_notes_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT credit_notes_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX credit_notes_by_account_id_client_id_created_at_id ON credit_notes (account_id, client_id, created_at, id);

CREATE INDEX credit_notes_by_account_id_created_at_id ON credit_notes (account_id, created_at, id);

CREATE INDEX credit_notes_by_account_id_issue_date ON credit_notes (account_id, issue_date);

CREATE INDEX credit_notes_by_account_id_number_sort_id ON credit_notes (account_id, number_sort, id);

CREATE INDEX credit_notes_by_account_id_updated_at_id ON credit_notes (account_id, updated_at, id);

CREATE INDEX credit_notes_by_invoice ON credit_notes (account_id, invoice_id, issue_date, total);

CREATE TABLE invoice_lines (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	invoice_id INTEGER NOT NULL,
	description TEXT NOT NULL,
	quantity TEXT NOT NULL,
	unit TEXT,
	unit_price TEXT NOT NULL,
	discount_percent TEXT NOT NULL,
	tax_rate TEXT NOT NULL,
	project_id INTEGER,
	amount INTEGER NOT NULL,
	currency TEXT NOT NULL,
	position INTEGER NOT NULL,
	kind TEXT NOT NULL,
	fee_month TEXT,
	fee_is_live INTEGER,
	CONSTRAINT invoice_lines_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT invoice_lines_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT invoice_lines_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT invoice_lines_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX invoice_lines_by_account_id_project_id ON invoice_lines (account_id, project_id);

CREATE INDEX invoice_lines_by_invoice ON invoice_lines (account_id, invoice_id, position, project_id, amount);

CREATE UNIQUE INDEX invoice_lines_unique_fee ON invoice_lines (account_id, project_id, fee_month) WHERE fee_is_live = 1;

CREATE TABLE payments (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	invoice_id INTEGER NOT NULL,
	client_id INTEGER NOT NULL,
	amount INTEGER NOT NULL,
	currency TEXT NOT NULL,
	paid_date TEXT NOT NULL,
	method TEXT NOT NULL,
	reference TEXT,
	notes TEXT,
	reference_folded TEXT,
	search TEXT,
	CONSTRAINT payments_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT payments_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT payments_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT payments_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX payments_by_account_id_client_id_paid_date_id ON payments (account_id, client_id, paid_date, id);

CREATE INDEX payments_by_account_id_updated_at_id ON payments (account_id, updated_at, id);

CREATE INDEX payments_by_day ON payments (account_id, paid_date, id, invoice_id, client_id, currency, amount);

CREATE INDEX payments_by_invoice ON payments (account_id, invoice_id, paid_date, amount);

CREATE UNIQUE INDEX payments_unique_reference ON payments (account_id, invoice_id, reference_folded);

CREATE TABLE tasks (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	title TEXT NOT NULL,
	description TEXT,
	client_id INTEGER,
	project_id INTEGER,
	milestone_id INTEGER,
	parent_id INTEGER,
	ticket_id INTEGER,
	status TEXT NOT NULL,
	priority TEXT NOT NULL,
	assignee_id INTEGER,
	start_date TEXT,
	due_date TEXT,
	estimated_minutes INTEGER,
	billable INTEGER NOT NULL,
	position INTEGER NOT NULL,
	created_by_id INTEGER NOT NULL,
	started_at TEXT,
	completed_at TEXT,
	tracked_minutes INTEGER DEFAULT '0' NOT NULL,
	subtasks_count INTEGER DEFAULT '0' NOT NULL,
	external_id TEXT,
	search TEXT NOT NULL,
	CONSTRAINT tasks_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT tasks_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT tasks_ref_account_id_milestone_id FOREIGN KEY(account_id, milestone_id) REFERENCES milestones (account_id, id),
	CONSTRAINT tasks_ref_account_id_parent_id FOREIGN KEY(account_id, parent_id) REFERENCES tasks (account_id, id),
	CONSTRAINT tasks_ref_account_id_ticket_id FOREIGN KEY(account_id, ticket_id) REFERENCES tickets (account_id, id),
	CONSTRAINT tasks_ref_account_id_assignee_id FOREIGN KEY(account_id, assignee_id) REFERENCES users (account_id, id),
	CONSTRAINT tasks_ref_account_id_created_by_id FOREIGN KEY(account_id, created_by_id) REFERENCES users (account_id, id),
	CONSTRAINT tasks_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT tasks_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT tasks_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX tasks_by_account_id_milestone_id_created_at_id ON tasks (account_id, milestone_id, created_at, id);

CREATE INDEX tasks_by_account_id_parent_id_created_at_id ON tasks (account_id, parent_id, created_at, id);

CREATE INDEX tasks_by_account_id_project_id_created_at_id ON tasks (account_id, project_id, created_at, id);

CREATE INDEX tasks_by_account_id_project_id_position_id ON tasks (account_id, project_id, position, id);

CREATE INDEX tasks_by_assignee ON tasks (account_id, assignee_id, created_at, id, project_id);

CREATE INDEX tasks_by_client ON tasks (account_id, client_id, created_at, id, project_id);

CREATE INDEX tasks_by_created_at ON tasks (account_id, created_at, id, project_id);

CREATE INDEX tasks_by_due_date ON tasks (account_id, due_date, id, project_id);

CREATE INDEX tasks_by_status_and_completed_at ON tasks (account_id, status, completed_at, project_id);

CREATE INDEX tasks_by_status_and_due_date ON tasks (account_id, status, due_date, project_id);

CREATE INDEX tasks_by_ticket_id ON tasks (account_id, ticket_id, created_at, id) WHERE ticket_id IS NOT NULL;

CREATE INDEX tasks_by_updated_at ON tasks (account_id, updated_at, id, project_id);

CREATE TABLE ticket_replies (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	ticket_id INTEGER NOT NULL,
	body TEXT NOT NULL,
	author_type TEXT NOT NULL,
	user_id INTEGER,
	contact_id INTEGER,
	is_internal INTEGER NOT NULL,
	search TEXT NOT NULL,
	CONSTRAINT ticket_replies_ref_account_id_ticket_id FOREIGN KEY(account_id, ticket_id) REFERENCES tickets (account_id, id),
	CONSTRAINT ticket_replies_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT ticket_replies_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT ticket_replies_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT ticket_replies_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX ticket_replies_by_account_id_contact_id ON ticket_replies (account_id, contact_id);

CREATE INDEX ticket_replies_by_account_id_ticket_id_created_at_id ON ticket_replies (account_id, ticket_id, created_at, id);

CREATE TABLE tickets_tags (
	account_id INTEGER NOT NULL,
	record_id INTEGER NOT NULL,
	tag_id INTEGER NOT NULL,
	CONSTRAINT tickets_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT tickets_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES tickets (account_id, id),
	CONSTRAINT tickets_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT tickets_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX tickets_tags_by_account_id_tag_id ON tickets_tags (account_id, tag_id);

CREATE TABLE credit_note_shares (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	credit_note_id INTEGER NOT NULL,
	project_id INTEGER,
	currency TEXT NOT NULL,
	amount INTEGER NOT NULL,
	CONSTRAINT credit_note_shares_ref_account_id_credit_note_id FOREIGN KEY(account_id, credit_note_id) REFERENCES credit_notes (account_id, id),
	CONSTRAINT credit_note_shares_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT credit_note_shares_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT credit_note_shares_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX credit_note_shares_by_account_id_credit_note_id ON credit_note_shares (account_id, credit_note_id);

CREATE INDEX credit_note_shares_by_account_id_project_id ON credit_note_shares (account_id, project_id);

CREATE TABLE expenses (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	client_id INTEGER,
	project_id INTEGER,
	user_id INTEGER NOT NULL,
	invoice_id INTEGER,
	invoice_line_id INTEGER,
	date TEXT NOT NULL,
	category TEXT NOT NULL,
	vendor TEXT,
	description TEXT,
	amount INTEGER NOT NULL,
	currency TEXT NOT NULL,
	tax_rate TEXT NOT NULL,
	amount_includes_tax INTEGER NOT NULL,
	net_amount INTEGER NOT NULL,
	billable INTEGER NOT NULL,
	markup_percent TEXT NOT NULL,
	billable_amount INTEGER NOT NULL,
	reimbursable INTEGER NOT NULL,
	receipt_url TEXT,
	external_id TEXT,
	category_sort TEXT NOT NULL,
	search TEXT,
	CONSTRAINT expenses_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT expenses_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT expenses_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT expenses_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT expenses_ref_account_id_invoice_line_id FOREIGN KEY(account_id, invoice_line_id) REFERENCES invoice_lines (account_id, id),
	CONSTRAINT expenses_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT expenses_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT expenses_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX expenses_by_account_id_client_id_date_id ON expenses (account_id, client_id, date, id);

CREATE INDEX expenses_by_account_id_created_at_id ON expenses (account_id, created_at, id);

CREATE INDEX expenses_by_account_id_date_id ON expenses (account_id, date, id);

CREATE INDEX expenses_by_account_id_updated_at_id ON expenses (account_id, updated_at, id);

CREATE INDEX expenses_by_account_id_user_id_date_id ON expenses (account_id, user_id, date, id);

CREATE INDEX expenses_by_invoice_id ON expenses (account_id, invoice_id) WHERE invoice_id IS NOT NULL;

CREATE INDEX expenses_by_invoice_line_id ON expenses (account_id, invoice_line_id) WHERE invoice_line_id IS NOT NULL;

CREATE INDEX expenses_by_project ON expenses (account_id, project_id, currency, date, id, net_amount);

CREATE TABLE issued_documents (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	invoice_id INTEGER,
	credit_note_id INTEGER,
	pdf BLOB NOT NULL,
	xml BLOB,
	CONSTRAINT issued_documents_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT issued_documents_ref_account_id_credit_note_id FOREIGN KEY(account_id, credit_note_id) REFERENCES credit_notes (account_id, id),
	CONSTRAINT issued_documents_unique_account_id_invoice_id UNIQUE (account_id, invoice_id),
	CONSTRAINT issued_documents_unique_account_id_credit_note_id UNIQUE (account_id, credit_note_id),
	CONSTRAINT issued_documents_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT issued_documents_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE TABLE tasks_tags (
	account_id INTEGER NOT NULL,
	record_id INTEGER NOT NULL,
	tag_id INTEGER NOT NULL,
	CONSTRAINT tasks_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT tasks_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES tasks (account_id, id),
	CONSTRAINT tasks_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT tasks_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX tasks_tags_by_account_id_tag_id ON tasks_tags (account_id, tag_id);

CREATE TABLE time_entries (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	client_id INTEGER,
	project_id INTEGER,
	ticket_id INTEGER,
	task_id INTEGER,
	user_id INTEGER NOT NULL,
	invoice_id INTEGER,
	invoice_line_id INTEGER,
	date TEXT NOT NULL,
	duration_minutes INTEGER NOT NULL,
	billable INTEGER NOT NULL,
	started_at TEXT,
	ended_at TEXT,
	description TEXT,
	currency TEXT NOT NULL,
	hourly_rate INTEGER,
	amount INTEGER,
	rate_is_sent INTEGER DEFAULT '0' NOT NULL,
	external_id TEXT,
	search TEXT,
	CONSTRAINT time_entries_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT time_entries_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT time_entries_ref_account_id_ticket_id FOREIGN KEY(account_id, ticket_id) REFERENCES tickets (account_id, id),
	CONSTRAINT time_entries_ref_account_id_task_id FOREIGN KEY(account_id, task_id) REFERENCES tasks (account_id, id),
	CONSTRAINT time_entries_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT time_entries_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT time_entries_ref_account_id_invoice_line_id FOREIGN KEY(account_id, invoice_line_id) REFERENCES invoice_lines (account_id, id),
	CONSTRAINT time_entries_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT time_entries_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT time_entries_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX time_entries_by_account_id_client_id_date_id ON time_entries (account_id, client_id, date, id);

CREATE INDEX time_entries_by_account_id_date_id ON time_entries (account_id, date, id);

CREATE INDEX time_entries_by_account_id_project_id_date_id ON time_entries (account_id, project_id, date, id);

CREATE INDEX time_entries_by_created_at ON time_entries (account_id, created_at, id, date);

CREATE INDEX time_entries_by_invoice_id ON time_entries (account_id, invoice_id) WHERE invoice_id IS NOT NULL;

CREATE INDEX time_entries_by_invoice_line_id ON time_entries (account_id, invoice_line_id) WHERE invoice_line_id IS NOT NULL;

CREATE INDEX time_entries_by_task ON time_entries (account_id, task_id, date, id, duration_minutes);

CREATE INDEX time_entries_by_ticket_id ON time_entries (account_id, ticket_id, date, id, duration_minutes) WHERE ticket_id IS NOT NULL;

CREATE INDEX time_entries_by_updated_at ON time_entries (account_id, updated_at, id, date);

CREATE INDEX time_entries_by_user ON time_entries (account_id, user_id, date, id, project_id, billable, duration_minutes);

CREATE INDEX time_entries_unbilled ON time_entries (account_id, billable, date, id, project_id, amount, currency) WHERE invoice_line_id IS NULL AND billable IS 1;

CREATE INDEX time_entries_with_amount ON time_entries (account_id) WHERE hourly_rate != 0 OR amount != 0;

CREATE INDEX time_entries_without_rate ON time_entries (account_id, hourly_rate, date, id) WHERE hourly_rate IS NULL;

CREATE TABLE allocations (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	account_id INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	invoice_line_id INTEGER NOT NULL,
	time_entry_id INTEGER,
	expense_id INTEGER,
	milestone_id INTEGER,
	is_live INTEGER,
	CONSTRAINT allocations_ref_account_id_invoice_line_id FOREIGN KEY(account_id, invoice_line_id) REFERENCES invoice_lines (account_id, id),
	CONSTRAINT allocations_ref_account_id_time_entry_id FOREIGN KEY(account_id, time_entry_id) REFERENCES time_entries (account_id, id),
	CONSTRAINT allocations_ref_account_id_expense_id FOREIGN KEY(account_id, expense_id) REFERENCES expenses (account_id, id),
	CONSTRAINT allocations_ref_account_id_milestone_id FOREIGN KEY(account_id, milestone_id) REFERENCES milestones (account_id, id),
	CONSTRAINT allocations_unique_account_id_id UNIQUE (account_id, id),
	CONSTRAINT allocations_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
)
 STRICT;

CREATE INDEX allocations_by_account_id_invoice_line_id ON allocations (account_id, invoice_line_id);

CREATE UNIQUE INDEX allocations_unique_expense ON allocations (account_id, expense_id, is_live);

CREATE UNIQUE INDEX allocations_unique_milestone ON allocations (account_id, milestone_id, is_live);

CREATE UNIQUE INDEX allocations_unique_time_entry ON allocations (account_id, time_entry_id, is_live);
