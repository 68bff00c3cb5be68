"""Days, kinds, sentinels."""

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from conformance.backend import meta

from backends.errors import InvalidFilter, InvalidRecord
from backends.schema import NEVER_LASTED, OPEN_END, POLICY, Schema, day_number, is_day, window


@pytest.mark.promise("backends.days")
def test_every_day_from_1900_to_2100_keeps_its_order() -> None:
    day, last, previous = date(1900, 1, 1), date(2100, 12, 31), 0
    while day <= last:
        number = day_number(day)
        assert number > previous
        assert is_day(number)
        assert f"{number:08}" == day.strftime("%Y%m%d")
        previous, day = number, day + timedelta(days=1)


@pytest.mark.promise("backends.days")
@pytest.mark.parametrize(
    "value",
    [20240630.5, 2024e4, True, 20240231, 20230229, 0, -20240101, 100000101, "20240101", None, date(2024, 1, 1)],
)
def test_nothing_but_a_day_of_the_calendar_is_a_day(value: object) -> None:
    assert not is_day(value)


@pytest.mark.promise("backends.days")
@pytest.mark.parametrize("value", [datetime(2024, 1, 1, tzinfo=timezone.utc), "2024-01-01", 20240101, None])  # noqa: UP017
def test_only_a_plain_date_becomes_a_day(value: Any) -> None:
    with pytest.raises(InvalidFilter):
        day_number(value)


@pytest.mark.promise("backends.boundaries")
def test_an_undated_window_lies_outside_every_day() -> None:
    for start, dated in ((date(2024, 1, 1), False), (None, True)):
        first, last = window(start, None, dated=dated)
        assert (first, last) == (OPEN_END, NEVER_LASTED)
        assert not first <= OPEN_END <= last
    assert window(date(2024, 1, 1), None, dated=True) == (20240101, OPEN_END)


@pytest.mark.promise("backends.schema")
@pytest.mark.parametrize("name", [field.name for field in POLICY.fields])
@pytest.mark.parametrize("value", [None, True, 1.5, b"x", [], "", ("",), (1,)])
def test_a_value_of_another_kind_is_refused_in_every_field(name: str, value: Any) -> None:
    with pytest.raises(InvalidRecord, match=name):
        POLICY.check("r", meta(**{name: value}))


@pytest.mark.promise("backends.schema")
def test_a_missing_field_is_refused() -> None:
    held = meta()
    del held["plan_id"]
    with pytest.raises(InvalidRecord, match="plan_id"):
        POLICY.check("r", held)


@pytest.mark.promise("backends.schema")
def test_the_digest_moves_with_every_part_of_the_schema() -> None:
    digests = {
        POLICY.digest,
        Schema("other", POLICY.fields, "payer_id").digest,
        Schema("policy", POLICY.fields[1:], "policy_id").digest,
        Schema("policy", POLICY.fields, "policy_id").digest,
    }
    assert len(digests) == 4
