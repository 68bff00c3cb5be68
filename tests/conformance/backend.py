"""What every vector backend must do. Inherit it, give `make_backend`, and nothing is skipped.

The expected answer of each test is computed on the spot from the records, with the slow oracle and plain arithmetic,
so that a reader sees why it is right.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from backends.base import IndexSpec, Record, Scanned, Usage, VectorBackend, WriteReport, root_hash
from backends.checks import require_filter
from backends.errors import BackendError, IndexAbsent, IndexMismatch, InvalidFilter, InvalidRecord
from backends.filters import All, AnyOf, Contains, Eq, Everything, Ge, In, Le, Nothing, Where, eligible, evaluate
from backends.schema import CODES_NONE, JURISDICTION_ANY, PLAN_ANY, POLICY, window

DIM = 4
SPEC = IndexSpec(schema=POLICY, embedder="hand-made", dim=DIM)


def meta(**changes: Any) -> dict[str, Any]:
    """The fields of an ordinary record of payer AAA, in effect from 2024-01-01."""
    start, end = window(date(2024, 1, 1), None, dated=True)
    return {
        "payer_id": "AAA",
        "policy_id": "P-1",
        "version": "v1",
        "section": "Scope",
        "source": "policy",
        "doc_type": "medical_policy_bulletin",
        "plan_id": PLAN_ANY,
        "codes": (CODES_NONE,),
        "jurisdiction": (JURISDICTION_ANY,),
        "effective_start_i": start,
        "effective_end_i": end,
    } | changes


def record(record_id: str, vector: Sequence[float] = (1, 0, 0, 0), **changes: Any) -> Record:
    return Record(record_id, np.asarray(vector, dtype=np.float32), meta(**changes), f"hash of {record_id}")


def unit(*components: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.asarray([components], dtype=np.float32)


X = unit(1, 0, 0, 0)


def put(backend: VectorBackend, records: Iterable[Record]) -> WriteReport:
    """Target `t` made where there is none, the records written, and the write visible."""
    backend.ensure("t", SPEC)
    report = backend.upsert("t", SPEC, records)
    assert backend.wait_visible("t", report.token, deadline_s=30).confirmed
    return report


EVERY_OP: tuple[Where, ...] = (
    Everything(),
    Nothing(),
    Eq(POLICY["payer_id"], "BBB"),
    Eq(POLICY["effective_end_i"], 20240630),
    In(POLICY["payer_id"], ("BBB", "nobody")),
    In(POLICY["payer_id"], ()),
    Le(POLICY["effective_end_i"], 20240630),
    Ge(POLICY["effective_end_i"], 20240701),
    Contains(POLICY["codes"], "J0135"),
    All((Everything(), Eq(POLICY["payer_id"], "AAA"))),
    AnyOf((Nothing(), Eq(POLICY["payer_id"], "BBB"))),
)


class BackendConformance:
    """The suite. `make_backend` gives a fresh, empty backend each time it is called."""

    @pytest.fixture
    def make_backend(self) -> Callable[[], VectorBackend]:
        raise NotImplementedError

    @pytest.fixture
    def backend(self, make_backend: Callable[[], VectorBackend]) -> VectorBackend:
        return make_backend()

    def found(self, backend: VectorBackend, where: Where, k: int = 50) -> list[str]:
        return [hit.id for hit in backend.search("t", SPEC, X, k=k, where=where)[0].hits]

    def held(self, backend: VectorBackend, limit: int = 1000) -> list[Scanned]:
        page = backend.scan("t", SPEC, limit=limit)
        found = [*page.records]
        while page.after is not None:
            page = backend.scan("t", SPEC, after=page.after, limit=limit)
            assert len(page.records) <= limit
            found += page.records
        return found

    @pytest.mark.promise("backends.round_trip")
    @pytest.mark.parametrize("record_id", ["MHP-MP-0142.v2.C1", "a/b c", "é–漢", "A", "a", "x" * 512, "'; DROP --"])
    def test_a_record_comes_back_under_its_own_id_and_hash(self, backend: VectorBackend, record_id: str) -> None:
        put(backend, [record(record_id), record("other", (0, 1, 0, 0))])
        hit = backend.search("t", SPEC, X, k=1, where=Everything())[0].hits[0]
        assert (hit.id, hit.content_hash, hit.rank) == (record_id, f"hash of {record_id}", 1)

    @pytest.mark.promise("backends.round_trip")
    @pytest.mark.parametrize("record_id", ["", "x" * 513, "a\x00b"])
    def test_an_id_that_cannot_be_kept_is_refused(self, backend: VectorBackend, record_id: str) -> None:
        with pytest.raises(InvalidRecord):
            put(backend, [record(record_id)])

    @pytest.mark.promise("backends.round_trip")
    def test_an_id_that_comes_twice_is_refused(self, backend: VectorBackend) -> None:
        with pytest.raises(InvalidRecord, match="twice"):
            put(backend, [record("a"), record("b"), record("a")])

    @pytest.mark.promise("backends.round_trip")
    def test_a_dropped_target_is_gone_and_can_be_made_again(self, backend: VectorBackend) -> None:
        put(backend, [record("old")])
        assert backend.targets() == ("t",)
        backend.drop("t")
        backend.drop("t")
        assert (backend.targets(), backend.describe("t")) == ((), None)
        put(backend, [record("new")])
        assert self.found(backend, Everything()) == ["new"]

    @pytest.mark.promise("backends.filter_first")
    def test_a_thousand_nearer_records_outside_the_filter_displace_nobody(self, backend: VectorBackend) -> None:
        start, end = window(date(2020, 1, 1), date(2023, 12, 31), dated=True)
        decoys = [record(f"old-{i:04}", effective_start_i=start, effective_end_i=end) for i in range(1000)]
        far = [record(f"far-{i:02}", (0.1, 1, 0, 0)) for i in range(12)]
        put(backend, [*decoys, *far])
        where = eligible(payer_id="AAA", plan_id=None, as_of=date(2024, 5, 1))
        assert self.found(backend, where, k=10) == [f"far-{i:02}" for i in range(10)]

    @pytest.mark.promise("backends.boundaries")
    def test_every_boundary_day_is_on_the_right_side(self, backend: VectorBackend) -> None:
        versions = {
            "v1": (date(2023, 1, 1), date(2024, 2, 29), True),
            "v2": (date(2024, 3, 1), date(2024, 3, 1), True),
            "v3": (date(2024, 3, 2), None, True),
            "undated": (None, None, False),
        }
        rows = []
        for name, (start, end, dated) in versions.items():
            first, last = window(start, end, dated=dated)
            rows.append(record(name, effective_start_i=first, effective_end_i=last))
        put(backend, rows)
        edges = [day for start, end, _ in versions.values() for day in (start, end) if day is not None]
        days = {edge + timedelta(days=step) for edge in edges for step in (-1, 0, 1)} | {date.max, date(2199, 1, 1)}
        for day in sorted(days):
            expected = sorted(
                name
                for name, (start, end, dated) in versions.items()
                if dated and start is not None and start <= day and (end is None or day <= end)
            )
            where = eligible(payer_id="AAA", plan_id=None, as_of=day)
            assert self.found(backend, where) == expected, day

    @pytest.mark.promise("backends.riders")
    def test_a_rider_is_found_for_its_own_plan_only(self, backend: VectorBackend) -> None:
        rows = [record("base"), record("gold", plan_id="GOLD"), record("silver", plan_id='O\'Brien "SILVER"')]
        put(backend, rows)
        for plan, expected in {
            None: ["base"],
            "GOLD": ["base", "gold"],
            'O\'Brien "SILVER"': ["base", "silver"],
            "BRONZE": ["base"],
        }.items():
            where = eligible(payer_id="AAA", plan_id=plan, as_of=date(2024, 5, 1))
            assert self.found(backend, where) == expected, plan

    @pytest.mark.promise("backends.filter_parity")
    def test_filters_admit_what_the_oracle_admits(self, backend: VectorBackend) -> None:
        rows = [
            record(f"{payer}-{code}-{plan}", payer_id=payer, codes=(code, "J0135"), plan_id=plan)
            for payer in ("AAA", "BBB", "CCC")
            for code in ("A9276", CODES_NONE)
            for plan in (PLAN_ANY, "GOLD")
        ]
        put(backend, rows)
        for where in (
            Everything(),
            Nothing(),
            Contains(POLICY["codes"], "A9276"),
            Contains(POLICY["codes"], "A92"),
            All((Eq(POLICY["payer_id"], "BBB"), Contains(POLICY["codes"], "J0135"))),
            eligible(payer_id=None, plan_id="GOLD", as_of=None),
            eligible(payer_id="DDD", plan_id="GOLD", as_of=None),
        ):
            expected = sorted(row.id for row in rows if evaluate(where, row.meta))
            page = backend.search("t", SPEC, X, k=50, where=where)[0]
            assert [hit.id for hit in page.hits] == expected
            assert page.eligible == (len(expected) if backend.capabilities().counts_eligible else None)

    @pytest.mark.promise("backends.filter_types")
    def test_a_filter_on_a_field_that_the_collection_lacks_is_refused(self, backend: VectorBackend) -> None:
        put(backend, [record("a")])
        stranger = type(POLICY["payer_id"])("payer_id; --", POLICY["payer_id"].kind)
        with pytest.raises(InvalidFilter):
            backend.search("t", SPEC, X, k=1, where=Eq(stranger, "AAA"))

    @pytest.mark.promise("backends.k_edges")
    def test_k_beyond_the_eligible_gives_all_of_them(self, backend: VectorBackend) -> None:
        put(backend, [record(name) for name in "abc"])
        assert self.found(backend, Everything(), k=50) == ["a", "b", "c"]

    @pytest.mark.promise("backends.k_edges")
    def test_an_empty_target_answers_with_nothing(self, backend: VectorBackend) -> None:
        put(backend, [])
        assert self.found(backend, Everything()) == []

    @pytest.mark.promise("backends.k_edges")
    @pytest.mark.parametrize("k", [0, -1, True, 2.0, 10**9])
    def test_k_outside_its_range_is_an_error(self, backend: VectorBackend, k: Any) -> None:
        put(backend, [record("a")])
        with pytest.raises(ValueError, match="k must be"):
            backend.search("t", SPEC, X, k=k, where=Everything())

    @pytest.mark.promise("backends.cosine")
    def test_planted_vectors_score_their_cosine(self, backend: VectorBackend) -> None:
        planted = {"same": (2, 0, 0, 0), "half": (1, 1, 0, 0), "right": (0, 0, 3, 0), "opposite": (-5, 0, 0, 0)}
        put(backend, [record(name, vector) for name, vector in planted.items()])
        hits = backend.search("t", SPEC, unit(7, 0, 0, 0), k=9, where=Everything())[0].hits
        assert [(hit.id, hit.rank) for hit in hits] == [("same", 1), ("half", 2), ("right", 3), ("opposite", 4)]
        assert [hit.score for hit in hits] == pytest.approx([1.0, 0.5**0.5, 0.0, -1.0], abs=1e-6)

    @pytest.mark.promise("backends.cosine")
    def test_equal_scores_are_ordered_by_id_every_time(self, make_backend: Callable[[], VectorBackend]) -> None:
        names = [f"id-{i * 7 % 40:02}" for i in range(40)]
        for payers in ("AAA",), ("AAA", "BBB"):
            backend = make_backend()
            put(backend, [record(n, payer_id=payers[i % len(payers)]) for i, n in enumerate(names)])
            for _ in range(5):
                assert self.found(backend, Everything(), k=10) == sorted(names)[:10]

    @pytest.mark.promise("backends.cosine")
    def test_a_score_does_not_depend_on_the_other_queries(self, backend: VectorBackend) -> None:
        random = np.random.default_rng(7)
        rows = random.normal(size=(200, DIM))
        put(backend, [record(f"r{i:03}", row) for i, row in enumerate(rows)])
        queries = random.normal(size=(9, DIM)).astype(np.float32)
        together = backend.search("t", SPEC, queries, k=20, where=Everything())
        alone = [backend.search("t", SPEC, query[None, :], k=20, where=Everything())[0] for query in queries]
        assert together == alone

    @pytest.mark.promise("backends.bad_vectors")
    @pytest.mark.parametrize(
        "vector", [(0, 0, 0, 0), (float("nan"), 0, 0, 0), (float("inf"), 1, 0, 0), (1, 0, 0), (1, 0, 0, 0, 0)]
    )
    def test_a_vector_without_a_usable_direction_is_refused(
        self, backend: VectorBackend, vector: Sequence[float]
    ) -> None:
        with pytest.raises(InvalidRecord, match="'bad'"):
            put(backend, [record("good"), record("bad", vector)])
        put(backend, [record("good")])
        with pytest.raises(InvalidFilter):
            backend.search("t", SPEC, unit(*vector), k=1, where=Everything())

    @pytest.mark.promise("backends.schema")
    @pytest.mark.parametrize(
        "changes",
        [{"effective_end_i": None}, {"effective_start_i": "20240101"}, {"codes": ()}, {"payer_id": ""}, {"text": "t"}],
    )
    def test_a_record_off_the_schema_is_refused_by_name(self, backend: VectorBackend, changes: dict[str, Any]) -> None:
        with pytest.raises(InvalidRecord, match="'bad'"):
            put(backend, [record("good"), record("bad", **changes)])

    @pytest.mark.promise("backends.mismatch")
    @pytest.mark.parametrize(
        ("changed", "word"),
        [
            (IndexSpec(POLICY, "hand-made, revised", DIM), "embedder"),
            (IndexSpec(POLICY, "hand-made", DIM + 1), "dimension"),
            (IndexSpec(replace(POLICY, fields=POLICY.fields[:-1]), "hand-made", DIM), "schema"),
        ],
    )
    def test_an_index_of_another_make_is_refused(self, backend: VectorBackend, changed: IndexSpec, word: str) -> None:
        put(backend, [record("a")])
        with pytest.raises(IndexMismatch, match=word):
            backend.search("t", changed, np.ones((1, changed.dim), dtype=np.float32), k=1, where=Everything())

    @pytest.mark.promise("backends.mismatch")
    def test_an_absent_target_is_named(self, backend: VectorBackend) -> None:
        assert backend.describe("t") is None
        with pytest.raises(IndexAbsent, match="'t'"):
            backend.search("t", SPEC, X, k=1, where=Everything())

    @pytest.mark.promise("backends.whole_or_nothing")
    def test_an_upsert_with_a_bad_record_leaves_what_was_there(self, backend: VectorBackend) -> None:
        put(backend, [record("old")])
        before = backend.describe("t")
        with pytest.raises(InvalidRecord, match="'bad'"):
            backend.upsert("t", SPEC, [record("old", (0, 1, 0, 0)), record("bad", (0, 0, 0, 0))])
        if backend.capabilities().atomic_upsert:
            assert backend.describe("t") == before
        assert self.found(backend, Everything()) == ["old"]

    @pytest.mark.promise("backends.whole_or_nothing")
    def test_what_a_target_holds_does_not_depend_on_the_order_of_its_records(
        self, make_backend: Callable[[], VectorBackend]
    ) -> None:
        rows = [record("a"), record("b", payer_id="BBB"), record("c")]
        roots = []
        for written in (rows, rows[::-1], rows[:2]):
            backend = make_backend()
            put(backend, written)
            roots.append(root_hash((held.id, held.content_hash) for held in self.held(backend)))
            info = backend.describe("t")
            assert info is not None
            assert info.root in (None, roots[-1])
            assert info.count == len(written)
        assert roots[0] == roots[1] != roots[2]

    @pytest.mark.promise("backends.incremental")
    def test_upserts_and_deletes_change_what_they_name_and_nothing_else(self, backend: VectorBackend) -> None:
        put(backend, [record(name) for name in "abc"])
        report = put(backend, [record("d"), record("b", (0, 1, 0, 0), payer_id="BBB")])
        assert (sorted(report.accepted), report.failed) == (["b", "d"], ())
        gone = backend.delete("t", SPEC, ["a", "never-there"])
        assert (sorted(gone.accepted), gone.failed) == (["a", "never-there"], ())
        assert backend.wait_visible("t", gone.token, deadline_s=30).confirmed
        assert self.found(backend, Everything()) == ["c", "d", "b"]
        assert self.found(backend, Eq(POLICY["payer_id"], "BBB")) == ["b"]
        assert sorted(held.id for held in self.held(backend)) == ["b", "c", "d"]

    @pytest.mark.promise("backends.incremental")
    def test_an_upsert_reports_each_of_its_batches(self, backend: VectorBackend) -> None:
        rows = [record(f"r{i:04}") for i in range(250)]
        heard: list[WriteReport] = []
        backend.ensure("t", SPEC)
        whole = backend.upsert("t", SPEC, iter(rows), on_batch=heard.append)
        assert sorted(i for report in heard for i in report.accepted) == sorted(whole.accepted) == [r.id for r in rows]

    @pytest.mark.promise("backends.scan")
    def test_a_scan_tells_every_record_with_its_hash_and_fields(self, backend: VectorBackend) -> None:
        rows = {f"é/{i:03}": record(f"é/{i:03}", codes=("J0135", "A9276"), payer_id=f"P{i % 3}") for i in range(130)}
        put(backend, rows.values())
        held = self.held(backend, limit=50)
        assert sorted(one.id for one in held) == sorted(rows)
        for one in held:
            assert one.content_hash == rows[one.id].content_hash
            assert one.meta == {**rows[one.id].meta, "codes": ("A9276", "J0135")}

    @pytest.mark.promise("backends.mismatch")
    def test_a_target_that_is_there_is_kept_and_never_altered(self, backend: VectorBackend) -> None:
        put(backend, [record("a")])
        assert backend.ensure("t", SPEC).count == 1
        with pytest.raises(IndexMismatch, match="embedder"):
            backend.ensure("t", replace(SPEC, embedder="another"))
        assert self.found(backend, Everything()) == ["a"]

    @pytest.mark.promise("backends.mismatch")
    def test_no_verb_makes_a_target_by_the_way(self, backend: VectorBackend) -> None:
        for verb in (
            lambda: backend.upsert("t", SPEC, [record("a")]),
            lambda: backend.delete("t", SPEC, ["a"]),
            lambda: backend.scan("t", SPEC),
        ):
            with pytest.raises(IndexAbsent, match="'t'"):
                verb()
        assert backend.targets() == ()

    @pytest.mark.promise("backends.round_trip")
    def test_targets_do_not_see_each_other(self, backend: VectorBackend) -> None:
        put(backend, [record("a")])
        backend.ensure("t2", SPEC)
        assert backend.targets() == ("t", "t2")
        assert backend.search("t2", SPEC, X, k=5, where=Everything())[0].hits == ()
        backend.drop("t2")
        assert self.found(backend, Everything()) == ["a"]

    @pytest.mark.promise("backends.incremental")
    def test_every_record_finds_itself_after_much_coming_and_going(self, backend: VectorBackend) -> None:
        random = np.random.default_rng(11)
        vectors = {f"r{i:03}": random.normal(size=DIM) for i in range(400)}
        put(backend, [record(name, vector) for name, vector in vectors.items()])
        gone = sorted(vectors)[::2]
        backend.delete("t", SPEC, gone)
        again = {name: random.normal(size=DIM) for name in [*gone[:60], *sorted(vectors)[1:120:2]]}
        put(backend, [record(name, vector) for name, vector in again.items()])
        vectors = {name: vector for name, vector in vectors.items() if name not in gone} | again
        pages = backend.search("t", SPEC, np.asarray([*vectors.values()], dtype=np.float32), k=1, where=Everything())
        assert [page.hits[0].id for page in pages] == [*vectors]
        assert sorted(held.id for held in self.held(backend)) == sorted(vectors)

    @pytest.mark.promise("backends.declared")
    def test_what_is_declared_is_kept_to_its_edge(self, backend: VectorBackend) -> None:
        declared = backend.capabilities()
        assert declared == backend.capabilities()
        with pytest.raises(FrozenInstanceError):
            declared.max_k = 1  # type: ignore[misc]
        put(backend, [record("a"), record("b", payer_id="P-1")])
        assert self.found(backend, Everything(), k=declared.max_k) == ["a", "b"]
        with pytest.raises(ValueError, match="k must be"):
            self.found(backend, Everything(), k=declared.max_k + 1)
        widest = declared.max_in_values or 20_000
        payers = tuple(f"P-{i}" for i in range(widest))
        assert self.found(backend, In(POLICY["payer_id"], payers)) == ["b"]
        if declared.max_in_values is not None:
            with pytest.raises(InvalidFilter, match="values"):
                self.found(backend, In(POLICY["payer_id"], (*payers, "one more")))

    @pytest.mark.promise("backends.declared")
    @pytest.mark.parametrize("where", EVERY_OP, ids=lambda where: type(where).__name__)
    def test_an_operator_is_served_or_refused_and_never_dropped(self, backend: VectorBackend, where: Where) -> None:
        rows = [record("a", codes=("J0135",)), record("b", payer_id="BBB"), record("c", effective_end_i=20240630)]
        put(backend, rows)
        try:
            require_filter(backend.capabilities(), where)
        except InvalidFilter:
            with pytest.raises(InvalidFilter):
                self.found(backend, where)
        else:
            assert self.found(backend, where) == [row.id for row in rows if evaluate(where, row.meta)]

    @pytest.mark.promise("backends.declared")
    def test_a_wide_record_lands_or_is_refused_by_name(self, backend: VectorBackend) -> None:
        codes = tuple(f"C{i:05}" for i in range(12_000))
        report = put(backend, [record("a"), record("wide", codes=codes), record("b")])
        limit = backend.capabilities().max_meta_bytes
        refused = limit is not None and sum(map(len, codes)) > limit
        assert [failure.id for failure in report.failed] == (["wide"] if refused else [])
        assert sorted(report.accepted) == (["a", "b"] if refused else ["a", "b", "wide"])
        where = Contains(POLICY["codes"], "C11999")
        assert self.found(backend, where) == ([] if refused else ["wide"])

    @pytest.mark.promise("backends.schema")
    @pytest.mark.parametrize("target", ["", "../up", "a/b", ".hidden", "naïve", "t; --", "t\x00", "%target"])
    def test_a_target_is_named_plainly(self, backend: VectorBackend, target: str) -> None:
        for verb in (
            lambda: backend.ensure(target, SPEC),
            lambda: backend.describe(target),
            lambda: backend.search(target, SPEC, X, k=1, where=Everything()),
            lambda: backend.drop(target),
        ):
            with pytest.raises(BackendError, match="target"):
                verb()

    @pytest.mark.promise("backends.threads")
    def test_twenty_threads_get_the_answers_of_one(self, backend: VectorBackend) -> None:
        random = np.random.default_rng(5)
        put(backend, [record(f"r{i:02}", random.normal(size=DIM), payer_id="AB"[i % 2] * 3) for i in range(60)])
        queries = random.normal(size=(20, 1, DIM)).astype(np.float32)
        where = Eq(POLICY["payer_id"], "AAA")
        alone = [backend.search("t", SPEC, query, k=7, where=where) for query in queries]
        with ThreadPoolExecutor(20) as pool:
            together = list(pool.map(lambda query: backend.search("t", SPEC, query, k=7, where=where), queries))
        assert together == alone

    @pytest.mark.promise("backends.incremental")
    def test_the_same_write_again_changes_nothing(self, backend: VectorBackend) -> None:
        rows = [record("a"), record("b", (0, 1, 0, 0))]
        put(backend, rows)
        before = (self.held(backend), self.found(backend, Everything()))
        put(backend, rows)
        assert (self.held(backend), self.found(backend, Everything())) == before

    @pytest.mark.promise("backends.usage")
    def test_what_was_asked_of_a_service_is_counted(self, make_backend: Callable[[], VectorBackend]) -> None:
        backend = make_backend()
        assert backend.usage() == Usage()
        put(backend, [record("a")])
        after_write = backend.usage()
        self.found(backend, Everything())
        assert backend.usage().requests >= after_write.requests
        assert backend.usage().bytes_sent >= after_write.bytes_sent

    @pytest.mark.promise("backends.closed")
    def test_closing_twice_is_fine_and_searching_afterwards_is_not(self, backend: VectorBackend) -> None:
        put(backend, [record("a")])
        backend.close()
        backend.close()
        for verb in (
            lambda: backend.search("t", SPEC, X, k=1, where=Everything()),
            lambda: backend.upsert("t", SPEC, [record("b")]),
            lambda: backend.describe("t"),
            backend.targets,
            lambda: backend.drop("t"),
        ):
            with pytest.raises(BackendError, match="closed"):
                verb()
