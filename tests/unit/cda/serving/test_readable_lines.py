"""Lines on stdio that are no message: refused by their id, in words that hold nothing of them."""

import json

import pytest

from cda.serving.readable_lines import refusal

pytestmark = pytest.mark.promise("kernel.quiet")
GOOD = '{"jsonrpc":"2.0","id":7,"method":"ping"}'


@pytest.mark.parametrize(
    "line", [GOOD, GOOD + "\n", "", "\n", '{"jsonrpc":"2.0","method":"notifications/initialized"}']
)
def test_a_message_and_an_empty_line_pass(line: str) -> None:
    assert refusal(line) is None


@pytest.mark.parametrize(
    ("line", "known", "code"),
    [
        ("{", None, -32700),
        ("[" * 100_000, None, -32700),
        ("[]", None, -32600),
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"\\ud800"}}', 7, -32600),
        ('{"jsonrpc":"2.0","id":"s","method":5}', "s", -32600),
        ('{"jsonrpc":"2.0","id":true,"method":5}', None, -32600),
        ('{"jsonrpc":"2.0","id":"\\ud800","method":5}', None, -32600),
        ('{"jsonrpc":"2.0","id":"' + "x" * 500 + '","method":5}', None, -32600),
    ],
)
def test_what_is_no_message_is_refused_by_its_id(line: str, known: object, code: int) -> None:
    refused = refusal(line)

    assert refused is not None
    assert (refused.id, refused.error.code) == (known, code)
    assert "ud800" not in json.dumps(refused.model_dump())
