"""The claims database: its tables, and what in them may be read. Money is whole cents."""

VERSION = 1

TABLES = (
    "CREATE TABLE plans (plan_id TEXT PRIMARY KEY, line_of_business TEXT NOT NULL, deductible_cents INTEGER NOT NULL, "
    "annual_limit_cents INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE members (member_id TEXT PRIMARY KEY, plan_id TEXT NOT NULL REFERENCES plans, "
    "enrolled_on TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE providers (provider_id TEXT PRIMARY KEY, specialty TEXT NOT NULL, "
    "network_status TEXT NOT NULL CHECK (network_status IN ('in_network', 'out_of_network'))) WITHOUT ROWID",
    "CREATE TABLE coverage_rules (plan_id TEXT NOT NULL REFERENCES plans, procedure_code TEXT NOT NULL, "
    "covered INTEGER NOT NULL, prior_authorization INTEGER NOT NULL, fee_limit_cents INTEGER NOT NULL, "
    "rule_text TEXT NOT NULL, PRIMARY KEY (plan_id, procedure_code)) WITHOUT ROWID",
    "CREATE TABLE claims (claim_id TEXT PRIMARY KEY, member_id TEXT NOT NULL REFERENCES members, "
    "provider_id TEXT NOT NULL REFERENCES providers, procedure_code TEXT NOT NULL, diagnosis_code TEXT NOT NULL, "
    "service_date TEXT NOT NULL, received_date TEXT NOT NULL, "
    "status TEXT NOT NULL CHECK (status IN ('paid', 'denied', 'pending', 'in_review')), "
    "billed_cents INTEGER NOT NULL, allowed_cents INTEGER NOT NULL, deductible_cents INTEGER NOT NULL, "
    "paid_cents INTEGER NOT NULL, denial_reason TEXT) WITHOUT ROWID",
    "CREATE TABLE claim_notes (claim_id TEXT NOT NULL REFERENCES claims, note_number INTEGER NOT NULL, "
    "written_at TEXT NOT NULL, author_role TEXT NOT NULL, note_text TEXT NOT NULL, "
    "PRIMARY KEY (claim_id, note_number)) WITHOUT ROWID",
    "CREATE TABLE accumulators (member_id TEXT NOT NULL REFERENCES members, year INTEGER NOT NULL, "
    "deductible_met_cents INTEGER NOT NULL, paid_cents INTEGER NOT NULL, PRIMARY KEY (member_id, year)) WITHOUT ROWID",
)
INDEXES = ("CREATE INDEX claims_of_member ON claims (member_id, service_date DESC, claim_id DESC)",)

READABLE = {
    "plans": {"plan_id", "line_of_business", "deductible_cents", "annual_limit_cents"},
    "members": {"member_id", "plan_id"},
    "providers": {"provider_id", "specialty", "network_status"},
    "coverage_rules": {
        *("plan_id", "procedure_code", "covered", "prior_authorization", "fee_limit_cents", "rule_text"),
    },
    "claims": {
        *("claim_id", "member_id", "provider_id", "procedure_code", "diagnosis_code", "service_date", "received_date"),
        *("status", "billed_cents", "allowed_cents", "deductible_cents", "paid_cents", "denial_reason"),
    },
    "claim_notes": {"claim_id", "note_number", "written_at", "author_role", "note_text"},
    "accumulators": {"member_id", "year", "deductible_met_cents", "paid_cents"},
}
FUNCTIONS = {"count", "sum", "coalesce"}
