"""Every statement that the claims server runs: fixed text, values bound, nothing joined together at run time.

A test reads the source of this package and fails on any other statement.
"""

CLAIM = """
SELECT c.claim_id, c.member_id, m.plan_id, c.provider_id, p.specialty, p.network_status, c.procedure_code,
       c.diagnosis_code, c.service_date, c.received_date, c.status, c.billed_cents, c.allowed_cents,
       c.deductible_cents, c.paid_cents, c.denial_reason
FROM claims AS c
JOIN members AS m ON m.member_id = c.member_id
JOIN providers AS p ON p.provider_id = c.provider_id
WHERE c.claim_id = ?
"""
MEMBER_PLAN = """
SELECT m.plan_id, p.deductible_cents, p.annual_limit_cents
FROM members AS m JOIN plans AS p ON p.plan_id = m.plan_id
WHERE m.member_id = ?
"""
MEMBER_CLAIMS = """
SELECT claim_id, service_date, received_date, procedure_code, status, billed_cents, paid_cents
FROM claims WHERE member_id = ?
ORDER BY service_date DESC, claim_id DESC LIMIT ? OFFSET ?
"""
MEMBER_CLAIMS_TOTAL = "SELECT count(*) FROM claims WHERE member_id = ?"
MEMBER_CLAIMS_BY_STATUS = """
SELECT claim_id, service_date, received_date, procedure_code, status, billed_cents, paid_cents
FROM claims WHERE member_id = ? AND status = ?
ORDER BY service_date DESC, claim_id DESC LIMIT ? OFFSET ?
"""
MEMBER_CLAIMS_BY_STATUS_TOTAL = "SELECT count(*) FROM claims WHERE member_id = ? AND status = ?"
COVERAGE_RULE = """
SELECT plan_id, procedure_code, covered, prior_authorization, fee_limit_cents, rule_text
FROM coverage_rules WHERE plan_id = ? AND procedure_code = ?
"""
PLAN_KNOWN = "SELECT count(*) FROM plans WHERE plan_id = ?"
TOTALS_BY_STATUS = """
SELECT status, count(*), coalesce(sum(billed_cents), 0), coalesce(sum(allowed_cents), 0), coalesce(sum(paid_cents), 0)
FROM claims WHERE member_id = ? AND service_date >= ? AND service_date <= ?
GROUP BY status ORDER BY status
"""
ACCUMULATOR = "SELECT deductible_met_cents, paid_cents FROM accumulators WHERE member_id = ? AND year = ?"
NOTES = """
SELECT note_number, written_at, author_role, note_text
FROM claim_notes WHERE claim_id = ? ORDER BY written_at DESC, note_number DESC LIMIT ?
"""
NOTES_TOTAL = "SELECT count(*) FROM claim_notes WHERE claim_id = ?"
CLAIM_KNOWN = "SELECT count(*) FROM claims WHERE claim_id = ?"
