CREATE TABLE accounts (
	id BIGSERIAL NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	plan TEXT COLLATE "C" NOT NULL,
	trial_ends_at TIMESTAMP WITH TIME ZONE,
	api_enabled BOOLEAN NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	timezone TEXT COLLATE "C" NOT NULL,
	hourly_rate BIGINT,
	tax_rate TEXT COLLATE "C",
	payment_terms_days BIGINT NOT NULL,
	early_payment_discount_percent TEXT COLLATE "C",
	early_payment_discount_days BIGINT,
	client_number_pattern TEXT COLLATE "C" NOT NULL,
	quote_number_pattern TEXT COLLATE "C" DEFAULT 'Q-{YYYY}-{0000}' NOT NULL,
	invoice_number_pattern TEXT COLLATE "C" DEFAULT 'INV-{YYYY}-{0000}' NOT NULL,
	credit_note_number_pattern TEXT COLLATE "C" DEFAULT 'CN-{YYYY}-{0000}' NOT NULL,
	working_weekdays TEXT COLLATE "C" NOT NULL,
	legal_name TEXT COLLATE "C",
	address_line1 TEXT COLLATE "C",
	address_line2 TEXT COLLATE "C",
	city TEXT COLLATE "C",
	region TEXT COLLATE "C",
	postal_code TEXT COLLATE "C",
	country TEXT COLLATE "C",
	vat_number TEXT COLLATE "C",
	registration_number TEXT COLLATE "C",
	email TEXT COLLATE "C",
	phone TEXT COLLATE "C",
	website TEXT COLLATE "C",
	iban TEXT COLLATE "C",
	bic TEXT COLLATE "C",
	bank_name TEXT COLLATE "C",
	document_language TEXT COLLATE "C" DEFAULT 'en' NOT NULL,
	document_color TEXT COLLATE "C" DEFAULT '#4b53d6' NOT NULL,
	is_small_business BOOLEAN DEFAULT '0' NOT NULL,
	tax_outside_eu TEXT COLLATE "C" DEFAULT 'not_subject' NOT NULL,
	tax_exemption_reason_en TEXT COLLATE "C",
	tax_exemption_reason_de TEXT COLLATE "C",
	quote_introduction_en TEXT COLLATE "C",
	quote_introduction_de TEXT COLLATE "C",
	quote_terms_en TEXT COLLATE "C",
	quote_terms_de TEXT COLLATE "C",
	invoice_introduction_en TEXT COLLATE "C",
	invoice_introduction_de TEXT COLLATE "C",
	invoice_terms_en TEXT COLLATE "C",
	invoice_terms_de TEXT COLLATE "C",
	document_footer_en TEXT COLLATE "C",
	document_footer_de TEXT COLLATE "C",
	logo_id BIGINT,
	require_second_factor BOOLEAN DEFAULT '0' NOT NULL,
	CONSTRAINT accounts_pk PRIMARY KEY (id)
);

CREATE TABLE pauses (
	name TEXT COLLATE "C" NOT NULL,
	since TIMESTAMP WITH TIME ZONE NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	CONSTRAINT pauses_pk PRIMARY KEY (name)
);

