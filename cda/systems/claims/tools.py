"""The five tools over the store. Each opens a connection, runs fixed statements, and closes it."""

from sqlite3 import Connection
from typing import Any

from cda.errors import ToolRefusal
from cda.serving.untrusted import clean
from cda.systems.claims import queries
from cda.systems.claims.contracts import (
    NOTE_CHARS,
    Claim,
    ClaimLine,
    ClaimPage,
    CoverageRule,
    GetClaim,
    GetClaimNotes,
    GetCoverageRule,
    GetMemberYtdSummary,
    ListMemberClaims,
    Note,
    Notes,
    StatusTotal,
    YtdSummary,
)
from cda.systems.claims.store import ClaimsStore


class ClaimsTools:
    """Look-ups in one claims database. Every method raises ToolRefusal for an id that is not there, and
    ClaimsUnavailable when the database cannot be read."""

    def __init__(self, store: ClaimsStore) -> None:
        self._store = store

    def get_claim(self, asked: GetClaim) -> Claim:
        """One claim, whole."""
        with self._store.reading() as connection:
            found = self._store.rows(connection, queries.CLAIM, (asked.claim_id,))
        if not found:
            raise ToolRefusal("claim_not_found", "there is no claim of this id")
        row = found[0]
        return Claim(
            claim_id=row[0],
            member_id=row[1],
            plan_id=row[2],
            provider_id=row[3],
            provider_specialty=row[4],
            provider_network_status=row[5],
            procedure_code=row[6],
            diagnosis_code=row[7],
            service_date=row[8],
            received_date=row[9],
            status=row[10],
            billed=money(row[11]),
            allowed=money(row[12]),
            deductible=money(row[13]),
            paid=money(row[14]),
            denial_reason=row[15],
        )

    def list_member_claims(self, asked: ListMemberClaims) -> ClaimPage:
        """A page of a member's claims, newest first."""
        part = (asked.limit, asked.offset)
        with self._store.reading() as connection:
            self._member(connection, asked.member_id)
            if asked.status is None:
                rows = self._store.rows(connection, queries.MEMBER_CLAIMS, (asked.member_id, *part))
                total = self._count(connection, queries.MEMBER_CLAIMS_TOTAL, asked.member_id)
            else:
                of = (asked.member_id, asked.status)
                rows = self._store.rows(connection, queries.MEMBER_CLAIMS_BY_STATUS, (*of, *part))
                total = self._count(connection, queries.MEMBER_CLAIMS_BY_STATUS_TOTAL, *of)
        claims = [
            ClaimLine(
                claim_id=row[0],
                service_date=row[1],
                received_date=row[2],
                procedure_code=row[3],
                status=row[4],
                billed=money(row[5]),
                paid=money(row[6]),
            )
            for row in rows
        ]
        end = asked.offset + len(claims)
        return ClaimPage(
            member_id=asked.member_id, total=total, claims=claims, next_offset=end if claims and end < total else None
        )

    def get_coverage_rule(self, asked: GetCoverageRule) -> CoverageRule:
        """What a plan says of a procedure."""
        with self._store.reading() as connection:
            rows = self._store.rows(connection, queries.COVERAGE_RULE, (asked.plan_id, asked.procedure_code))
            known = bool(rows) or self._count(connection, queries.PLAN_KNOWN, asked.plan_id) > 0
        if not rows:
            code = "rule_not_found" if known else "plan_not_found"
            raise ToolRefusal(code, "the plan has no rule for this procedure" if known else "there is no such plan")
        row = rows[0]
        return CoverageRule(
            plan_id=row[0],
            procedure_code=row[1],
            covered=bool(row[2]),
            prior_authorization_required=bool(row[3]),
            fee_limit=money(row[4]),
            rule_text=row[5],
        )

    def get_member_ytd_summary(self, asked: GetMemberYtdSummary) -> YtdSummary:
        """A member's year."""
        days = (f"{asked.year}-01-01", f"{asked.year}-12-31")
        with self._store.reading() as connection:
            plan_id, deductible, limit = self._member(connection, asked.member_id)
            totals = self._store.rows(connection, queries.TOTALS_BY_STATUS, (asked.member_id, *days))
            rows = self._store.rows(connection, queries.ACCUMULATOR, (asked.member_id, asked.year))
        met, paid = rows[0] if rows else (0, 0)
        return YtdSummary(
            member_id=asked.member_id,
            plan_id=plan_id,
            year=asked.year,
            totals=[
                StatusTotal(
                    status=row[0], claims=row[1], billed=money(row[2]), allowed=money(row[3]), paid=money(row[4])
                )
                for row in totals
            ],
            deductible=money(deductible),
            deductible_met=money(met),
            deductible_remaining=money(max(deductible - met, 0)),
            annual_limit=money(limit),
            annual_limit_remaining=money(max(limit - paid, 0)),
        )

    def get_claim_notes(self, asked: GetClaimNotes) -> Notes:
        """A claim's notes: cleaned, capped, and marked as what others wrote."""
        with self._store.reading() as connection:
            rows = self._store.rows(connection, queries.NOTES, (asked.claim_id, asked.limit))
            total = self._count(connection, queries.NOTES_TOTAL, asked.claim_id)
            known = total > 0 or self._count(connection, queries.CLAIM_KNOWN, asked.claim_id) > 0
        if not known:
            raise ToolRefusal("claim_not_found", "there is no claim of this id")
        notes = [
            Note(note_number=row[0], written_at=row[1], author_role=row[2], text=clean(row[3], NOTE_CHARS))
            for row in rows
        ]
        return Notes(claim_id=asked.claim_id, total=total, notes=notes)

    def _member(self, connection: Connection, member_id: str) -> tuple[Any, ...]:
        rows = self._store.rows(connection, queries.MEMBER_PLAN, (member_id,))
        if not rows:
            raise ToolRefusal("member_not_found", "there is no member of this id")
        return rows[0]

    def _count(self, connection: Connection, statement: str, *values: str) -> int:
        return int(self._store.rows(connection, statement, values)[0][0])


def money(cents: int) -> str:
    """Whole cents as dollars and cents: 123456 is "1234.56"."""
    sign, value = ("-", -cents) if cents < 0 else ("", cents)
    return f"{sign}{value // 100}.{value % 100:02d}"
