"""API keys in their file."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from cda.errors import UnavailableError, UsageError
from cda.serving.key_store import PREFIX, KeyStore, make_key
from cda.serving.principal import Lapsed, Rate

pytestmark = pytest.mark.promise("kernel.keys")


def test_a_secret_is_shown_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    secret = make_key(file, key_id="a", tools=["all"], rate=Rate(5, 10))

    assert secret.startswith(PREFIX)
    assert len(secret) >= 40
    assert secret not in file.read_text(encoding="ascii")
    assert file.stat().st_mode & 0o777 == 0o600
    found = KeyStore(file).principal(secret)
    assert found is not None
    assert (found.id, found.tools, found.rate) == ("a", None, Rate(5, 10))


def test_wrong_odd_and_empty_secrets_are_nobody(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    secret = make_key(file, key_id="a", tools=["all"])
    store = KeyStore(file)

    assert [store.principal(s) for s in ("", secret[:-1], secret + " ", "\ud800", "\x00", secret.upper())] == [None] * 6


def test_all_is_a_word_of_its_own_and_an_empty_list_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    nothing = make_key(file, key_id="nothing", tools=[])
    found = KeyStore(file).principal(nothing)

    assert found is not None
    assert (found.tools, found.may("get_thing")) == (frozenset(), False)
    with pytest.raises(UsageError, match="either the word all"):
        make_key(file, key_id="b", tools=["all", "get_thing"])


def test_a_key_works_to_the_end_of_its_last_day(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    secret = make_key(file, key_id="a", tools=["all"], expires=date(2026, 3, 31))
    store = KeyStore(file)

    assert store.principal(secret, today=date(2026, 3, 31)) is not None
    with pytest.raises(Lapsed):
        store.principal(secret, today=date(2026, 4, 1))


def test_a_replaced_key_works_for_the_overlap_and_no_longer(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    old = make_key(file, key_id="old", tools=["all"])
    new = make_key(file, key_id="new", tools=["all"], replaces="old", overlap_days=3)
    store, today = KeyStore(file), datetime.now(UTC).date()

    assert store.principal(old, today=today + timedelta(days=3)) is not None
    with pytest.raises(Lapsed):
        store.principal(old, today=today + timedelta(days=4))
    assert store.principal(new, today=today + timedelta(days=4)) is not None
    with pytest.raises(UsageError, match="no key of this id"):
        make_key(file, key_id="c", tools=["all"], replaces="nobody")


def test_ids_are_never_used_twice(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    make_key(file, key_id="a", tools=["all"])

    with pytest.raises(UsageError, match="already"):
        make_key(file, key_id="a", tools=["all"])
    for odd in ("", "a b", "a\n", "é", "x" * 65):
        with pytest.raises(UsageError, match="64 ASCII"):
            make_key(file, key_id=odd, tools=["all"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "damaged"),
        ("{}", "damaged"),
        ('{"format": 1, "keys": []}', "no key"),
        ('{"format": 2, "keys": []}', "damaged"),
        ('{"format": 1, "keys": [{"id": "a"}]}', "damaged"),
        ('{"format": 1, "keys": [{"id": "a", "sha256": "ab", "tools": ["all"]}]}', "damaged"),
    ],
)
def test_a_file_that_is_off_is_refused(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content, encoding="ascii")
    file.chmod(0o600)

    with pytest.raises(UnavailableError, match=words):
        KeyStore(file)


def test_one_id_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    make_key(file, key_id="a", tools=["all"])
    held = json.loads(file.read_text(encoding="ascii"))
    file.write_text(json.dumps(held | {"keys": held["keys"] * 2}), encoding="ascii")

    with pytest.raises(UnavailableError, match="twice"):
        KeyStore(file)


def test_a_missing_file_says_how_to_make_a_key(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cda keys make"):
        KeyStore(tmp_path / "keys.json")


@pytest.mark.parametrize("text", ["", "60", "0/60", "60/0", "-1/60", "60/60/60", "6e1/60", " 60/60"])
def test_a_rate_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="N/SECONDS"):
        Rate.read(text)