CREATE TABLE clients (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	number TEXT COLLATE "C" NOT NULL,
	number_folded TEXT COLLATE "C" NOT NULL,
	number_sort TEXT COLLATE "C" NOT NULL,
	status TEXT COLLATE "C" NOT NULL,
	email TEXT COLLATE "C",
	invoice_email TEXT COLLATE "C",
	phone TEXT COLLATE "C",
	website TEXT COLLATE "C",
	address_line1 TEXT COLLATE "C",
	address_line2 TEXT COLLATE "C",
	city TEXT COLLATE "C",
	region TEXT COLLATE "C",
	postal_code TEXT COLLATE "C",
	country TEXT COLLATE "C",
	vat_number TEXT COLLATE "C",
	registration_number TEXT COLLATE "C",
	currency TEXT COLLATE "C" NOT NULL,
	hourly_rate BIGINT,
	tax_rate TEXT COLLATE "C",
	payment_terms_days BIGINT NOT NULL,
	early_payment_discount_percent TEXT COLLATE "C",
	early_payment_discount_days BIGINT,
	notes TEXT COLLATE "C",
	language TEXT COLLATE "C",
	contacts_count BIGINT DEFAULT '0' NOT NULL,
	projects_count BIGINT DEFAULT '0' NOT NULL,
	sites_count BIGINT DEFAULT '0' NOT NULL,
	external_id TEXT COLLATE "C",
	name_sort TEXT COLLATE "C" NOT NULL,
	email_folded TEXT COLLATE "C",
	invoice_email_folded TEXT COLLATE "C",
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT clients_pk PRIMARY KEY (account_id, id),
	CONSTRAINT clients_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT clients_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT clients_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

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
	account_id BIGINT NOT NULL,
	id BIGINT NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	record_id BIGINT NOT NULL,
	parent_id BIGINT,
	fields TEXT COLLATE "C" NOT NULL,
	user_id BIGINT,
	key_id BIGINT,
	request_id TEXT COLLATE "C",
	CONSTRAINT events_pk PRIMARY KEY (account_id, id),
	CONSTRAINT events_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE logos (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	content BYTEA NOT NULL,
	sha256 TEXT COLLATE "C" NOT NULL,
	CONSTRAINT logos_pk PRIMARY KEY (account_id, id),
	CONSTRAINT logos_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE project_sums (
	account_id BIGINT NOT NULL,
	bucket TEXT COLLATE "C" NOT NULL,
	client_id BIGINT NOT NULL,
	project_id BIGINT NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	tracked_minutes BIGINT DEFAULT '0' NOT NULL,
	billable_minutes BIGINT DEFAULT '0' NOT NULL,
	billable_value BIGINT DEFAULT '0' NOT NULL,
	billed_value BIGINT DEFAULT '0' NOT NULL,
	unpriced_minutes BIGINT DEFAULT '0' NOT NULL,
	labour_cost BIGINT DEFAULT '0' NOT NULL,
	missing_cost_rate_minutes BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT project_sums_pk PRIMARY KEY (account_id, bucket, client_id, project_id, currency),
	CONSTRAINT project_sums_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE refusals (
	account_id BIGINT NOT NULL,
	answered_at TIMESTAMP WITH TIME ZONE NOT NULL,
	number BIGINT NOT NULL,
	code TEXT COLLATE "C" NOT NULL,
	names TEXT COLLATE "C" NOT NULL,
	CONSTRAINT refusals_pk PRIMARY KEY (account_id, answered_at, number),
	CONSTRAINT refusals_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE series (
	account_id BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	last BIGINT NOT NULL,
	CONSTRAINT series_pk PRIMARY KEY (account_id, name),
	CONSTRAINT series_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE tags (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	name_folded TEXT COLLATE "C" NOT NULL,
	name_sort TEXT COLLATE "C" NOT NULL,
	color TEXT COLLATE "C",
	usage_count BIGINT DEFAULT '0' NOT NULL,
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT tags_pk PRIMARY KEY (account_id, id),
	CONSTRAINT tags_unique_account_id_name_folded UNIQUE (account_id, name_folded),
	CONSTRAINT tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX tags_by_account_id_created_at_id ON tags (account_id, created_at, id);

CREATE INDEX tags_by_account_id_name_sort_id ON tags (account_id, name_sort, id);

CREATE TABLE totals (
	account_id BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	count BIGINT NOT NULL,
	CONSTRAINT totals_pk PRIMARY KEY (account_id, name),
	CONSTRAINT totals_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE user_sums (
	account_id BIGINT NOT NULL,
	bucket TEXT COLLATE "C" NOT NULL,
	user_id BIGINT NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	tracked_minutes BIGINT DEFAULT '0' NOT NULL,
	billable_minutes BIGINT DEFAULT '0' NOT NULL,
	billable_value BIGINT DEFAULT '0' NOT NULL,
	billed_value BIGINT DEFAULT '0' NOT NULL,
	unpriced_minutes BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT user_sums_pk PRIMARY KEY (account_id, bucket, user_id, currency),
	CONSTRAINT user_sums_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE users (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	email TEXT COLLATE "C" NOT NULL,
	email_folded TEXT COLLATE "C" NOT NULL,
	role TEXT COLLATE "C" NOT NULL,
	is_active BOOLEAN NOT NULL,
	weekly_capacity_minutes BIGINT NOT NULL,
	target_percent TEXT COLLATE "C" NOT NULL,
	hourly_rate BIGINT,
	password_hash TEXT COLLATE "C",
	name_sort TEXT COLLATE "C" NOT NULL,
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT users_pk PRIMARY KEY (account_id, id),
	CONSTRAINT users_unique_account_id_email_folded UNIQUE (account_id, email_folded),
	CONSTRAINT users_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX users_by_account_id_name_sort_id ON users (account_id, name_sort, id);

CREATE INDEX users_by_email_folded ON users (email_folded);

CREATE TABLE api_keys (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	user_id BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	hash TEXT COLLATE "C" NOT NULL,
	prefix TEXT COLLATE "C" NOT NULL,
	last_four TEXT COLLATE "C" NOT NULL,
	scopes TEXT COLLATE "C" NOT NULL,
	expires_at TIMESTAMP WITH TIME ZONE,
	revoked_at TIMESTAMP WITH TIME ZONE,
	last_used_at TIMESTAMP WITH TIME ZONE,
	last_used_address TEXT COLLATE "C",
	replaced_by_id BIGINT,
	CONSTRAINT api_keys_pk PRIMARY KEY (account_id, id),
	CONSTRAINT api_keys_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT api_keys_ref_account_id_replaced_by_id FOREIGN KEY(account_id, replaced_by_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT api_keys_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE UNIQUE INDEX api_keys_unique_hash ON api_keys (hash);

CREATE TABLE audit_entries (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	action TEXT COLLATE "C" NOT NULL,
	user_id BIGINT,
	address TEXT COLLATE "C",
	target TEXT COLLATE "C" NOT NULL,
	target_id BIGINT NOT NULL,
	target_name TEXT COLLATE "C" NOT NULL,
	before TEXT COLLATE "C",
	after TEXT COLLATE "C",
	CONSTRAINT audit_entries_pk PRIMARY KEY (account_id, id),
	CONSTRAINT audit_entries_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT audit_entries_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX audit_entries_by_account_id_created_at_id ON audit_entries (account_id, created_at, id);

CREATE INDEX audit_entries_by_account_id_target_target_id_created_at_id ON audit_entries (account_id, target, target_id, created_at, id);

CREATE TABLE clients_tags (
	account_id BIGINT NOT NULL,
	record_id BIGINT NOT NULL,
	tag_id BIGINT NOT NULL,
	CONSTRAINT clients_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT clients_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES clients (account_id, id),
	CONSTRAINT clients_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT clients_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX clients_tags_by_account_id_tag_id ON clients_tags (account_id, tag_id);

CREATE TABLE cost_rates (
	account_id BIGINT NOT NULL,
	user_id BIGINT NOT NULL,
	from_date DATE NOT NULL,
	amount BIGINT NOT NULL,
	CONSTRAINT cost_rates_pk PRIMARY KEY (account_id, user_id, from_date),
	CONSTRAINT cost_rates_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT cost_rates_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE external_contacts (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	client_id BIGINT NOT NULL,
	first_name TEXT COLLATE "C",
	last_name TEXT COLLATE "C",
	name TEXT COLLATE "C" NOT NULL,
	email TEXT COLLATE "C",
	phone TEXT COLLATE "C",
	mobile TEXT COLLATE "C",
	job_title TEXT COLLATE "C",
	role TEXT COLLATE "C" NOT NULL,
	is_primary BOOLEAN NOT NULL,
	status TEXT COLLATE "C" NOT NULL,
	notes TEXT COLLATE "C",
	external_id TEXT COLLATE "C",
	last_name_sort TEXT COLLATE "C" NOT NULL,
	email_folded TEXT COLLATE "C",
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT external_contacts_pk PRIMARY KEY (account_id, id),
	CONSTRAINT external_contacts_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT external_contacts_unique_account_id_client_id_email_folded UNIQUE (account_id, client_id, email_folded),
	CONSTRAINT external_contacts_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT external_contacts_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX external_contacts_by_account_id_created_at_id ON external_contacts (account_id, created_at, id);

CREATE INDEX external_contacts_by_account_id_last_name_sort_id ON external_contacts (account_id, last_name_sort, id);

CREATE INDEX external_contacts_by_account_id_updated_at_id ON external_contacts (account_id, updated_at, id);

CREATE TABLE password_links (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	user_id BIGINT NOT NULL,
	hash TEXT COLLATE "C" NOT NULL,
	expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT password_links_pk PRIMARY KEY (account_id, id),
	CONSTRAINT password_links_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT password_links_unique_account_id_user_id UNIQUE (account_id, user_id),
	CONSTRAINT password_links_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE UNIQUE INDEX password_links_unique_hash ON password_links (hash);

CREATE TABLE pending_sign_ins (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	user_id BIGINT NOT NULL,
	hash TEXT COLLATE "C" NOT NULL,
	expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pending_sign_ins_pk PRIMARY KEY (account_id, id),
	CONSTRAINT pending_sign_ins_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT pending_sign_ins_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE UNIQUE INDEX pending_sign_ins_unique_hash ON pending_sign_ins (hash);

CREATE TABLE projects (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	client_id BIGINT,
	name TEXT COLLATE "C" NOT NULL,
	code TEXT COLLATE "C",
	code_folded TEXT COLLATE "C",
	code_sort TEXT COLLATE "C",
	description TEXT COLLATE "C",
	status TEXT COLLATE "C" NOT NULL,
	billing_type TEXT COLLATE "C" NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	hourly_rate BIGINT,
	fixed_fee BIGINT,
	retainer_amount BIGINT,
	budget_amount BIGINT,
	budget_minutes BIGINT,
	start_date DATE,
	due_date DATE,
	manager_id BIGINT,
	is_template BOOLEAN NOT NULL,
	completed_at TIMESTAMP WITH TIME ZONE,
	archived_at TIMESTAMP WITH TIME ZONE,
	tracked_minutes BIGINT DEFAULT '0' NOT NULL,
	billable_minutes BIGINT DEFAULT '0' NOT NULL,
	unbilled_minutes BIGINT DEFAULT '0' NOT NULL,
	billable_amount BIGINT DEFAULT '0' NOT NULL,
	unbilled_amount BIGINT DEFAULT '0' NOT NULL,
	invoiced_amount BIGINT DEFAULT '0' NOT NULL,
	expense_amount BIGINT DEFAULT '0' NOT NULL,
	tasks_count BIGINT DEFAULT '0' NOT NULL,
	tasks_done_count BIGINT DEFAULT '0' NOT NULL,
	tasks_cancelled_count BIGINT DEFAULT '0' NOT NULL,
	external_id TEXT COLLATE "C",
	name_sort TEXT COLLATE "C" NOT NULL,
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT projects_pk PRIMARY KEY (account_id, id),
	CONSTRAINT projects_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT projects_unique_account_id_code_folded UNIQUE (account_id, code_folded),
	CONSTRAINT projects_ref_account_id_manager_id FOREIGN KEY(account_id, manager_id) REFERENCES users (account_id, id),
	CONSTRAINT projects_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT projects_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX projects_by_account_id_code_sort_id ON projects (account_id, code_sort, id);

CREATE INDEX projects_by_account_id_created_at_id ON projects (account_id, created_at, id);

CREATE INDEX projects_by_account_id_is_template_name_sort_id ON projects (account_id, is_template, name_sort, id);

CREATE INDEX projects_by_account_id_updated_at_id ON projects (account_id, updated_at, id);

CREATE INDEX projects_by_client ON projects (account_id, client_id, is_template);

CREATE INDEX projects_with_amount ON projects (account_id) WHERE hourly_rate != 0 OR fixed_fee != 0 OR retainer_amount != 0 OR budget_amount != 0;

CREATE TABLE recovery_codes (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	user_id BIGINT NOT NULL,
	hash TEXT COLLATE "C" NOT NULL,
	CONSTRAINT recovery_codes_pk PRIMARY KEY (account_id, id),
	CONSTRAINT recovery_codes_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT recovery_codes_unique_account_id_user_id_hash UNIQUE (account_id, user_id, hash),
	CONSTRAINT recovery_codes_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE second_factors (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	user_id BIGINT NOT NULL,
	secret TEXT COLLATE "C" NOT NULL,
	last_step BIGINT NOT NULL,
	CONSTRAINT second_factors_pk PRIMARY KEY (account_id, id),
	CONSTRAINT second_factors_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT second_factors_unique_account_id_user_id UNIQUE (account_id, user_id),
	CONSTRAINT second_factors_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE sessions (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	user_id BIGINT NOT NULL,
	hash TEXT COLLATE "C" NOT NULL,
	last_used_at TIMESTAMP WITH TIME ZONE NOT NULL,
	ended_at TIMESTAMP WITH TIME ZONE,
	address TEXT COLLATE "C",
	user_agent TEXT COLLATE "C",
	proposed_secret TEXT COLLATE "C",
	sent_form TEXT COLLATE "C",
	answer TEXT COLLATE "C",
	CONSTRAINT sessions_pk PRIMARY KEY (account_id, id),
	CONSTRAINT sessions_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT sessions_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE UNIQUE INDEX sessions_unique_hash ON sessions (hash);

CREATE TABLE timers (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	user_id BIGINT NOT NULL,
	work TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C",
	started_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT timers_pk PRIMARY KEY (account_id, id),
	CONSTRAINT timers_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT timers_unique_account_id_user_id UNIQUE (account_id, user_id),
	CONSTRAINT timers_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE external_contacts_tags (
	account_id BIGINT NOT NULL,
	record_id BIGINT NOT NULL,
	tag_id BIGINT NOT NULL,
	CONSTRAINT external_contacts_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT external_contacts_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT external_contacts_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT external_contacts_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX external_contacts_tags_by_account_id_tag_id ON external_contacts_tags (account_id, tag_id);

CREATE TABLE idempotency_keys (
	account_id BIGINT NOT NULL,
	key_id BIGINT NOT NULL,
	value TEXT COLLATE "C" NOT NULL,
	fingerprint TEXT COLLATE "C" NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	status BIGINT NOT NULL,
	headers TEXT COLLATE "C" NOT NULL,
	body BYTEA NOT NULL,
	CONSTRAINT idempotency_keys_pk PRIMARY KEY (account_id, key_id, value),
	CONSTRAINT idempotency_keys_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT idempotency_keys_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX idempotency_keys_by_created_at ON idempotency_keys (created_at);

CREATE TABLE milestones (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	project_id BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C",
	status TEXT COLLATE "C" NOT NULL,
	start_date DATE,
	due_date DATE,
	amount BIGINT,
	currency TEXT COLLATE "C" NOT NULL,
	position BIGINT NOT NULL,
	completed_at TIMESTAMP WITH TIME ZONE,
	tasks_count BIGINT DEFAULT '0' NOT NULL,
	tasks_done_count BIGINT DEFAULT '0' NOT NULL,
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT milestones_pk PRIMARY KEY (account_id, id),
	CONSTRAINT milestones_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT milestones_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX milestones_by_account_id_project_id_position_id ON milestones (account_id, project_id, position, id);

CREATE TABLE operation_hours (
	account_id BIGINT NOT NULL,
	key_id BIGINT NOT NULL,
	operation TEXT COLLATE "C" NOT NULL,
	hour TEXT COLLATE "C" NOT NULL,
	requests BIGINT NOT NULL,
	client_errors BIGINT NOT NULL,
	server_errors BIGINT NOT NULL,
	limited BIGINT NOT NULL,
	CONSTRAINT operation_hours_pk PRIMARY KEY (account_id, key_id, operation, hour),
	CONSTRAINT operation_hours_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT operation_hours_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX operation_hours_by_account_id_operation_key_id_hour ON operation_hours (account_id, operation, key_id, hour);

CREATE TABLE projects_tags (
	account_id BIGINT NOT NULL,
	record_id BIGINT NOT NULL,
	tag_id BIGINT NOT NULL,
	CONSTRAINT projects_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT projects_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES projects (account_id, id),
	CONSTRAINT projects_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT projects_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX projects_tags_by_account_id_tag_id ON projects_tags (account_id, tag_id);

CREATE TABLE quotes (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	client_id BIGINT NOT NULL,
	contact_id BIGINT,
	project_id BIGINT,
	converted_project_id BIGINT,
	number TEXT COLLATE "C" NOT NULL,
	number_folded TEXT COLLATE "C" NOT NULL,
	number_sort TEXT COLLATE "C" NOT NULL,
	title TEXT COLLATE "C",
	status TEXT COLLATE "C" NOT NULL,
	issue_date DATE NOT NULL,
	valid_until DATE NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	notes TEXT COLLATE "C",
	terms TEXT COLLATE "C",
	tax_exemption_reason TEXT COLLATE "C",
	decline_reason TEXT COLLATE "C",
	accepted_by TEXT COLLATE "C",
	subtotal BIGINT NOT NULL,
	tax_total BIGINT NOT NULL,
	total BIGINT NOT NULL,
	tax_breakdown TEXT COLLATE "C" NOT NULL,
	sent_at TIMESTAMP WITH TIME ZONE,
	accepted_at TIMESTAMP WITH TIME ZONE,
	declined_at TIMESTAMP WITH TIME ZONE,
	external_id TEXT COLLATE "C",
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT quotes_pk PRIMARY KEY (account_id, id),
	CONSTRAINT quotes_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT quotes_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT quotes_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT quotes_ref_account_id_converted_project_id FOREIGN KEY(account_id, converted_project_id) REFERENCES projects (account_id, id),
	CONSTRAINT quotes_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT quotes_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT quotes_unique_account_id_converted_project_id UNIQUE (account_id, converted_project_id),
	CONSTRAINT quotes_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX quotes_by_account_id_client_id_created_at_id ON quotes (account_id, client_id, created_at, id);

CREATE INDEX quotes_by_account_id_contact_id ON quotes (account_id, contact_id);

CREATE INDEX quotes_by_account_id_created_at_id ON quotes (account_id, created_at, id);

CREATE INDEX quotes_by_account_id_number_sort_id ON quotes (account_id, number_sort, id);

CREATE INDEX quotes_by_account_id_project_id ON quotes (account_id, project_id);

CREATE INDEX quotes_by_account_id_updated_at_id ON quotes (account_id, updated_at, id);

CREATE INDEX quotes_by_moments ON quotes (account_id, sent_at, accepted_at, declined_at, client_id);

CREATE TABLE request_hours (
	account_id BIGINT NOT NULL,
	key_id BIGINT NOT NULL,
	hour TEXT COLLATE "C" NOT NULL,
	requests BIGINT NOT NULL,
	client_errors BIGINT NOT NULL,
	server_errors BIGINT NOT NULL,
	limited BIGINT NOT NULL,
	busiest_minute BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT request_hours_pk PRIMARY KEY (account_id, key_id, hour),
	CONSTRAINT request_hours_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT request_hours_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE requests (
	account_id BIGINT NOT NULL,
	answered_at TIMESTAMP WITH TIME ZONE NOT NULL,
	number BIGINT NOT NULL,
	key_id BIGINT NOT NULL,
	request_id TEXT COLLATE "C" NOT NULL,
	method TEXT COLLATE "C" NOT NULL,
	path TEXT COLLATE "C" NOT NULL,
	operation TEXT COLLATE "C",
	status BIGINT NOT NULL,
	duration_us BIGINT NOT NULL,
	address TEXT COLLATE "C",
	record TEXT COLLATE "C",
	CONSTRAINT requests_pk PRIMARY KEY (account_id, answered_at, number),
	CONSTRAINT requests_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT requests_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX requests_by_failure ON requests (account_id, (status / 100), answered_at, number) WHERE status >= 400;

CREATE INDEX requests_by_key_id ON requests (account_id, key_id, answered_at, number);

CREATE INDEX requests_by_record ON requests (account_id, record, answered_at, number) WHERE record IS NOT NULL;

CREATE INDEX requests_by_request_id ON requests (account_id, request_id, answered_at, number) WHERE (request_id < 'req_' OR request_id >= 'req`');

CREATE TABLE sites (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	url TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	client_id BIGINT,
	project_id BIGINT,
	environment TEXT COLLATE "C" NOT NULL,
	platform TEXT COLLATE "C" NOT NULL,
	monitoring_enabled BOOLEAN NOT NULL,
	check_interval_seconds BIGINT NOT NULL,
	expected_status TEXT COLLATE "C",
	keyword TEXT COLLATE "C",
	maintenance_until TIMESTAMP WITH TIME ZONE,
	observed TEXT COLLATE "C" DEFAULT 'unknown' NOT NULL,
	failures BIGINT DEFAULT '0' NOT NULL,
	last_checked_at TIMESTAMP WITH TIME ZONE,
	down_since TIMESTAMP WITH TIME ZONE,
	last_status_code BIGINT,
	response_time_ms BIGINT,
	last_error TEXT COLLATE "C",
	ssl_expires_at TIMESTAMP WITH TIME ZONE,
	uptime_24h BIGINT,
	uptime_7d BIGINT,
	uptime_30d BIGINT,
	uptime_at TIMESTAMP WITH TIME ZONE,
	next_check_at TIMESTAMP WITH TIME ZONE,
	wp_version TEXT COLLATE "C",
	wp_update_version TEXT COLLATE "C",
	php_version TEXT COLLATE "C",
	plugins_count BIGINT NOT NULL,
	plugin_updates_count BIGINT NOT NULL,
	core_update_available BOOLEAN NOT NULL,
	last_synced_at TIMESTAMP WITH TIME ZONE,
	external_id TEXT COLLATE "C",
	name_sort TEXT COLLATE "C" NOT NULL,
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT sites_pk PRIMARY KEY (account_id, id),
	CONSTRAINT sites_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT sites_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT sites_unique_account_id_url UNIQUE (account_id, url),
	CONSTRAINT sites_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT sites_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX sites_by_account_id_client_id_name_sort_id ON sites (account_id, client_id, name_sort, id);

CREATE INDEX sites_by_account_id_created_at_id ON sites (account_id, created_at, id);

CREATE INDEX sites_by_account_id_name_sort_id ON sites (account_id, name_sort, id);

CREATE INDEX sites_by_account_id_project_id ON sites (account_id, project_id);

CREATE INDEX sites_by_account_id_updated_at_id ON sites (account_id, updated_at, id);

CREATE INDEX sites_due ON sites (monitoring_enabled, next_check_at);

CREATE TABLE webhooks (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	url TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C",
	types TEXT COLLATE "C",
	scopes TEXT COLLATE "C" NOT NULL,
	key_id BIGINT,
	status TEXT COLLATE "C" NOT NULL,
	status_reason TEXT COLLATE "C",
	position BIGINT NOT NULL,
	pending_count BIGINT DEFAULT '0' NOT NULL,
	last_delivered_at TIMESTAMP WITH TIME ZONE,
	api_url TEXT COLLATE "C" NOT NULL,
	secret TEXT COLLATE "C" NOT NULL,
	former_secrets TEXT COLLATE "C",
	is_failing BOOLEAN DEFAULT '0' NOT NULL,
	next_attempt_at TIMESTAMP WITH TIME ZONE,
	leased_until TIMESTAMP WITH TIME ZONE NOT NULL,
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT webhooks_pk PRIMARY KEY (account_id, id),
	CONSTRAINT webhooks_ref_account_id_key_id FOREIGN KEY(account_id, key_id) REFERENCES api_keys (account_id, id),
	CONSTRAINT webhooks_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX webhooks_by_account_id_created_at_id ON webhooks (account_id, created_at, id);

CREATE INDEX webhooks_by_account_id_updated_at_id ON webhooks (account_id, updated_at, id);

CREATE TABLE invoices (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	client_id BIGINT NOT NULL,
	project_id BIGINT,
	contact_id BIGINT,
	quote_id BIGINT,
	number TEXT COLLATE "C",
	number_folded TEXT COLLATE "C",
	number_sort TEXT COLLATE "C",
	status TEXT COLLATE "C" NOT NULL,
	issue_date DATE,
	due_date DATE,
	purchase_order TEXT COLLATE "C",
	subject TEXT COLLATE "C",
	notes TEXT COLLATE "C",
	terms TEXT COLLATE "C",
	tax_exemption_reason TEXT COLLATE "C",
	currency TEXT COLLATE "C" NOT NULL,
	subtotal BIGINT NOT NULL,
	tax_total BIGINT NOT NULL,
	total BIGINT NOT NULL,
	tax_breakdown TEXT COLLATE "C" NOT NULL,
	amount_paid BIGINT NOT NULL,
	amount_credited BIGINT NOT NULL,
	balance_due BIGINT NOT NULL,
	client_snapshot TEXT COLLATE "C",
	issuer_snapshot TEXT COLLATE "C",
	sent_at TIMESTAMP WITH TIME ZONE,
	paid_at TIMESTAMP WITH TIME ZONE,
	voided_at TIMESTAMP WITH TIME ZONE,
	written_off_at TIMESTAMP WITH TIME ZONE,
	external_id TEXT COLLATE "C",
	search TEXT COLLATE "C",
	CONSTRAINT invoices_pk PRIMARY KEY (account_id, id),
	CONSTRAINT invoices_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT invoices_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT invoices_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT invoices_ref_account_id_quote_id FOREIGN KEY(account_id, quote_id) REFERENCES quotes (account_id, id),
	CONSTRAINT invoices_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT invoices_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT invoices_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

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
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	quote_id BIGINT NOT NULL,
	description TEXT COLLATE "C" NOT NULL,
	quantity TEXT COLLATE "C" NOT NULL,
	unit TEXT COLLATE "C",
	unit_price TEXT COLLATE "C" NOT NULL,
	discount_percent TEXT COLLATE "C" NOT NULL,
	tax_rate TEXT COLLATE "C" NOT NULL,
	project_id BIGINT,
	amount BIGINT NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	position BIGINT NOT NULL,
	CONSTRAINT quote_lines_pk PRIMARY KEY (account_id, id),
	CONSTRAINT quote_lines_ref_account_id_quote_id FOREIGN KEY(account_id, quote_id) REFERENCES quotes (account_id, id),
	CONSTRAINT quote_lines_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT quote_lines_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX quote_lines_by_account_id_project_id ON quote_lines (account_id, project_id);

CREATE INDEX quote_lines_by_account_id_quote_id_position ON quote_lines (account_id, quote_id, position);

CREATE TABLE site_checks (
	account_id BIGINT NOT NULL,
	site_id BIGINT NOT NULL,
	checked_at TIMESTAMP WITH TIME ZONE NOT NULL,
	is_up BOOLEAN NOT NULL,
	CONSTRAINT site_checks_pk PRIMARY KEY (account_id, site_id, checked_at),
	CONSTRAINT site_checks_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_checks_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE site_hours (
	account_id BIGINT NOT NULL,
	site_id BIGINT NOT NULL,
	hour TEXT COLLATE "C" NOT NULL,
	up BIGINT NOT NULL,
	down BIGINT NOT NULL,
	responses BIGINT DEFAULT '0' NOT NULL,
	response_ms BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT site_hours_pk PRIMARY KEY (account_id, site_id, hour),
	CONSTRAINT site_hours_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_hours_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE site_incidents (
	account_id BIGINT NOT NULL,
	site_id BIGINT NOT NULL,
	started_at TIMESTAMP WITH TIME ZONE NOT NULL,
	ended_at TIMESTAMP WITH TIME ZONE,
	cause TEXT COLLATE "C",
	CONSTRAINT site_incidents_pk PRIMARY KEY (account_id, site_id, started_at),
	CONSTRAINT site_incidents_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_incidents_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE site_plugins (
	account_id BIGINT NOT NULL,
	site_id BIGINT NOT NULL,
	slug TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	version TEXT COLLATE "C",
	version_order TEXT COLLATE "C",
	status TEXT COLLATE "C" NOT NULL,
	update_version TEXT COLLATE "C",
	auto_update BOOLEAN NOT NULL,
	update_available BOOLEAN NOT NULL,
	CONSTRAINT site_plugins_pk PRIMARY KEY (account_id, site_id, slug),
	CONSTRAINT site_plugins_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT site_plugins_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX site_plugins_by_account_id_slug_version_order ON site_plugins (account_id, slug, version_order);

CREATE TABLE sites_tags (
	account_id BIGINT NOT NULL,
	record_id BIGINT NOT NULL,
	tag_id BIGINT NOT NULL,
	CONSTRAINT sites_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT sites_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES sites (account_id, id),
	CONSTRAINT sites_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT sites_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX sites_tags_by_account_id_tag_id ON sites_tags (account_id, tag_id);

CREATE TABLE tickets (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	client_id BIGINT,
	contact_id BIGINT,
	site_id BIGINT,
	project_id BIGINT,
	number BIGINT NOT NULL,
	subject TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C",
	requester_name TEXT COLLATE "C",
	requester_email TEXT COLLATE "C",
	status TEXT COLLATE "C" NOT NULL,
	priority TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	assignee_id BIGINT,
	due_at TIMESTAMP WITH TIME ZONE,
	first_response_at TIMESTAMP WITH TIME ZONE,
	first_response_minutes BIGINT,
	resolved_at TIMESTAMP WITH TIME ZONE,
	closed_at TIMESTAMP WITH TIME ZONE,
	resolution_minutes BIGINT,
	reopened_count BIGINT NOT NULL,
	last_reply_at TIMESTAMP WITH TIME ZONE,
	last_reply_by TEXT COLLATE "C",
	replies_count BIGINT DEFAULT '0' NOT NULL,
	tracked_minutes BIGINT DEFAULT '0' NOT NULL,
	external_id TEXT COLLATE "C",
	requester_email_folded TEXT COLLATE "C",
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT tickets_pk PRIMARY KEY (account_id, id),
	CONSTRAINT tickets_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT tickets_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT tickets_ref_account_id_site_id FOREIGN KEY(account_id, site_id) REFERENCES sites (account_id, id),
	CONSTRAINT tickets_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT tickets_ref_account_id_assignee_id FOREIGN KEY(account_id, assignee_id) REFERENCES users (account_id, id),
	CONSTRAINT tickets_unique_account_id_number UNIQUE (account_id, number),
	CONSTRAINT tickets_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT tickets_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

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
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	webhook_id BIGINT NOT NULL,
	event_id BIGINT,
	type TEXT COLLATE "C" NOT NULL,
	record_id BIGINT NOT NULL,
	status TEXT COLLATE "C" NOT NULL,
	attempts BIGINT NOT NULL,
	attempted_at TIMESTAMP WITH TIME ZONE,
	next_attempt_at TIMESTAMP WITH TIME ZONE,
	response_status BIGINT,
	response_body TEXT COLLATE "C",
	duration_ms BIGINT,
	error TEXT COLLATE "C",
	failing_since TIMESTAMP WITH TIME ZONE,
	CONSTRAINT webhook_deliveries_pk PRIMARY KEY (account_id, id),
	CONSTRAINT webhook_deliveries_ref_account_id_webhook_id FOREIGN KEY(account_id, webhook_id) REFERENCES webhooks (account_id, id),
	CONSTRAINT webhook_deliveries_unique_account_id_webhook_id_event_id UNIQUE (account_id, webhook_id, event_id),
	CONSTRAINT webhook_deliveries_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX webhook_deliveries_by_account_id_created_at_id ON webhook_deliveries (account_id, created_at, id);

CREATE INDEX webhook_deliveries_by_account_id_webhook_id_id ON webhook_deliveries (account_id, webhook_id, id);

CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (account_id, webhook_id) WHERE status = 'pending';

CREATE TABLE credit_notes (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	invoice_id BIGINT NOT NULL,
	client_id BIGINT NOT NULL,
	number TEXT COLLATE "C" NOT NULL,
	number_folded TEXT COLLATE "C" NOT NULL,
	number_sort TEXT COLLATE "C" NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	issue_date DATE NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C",
	lines TEXT COLLATE "C" NOT NULL,
	subtotal BIGINT NOT NULL,
	tax_total BIGINT NOT NULL,
	total BIGINT NOT NULL,
	tax_breakdown TEXT COLLATE "C" NOT NULL,
	applied_amount BIGINT NOT NULL,
	refundable_amount BIGINT NOT NULL,
	issuer_snapshot TEXT COLLATE "C",
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT credit_notes_pk PRIMARY KEY (account_id, id),
	CONSTRAINT credit_notes_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT credit_notes_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT credit_notes_unique_account_id_number_folded UNIQUE (account_id, number_folded),
	CONSTRAINT credit_notes_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX credit_notes_by_account_id_client_id_created_at_id ON credit_notes (account_id, client_id, created_at, id);

CREATE INDEX credit_notes_by_account_id_created_at_id ON credit_notes (account_id, created_at, id);

CREATE INDEX credit_notes_by_account_id_issue_date ON credit_notes (account_id, issue_date);

CREATE INDEX credit_notes_by_account_id_number_sort_id ON credit_notes (account_id, number_sort, id);

CREATE INDEX credit_notes_by_account_id_updated_at_id ON credit_notes (account_id, updated_at, id);

CREATE INDEX credit_notes_by_invoice ON credit_notes (account_id, invoice_id, issue_date, total);

CREATE TABLE invoice_lines (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	invoice_id BIGINT NOT NULL,
	description TEXT COLLATE "C" NOT NULL,
	quantity TEXT COLLATE "C" NOT NULL,
	unit TEXT COLLATE "C",
	unit_price TEXT COLLATE "C" NOT NULL,
	discount_percent TEXT COLLATE "C" NOT NULL,
	tax_rate TEXT COLLATE "C" NOT NULL,
	project_id BIGINT,
	amount BIGINT NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	position BIGINT NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	fee_month TEXT COLLATE "C",
	fee_is_live BIGINT,
	CONSTRAINT invoice_lines_pk PRIMARY KEY (account_id, id),
	CONSTRAINT invoice_lines_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT invoice_lines_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT invoice_lines_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX invoice_lines_by_account_id_project_id ON invoice_lines (account_id, project_id);

CREATE INDEX invoice_lines_by_invoice ON invoice_lines (account_id, invoice_id, position, project_id, amount);

CREATE UNIQUE INDEX invoice_lines_unique_fee ON invoice_lines (account_id, project_id, fee_month) WHERE fee_is_live = 1;

CREATE TABLE payments (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	invoice_id BIGINT NOT NULL,
	client_id BIGINT NOT NULL,
	amount BIGINT NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	paid_date DATE NOT NULL,
	method TEXT COLLATE "C" NOT NULL,
	reference TEXT COLLATE "C",
	notes TEXT COLLATE "C",
	reference_folded TEXT COLLATE "C",
	search TEXT COLLATE "C",
	CONSTRAINT payments_pk PRIMARY KEY (account_id, id),
	CONSTRAINT payments_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT payments_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT payments_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX payments_by_account_id_client_id_paid_date_id ON payments (account_id, client_id, paid_date, id);

CREATE INDEX payments_by_account_id_updated_at_id ON payments (account_id, updated_at, id);

CREATE INDEX payments_by_day ON payments (account_id, paid_date, id, invoice_id, client_id, currency, amount);

CREATE INDEX payments_by_invoice ON payments (account_id, invoice_id, paid_date, amount);

CREATE UNIQUE INDEX payments_unique_reference ON payments (account_id, invoice_id, reference_folded);

CREATE TABLE tasks (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	title TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C",
	client_id BIGINT,
	project_id BIGINT,
	milestone_id BIGINT,
	parent_id BIGINT,
	ticket_id BIGINT,
	status TEXT COLLATE "C" NOT NULL,
	priority TEXT COLLATE "C" NOT NULL,
	assignee_id BIGINT,
	start_date DATE,
	due_date DATE,
	estimated_minutes BIGINT,
	billable BOOLEAN NOT NULL,
	position BIGINT NOT NULL,
	created_by_id BIGINT NOT NULL,
	started_at TIMESTAMP WITH TIME ZONE,
	completed_at TIMESTAMP WITH TIME ZONE,
	tracked_minutes BIGINT DEFAULT '0' NOT NULL,
	subtasks_count BIGINT DEFAULT '0' NOT NULL,
	external_id TEXT COLLATE "C",
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT tasks_pk PRIMARY KEY (account_id, id),
	CONSTRAINT tasks_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT tasks_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT tasks_ref_account_id_milestone_id FOREIGN KEY(account_id, milestone_id) REFERENCES milestones (account_id, id),
	CONSTRAINT tasks_ref_account_id_parent_id FOREIGN KEY(account_id, parent_id) REFERENCES tasks (account_id, id),
	CONSTRAINT tasks_ref_account_id_ticket_id FOREIGN KEY(account_id, ticket_id) REFERENCES tickets (account_id, id),
	CONSTRAINT tasks_ref_account_id_assignee_id FOREIGN KEY(account_id, assignee_id) REFERENCES users (account_id, id),
	CONSTRAINT tasks_ref_account_id_created_by_id FOREIGN KEY(account_id, created_by_id) REFERENCES users (account_id, id),
	CONSTRAINT tasks_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT tasks_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

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
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	ticket_id BIGINT NOT NULL,
	body TEXT COLLATE "C" NOT NULL,
	author_type TEXT COLLATE "C" NOT NULL,
	user_id BIGINT,
	contact_id BIGINT,
	is_internal BOOLEAN NOT NULL,
	search TEXT COLLATE "C" NOT NULL,
	CONSTRAINT ticket_replies_pk PRIMARY KEY (account_id, id),
	CONSTRAINT ticket_replies_ref_account_id_ticket_id FOREIGN KEY(account_id, ticket_id) REFERENCES tickets (account_id, id),
	CONSTRAINT ticket_replies_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT ticket_replies_ref_account_id_contact_id FOREIGN KEY(account_id, contact_id) REFERENCES external_contacts (account_id, id),
	CONSTRAINT ticket_replies_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ticket_replies_by_account_id_contact_id ON ticket_replies (account_id, contact_id);

CREATE INDEX ticket_replies_by_account_id_ticket_id_created_at_id ON ticket_replies (account_id, ticket_id, created_at, id);

CREATE TABLE tickets_tags (
	account_id BIGINT NOT NULL,
	record_id BIGINT NOT NULL,
	tag_id BIGINT NOT NULL,
	CONSTRAINT tickets_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT tickets_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES tickets (account_id, id),
	CONSTRAINT tickets_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT tickets_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX tickets_tags_by_account_id_tag_id ON tickets_tags (account_id, tag_id);

CREATE TABLE credit_note_shares (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	credit_note_id BIGINT NOT NULL,
	project_id BIGINT,
	currency TEXT COLLATE "C" NOT NULL,
	amount BIGINT NOT NULL,
	CONSTRAINT credit_note_shares_pk PRIMARY KEY (account_id, id),
	CONSTRAINT credit_note_shares_ref_account_id_credit_note_id FOREIGN KEY(account_id, credit_note_id) REFERENCES credit_notes (account_id, id),
	CONSTRAINT credit_note_shares_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT credit_note_shares_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX credit_note_shares_by_account_id_credit_note_id ON credit_note_shares (account_id, credit_note_id);

CREATE INDEX credit_note_shares_by_account_id_project_id ON credit_note_shares (account_id, project_id);

CREATE TABLE expenses (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	client_id BIGINT,
	project_id BIGINT,
	user_id BIGINT NOT NULL,
	invoice_id BIGINT,
	invoice_line_id BIGINT,
	date DATE NOT NULL,
	category TEXT COLLATE "C" NOT NULL,
	vendor TEXT COLLATE "C",
	description TEXT COLLATE "C",
	amount BIGINT NOT NULL,
	currency TEXT COLLATE "C" NOT NULL,
	tax_rate TEXT COLLATE "C" NOT NULL,
	amount_includes_tax BOOLEAN NOT NULL,
	net_amount BIGINT NOT NULL,
	billable BOOLEAN NOT NULL,
	markup_percent TEXT COLLATE "C" NOT NULL,
	billable_amount BIGINT NOT NULL,
	reimbursable BOOLEAN NOT NULL,
	receipt_url TEXT COLLATE "C",
	external_id TEXT COLLATE "C",
	category_sort TEXT COLLATE "C" NOT NULL,
	search TEXT COLLATE "C",
	CONSTRAINT expenses_pk PRIMARY KEY (account_id, id),
	CONSTRAINT expenses_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT expenses_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT expenses_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT expenses_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT expenses_ref_account_id_invoice_line_id FOREIGN KEY(account_id, invoice_line_id) REFERENCES invoice_lines (account_id, id),
	CONSTRAINT expenses_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT expenses_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX expenses_by_account_id_client_id_date_id ON expenses (account_id, client_id, date, id);

CREATE INDEX expenses_by_account_id_created_at_id ON expenses (account_id, created_at, id);

CREATE INDEX expenses_by_account_id_date_id ON expenses (account_id, date, id);

CREATE INDEX expenses_by_account_id_updated_at_id ON expenses (account_id, updated_at, id);

CREATE INDEX expenses_by_account_id_user_id_date_id ON expenses (account_id, user_id, date, id);

CREATE INDEX expenses_by_invoice_id ON expenses (account_id, invoice_id) WHERE invoice_id IS NOT NULL;

CREATE INDEX expenses_by_invoice_line_id ON expenses (account_id, invoice_line_id) WHERE invoice_line_id IS NOT NULL;

CREATE INDEX expenses_by_project ON expenses (account_id, project_id, currency, date, id, net_amount);

CREATE TABLE issued_documents (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	invoice_id BIGINT,
	credit_note_id BIGINT,
	pdf BYTEA NOT NULL,
	xml BYTEA,
	CONSTRAINT issued_documents_pk PRIMARY KEY (account_id, id),
	CONSTRAINT issued_documents_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT issued_documents_ref_account_id_credit_note_id FOREIGN KEY(account_id, credit_note_id) REFERENCES credit_notes (account_id, id),
	CONSTRAINT issued_documents_unique_account_id_invoice_id UNIQUE (account_id, invoice_id),
	CONSTRAINT issued_documents_unique_account_id_credit_note_id UNIQUE (account_id, credit_note_id),
	CONSTRAINT issued_documents_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE tasks_tags (
	account_id BIGINT NOT NULL,
	record_id BIGINT NOT NULL,
	tag_id BIGINT NOT NULL,
	CONSTRAINT tasks_tags_pk PRIMARY KEY (account_id, record_id, tag_id),
	CONSTRAINT tasks_tags_ref_account_id_record_id FOREIGN KEY(account_id, record_id) REFERENCES tasks (account_id, id),
	CONSTRAINT tasks_tags_ref_account_id_tag_id FOREIGN KEY(account_id, tag_id) REFERENCES tags (account_id, id),
	CONSTRAINT tasks_tags_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX tasks_tags_by_account_id_tag_id ON tasks_tags (account_id, tag_id);

CREATE TABLE time_entries (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	client_id BIGINT,
	project_id BIGINT,
	ticket_id BIGINT,
	task_id BIGINT,
	user_id BIGINT NOT NULL,
	invoice_id BIGINT,
	invoice_line_id BIGINT,
	date DATE NOT NULL,
	duration_minutes BIGINT NOT NULL,
	billable BOOLEAN NOT NULL,
	started_at TIMESTAMP WITH TIME ZONE,
	ended_at TIMESTAMP WITH TIME ZONE,
	description TEXT COLLATE "C",
	currency TEXT COLLATE "C" NOT NULL,
	hourly_rate BIGINT,
	amount BIGINT,
	rate_is_sent BOOLEAN DEFAULT '0' NOT NULL,
	external_id TEXT COLLATE "C",
	search TEXT COLLATE "C",
	CONSTRAINT time_entries_pk PRIMARY KEY (account_id, id),
	CONSTRAINT time_entries_ref_account_id_client_id FOREIGN KEY(account_id, client_id) REFERENCES clients (account_id, id),
	CONSTRAINT time_entries_ref_account_id_project_id FOREIGN KEY(account_id, project_id) REFERENCES projects (account_id, id),
	CONSTRAINT time_entries_ref_account_id_ticket_id FOREIGN KEY(account_id, ticket_id) REFERENCES tickets (account_id, id),
	CONSTRAINT time_entries_ref_account_id_task_id FOREIGN KEY(account_id, task_id) REFERENCES tasks (account_id, id),
	CONSTRAINT time_entries_ref_account_id_user_id FOREIGN KEY(account_id, user_id) REFERENCES users (account_id, id),
	CONSTRAINT time_entries_ref_account_id_invoice_id FOREIGN KEY(account_id, invoice_id) REFERENCES invoices (account_id, id),
	CONSTRAINT time_entries_ref_account_id_invoice_line_id FOREIGN KEY(account_id, invoice_line_id) REFERENCES invoice_lines (account_id, id),
	CONSTRAINT time_entries_unique_account_id_external_id UNIQUE (account_id, external_id),
	CONSTRAINT time_entries_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

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

CREATE INDEX time_entries_unbilled ON time_entries (account_id, billable, date, id, project_id, amount, currency) WHERE invoice_line_id IS NULL AND billable IS true;

CREATE INDEX time_entries_with_amount ON time_entries (account_id) WHERE hourly_rate != 0 OR amount != 0;

CREATE INDEX time_entries_without_rate ON time_entries (account_id, hourly_rate, date, id) WHERE hourly_rate IS NULL;

CREATE TABLE allocations (
	id BIGSERIAL NOT NULL,
	account_id BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
	invoice_line_id BIGINT NOT NULL,
	time_entry_id BIGINT,
	expense_id BIGINT,
	milestone_id BIGINT,
	is_live BIGINT,
	CONSTRAINT allocations_pk PRIMARY KEY (account_id, id),
	CONSTRAINT allocations_ref_account_id_invoice_line_id FOREIGN KEY(account_id, invoice_line_id) REFERENCES invoice_lines (account_id, id),
	CONSTRAINT allocations_ref_account_id_time_entry_id FOREIGN KEY(account_id, time_entry_id) REFERENCES time_entries (account_id, id),
	CONSTRAINT allocations_ref_account_id_expense_id FOREIGN KEY(account_id, expense_id) REFERENCES expenses (account_id, id),
	CONSTRAINT allocations_ref_account_id_milestone_id FOREIGN KEY(account_id, milestone_id) REFERENCES milestones (account_id, id),
	CONSTRAINT allocations_ref_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX allocations_by_account_id_invoice_line_id ON allocations (account_id, invoice_line_id);

CREATE UNIQUE INDEX allocations_unique_expense ON allocations (account_id, expense_id, is_live);

CREATE UNIQUE INDEX allocations_unique_milestone ON allocations (account_id, milestone_id, is_live);

CREATE UNIQUE INDEX allocations_unique_time_entry ON allocations (account_id, time_entry_id, is_live);
