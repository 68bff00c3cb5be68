"""A date of birth goes; the age it gives on the day of the question may stay."""

from datetime import date

import pytest

from cda.harness.birth_dates import age_on
from cda.harness.redaction import redact

DAY = date(2024, 6, 1)


@pytest.mark.promise("harness.birth-dates")
@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("1984-06-01", 40),
        ("1984-06-02", 39),
        ("06/30/1961", 62),
        ("3/3/1961", 63),
        ("March 14, 1981", 43),
        ("14 mar 1981", 43),
        ("5/7/1980", None),
        ("14/3/1981", 43),
        ("3/4/61", None),
        ("2030-01-01", None),
        ("1981", None),
        ("1984-13-45", None),
    ],
)
def test_only_a_whole_unambiguous_date_gives_an_age(text: str, age: int | None) -> None:
    assert age_on(text, DAY) == age


@pytest.mark.promise("harness.birth-dates")
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("DOB: 03/14/1981. Headache.", "DOB: [DOB, age 43]. Headache."),
        ("born March 14, 1981", "born [DOB, age 43]"),
        ("DOB 1930-01-05", "DOB [DOB, age 90+]"),
        ("DOB 3/4/81", "DOB [DOB]"),
    ],
)
def test_the_date_goes_and_the_age_stays(text: str, result: str) -> None:
    once = redact({"narrative": text}, as_of=DAY)
    assert once.texts["narrative"] == result
    placeholder = once.redactions[0]
    assert result[placeholder.start : placeholder.end].startswith("[DOB")
    assert redact({"narrative": result}, as_of=DAY).texts["narrative"] == result
