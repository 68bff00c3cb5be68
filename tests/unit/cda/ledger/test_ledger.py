"""The ledger: appended to by many, and held against every way of changing it afterwards."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_world import Place, entry

from cda.ledger import Ledger, LedgerUnavailable, chain_end
from cda.ledger.keys import KeyFault, argument_hasher, read_ring, rotate_signing_key
from cda.ledger.record import Entry, Position, line_of, merkle_root, read_line
from cda.ledger.upkeep import mend, retain

HERE = Path(__file__).parent
NOON = "2026-01-01T12:00:00.000000+00:00"
ENVIRONMENT = {"PYTHONPATH": str(HERE.parents[3])}


@pytest.mark.promise("ledger.chain")
def test_what_was_appended_verifies_over_segments_and_checkpoints(tmp_path: Path) -> None:
    place = Place(tmp_path).filled(35)

    verdict = place.verdict()

    assert (verdict.sound, verdict.records, verdict.checkpoints) == (True, 35, 4)
    assert len(place.segments()) > 1
    assert verdict.open_intents == ("call-17",)


@pytest.mark.promise("ledger.chain")
def test_a_ledger_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    Place(tmp_path).filled(7)
    Place(tmp_path).filled(7)

    assert (Place(tmp_path).verdict().sound, Place(tmp_path).verdict().records) == (True, 14)


@pytest.mark.promise("ledger.chain")
def test_two_processes_of_many_threads_share_one_chain(tmp_path: Path) -> None:
    Place(tmp_path)
    command = [sys.executable, str(HERE / "ledger_world.py"), str(tmp_path), "50", "10"]

    both = [subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in both]

    assert [process.returncode for process in both] == [0, 0], errors
    verdict = Place(tmp_path).verdict()
    assert (verdict.sound, verdict.records, verdict.open_intents) == (True, 2 * 50 * 10 * 2, ())


@pytest.mark.promise("ledger.crash")
def test_a_killed_process_leaves_a_sound_ledger_with_its_open_intents(tmp_path: Path) -> None:
    Place(tmp_path)
    command = [sys.executable, str(HERE / "ledger_world.py"), str(tmp_path), "5", "20", "die"]

    killed = subprocess.run(command, env=ENVIRONMENT, capture_output=True, timeout=120, check=False)

    assert killed.returncode == -9
    verdict = Place(tmp_path).verdict()
    assert verdict.sound, verdict
    assert verdict.open_intents
    Place(tmp_path).filled(3)
    assert Place(tmp_path).verdict().sound


def flip(place: Place) -> None:
    file = place.segments()[1]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def remove_middle(place: Place) -> None:
    file = place.segments()[1]
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2] + lines[3:]))


def swap_lines(place: Place) -> None:
    file = place.segments()[1]
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:1], lines[2], lines[1], *lines[3:]]))


def cut_tail(place: Place) -> None:
    file = place.segments()[-1]
    lines = file.read_bytes().splitlines(keepends=True)
    if len(lines) > 1:
        file.write_bytes(b"".join(lines[:-1]))
    else:
        file.unlink()


def remove_file(place: Place) -> None:
    place.segments()[1].unlink()


def remove_last_file(place: Place) -> None:
    place.segments()[-1].unlink()


def remove_everything(place: Place) -> None:
    for file in place.segments():
        file.unlink()


def chain_anew(place: Place) -> None:
    forge(place, 35)


def chain_anew_and_go_on(place: Place) -> None:
    forge(place, 40)


def forge(place: Place, records: int) -> None:
    for file in place.segments():
        file.unlink()
    content, position = b"", Position()
    for number in range(records):
        line, position = line_of(
            Entry("note", "", "nobody", f"tool {number}"), position, "2026-01-01T00:00:00.000000+00:00"
        )
        content += line
    (place.folder / f"{1:012d}.jsonl").write_bytes(content)


def tear_last_line(place: Place) -> None:
    file = place.segments()[-1]
    file.write_bytes(file.read_bytes() + b'{"arguments":"')


def remove_head(place: Place) -> None:
    (place.head / "head.json").unlink()


def forge_head(place: Place) -> None:
    head = place.head / "head.json"
    head.write_text(json.dumps(json.loads(head.read_text()) | {"count": 3}))


def drop_checkpoint(place: Place) -> None:
    file = place.head / "checkpoints.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:1] + lines[2:]))


ATTACKS: list[tuple[Callable[[Place], None], str, int | None]] = [
    (flip, "record", None),
    (remove_middle, "is missing", None),
    (swap_lines, "is missing", None),
    (cut_tail, "ends at record 34", 35),
    (remove_file, "is missing", None),
    (remove_last_file, "ends at record", None),
    (remove_everything, "ends at record 0", 1),
    (chain_anew, "not those that checkpoint 1", 1),
    (chain_anew_and_go_on, "not those that checkpoint 1", 1),
    (tear_last_line, "torn", 36),
    (remove_head, "head is missing", None),
    (forge_head, "head is not signed", None),
    (drop_checkpoint, "checkpoint 2 does not follow", None),
]


@pytest.mark.promise("ledger.tamper")
@pytest.mark.parametrize(("attack", "words", "seq"), ATTACKS, ids=[a[0].__name__ for a in ATTACKS])
def test_every_change_is_found_and_the_first_bad_record_named(
    tmp_path: Path, attack: Callable[[Place], None], words: str, seq: int | None
) -> None:
    place = Place(tmp_path).filled(35)

    attack(place)

    verdict = place.verdict()
    assert not verdict.sound
    assert words in (verdict.fault or "")
    assert seq is None or verdict.seq == seq


@pytest.mark.promise("ledger.tamper")
def test_the_names_of_place_and_line_are_those_of_the_changed_record(tmp_path: Path) -> None:
    place = Place(tmp_path).filled(35)
    file = place.segments()[2]
    lines = file.read_bytes().splitlines(keepends=True)
    changed = json.loads(lines[1]) | {"principal": "somebody else"}
    lines[1] = json.dumps(changed, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    file.write_bytes(b"".join(lines))

    verdict = place.verdict()

    assert (verdict.segment, verdict.line, verdict.seq) == (file.name, 2, changed["seq"])
    assert verdict.fault == "the record does not have its hash"


@pytest.mark.promise("ledger.tamper")
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_single_changed_byte_goes_unseen(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    place = Place(tmp_path_factory.mktemp("ledger")).filled(12)
    file = data.draw(st.sampled_from([*place.segments(), place.head / "head.json", place.head / "checkpoints.jsonl"]))
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)

    assert not place.verdict().sound


@pytest.mark.promise("ledger.closed")
@pytest.mark.parametrize(
    "attack", [cut_tail, remove_everything, tear_last_line, remove_head, forge], ids=lambda a: a.__name__
)
def test_a_damaged_ledger_is_not_gone_on_with(tmp_path: Path, attack: Callable[..., None]) -> None:
    place = Place(tmp_path).filled(35)
    attack(place, 3) if attack is forge else attack(place)

    with pytest.raises(LedgerUnavailable, match="cda ledger verify"):
        place.open()


@pytest.mark.promise("ledger.closed")
def test_what_could_be_written_only_in_part_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path).filled(3)
    ledger = place.open()
    whole = os.write
    monkeypatch.setattr("cda.ledger.ledger.os.write", lambda fd, content: whole(fd, content[:10]))

    with pytest.raises(LedgerUnavailable, match="disk is full"):
        ledger.append(entry(3))

    monkeypatch.undo()
    ledger.append(entry(4))
    assert (place.verdict().sound, place.verdict().records) == (True, 4)


@pytest.mark.promise("ledger.closed")
def test_a_failed_sync_is_a_failed_append_and_leaves_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path).filled(3)
    ledger = place.open()

    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("cda.ledger.ledger.os.fsync", fail)
    with pytest.raises(LedgerUnavailable, match="Input/output"):
        ledger.append(entry(3))

    assert (place.verdict().sound, place.verdict().records) == (True, 3)


@pytest.mark.promise("ledger.keys")
def test_the_ledger_does_not_open_with_a_key_that_others_may_read_or_that_lies_beside_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.keys / "ledger-signing.pem").chmod(0o644)
    with pytest.raises(LedgerUnavailable, match="mode to 600"):
        place.open()
    with pytest.raises(LedgerUnavailable, match="apart"):
        Ledger(tmp_path, tmp_path / "head", place.keys)
    with pytest.raises(LedgerUnavailable, match="head must lie apart"):
        Ledger(place.folder, place.folder, place.keys)


@pytest.mark.promise("ledger.keys")
def test_a_rotated_key_is_believed_because_the_old_one_signed_it(tmp_path: Path) -> None:
    place = Place(tmp_path).filled(15)
    rotate_signing_key(place.keys)
    place.filled(15)
    assert place.verdict().sound

    ring = json.loads((place.keys / "ledger-public.json").read_text())
    ring[1]["handover"] = ring[0]["handover"]
    (place.keys / "ledger-public.json").write_text(json.dumps(ring))
    assert not place.verdict().sound


@pytest.mark.promise("ledger.keys")
def test_missing_keys_are_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFault, match="missing or damaged"):
        read_ring(tmp_path)
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        Ledger(tmp_path / "a", tmp_path / "b", tmp_path / "c")


@pytest.mark.promise("ledger.payload")
def test_a_hash_of_arguments_needs_the_secret(tmp_path: Path) -> None:
    first, second = Place(tmp_path / "1"), Place(tmp_path / "2")

    hashes = {argument_hasher(place.keys)(b'{"member_id":"M1"}') for place in (first, second)}

    assert len(hashes) == 2
    assert argument_hasher(first.keys)(b"x") == argument_hasher(first.keys)(b"x")


@pytest.mark.promise("ledger.upkeep")
def test_old_segments_go_and_the_rest_still_verifies(tmp_path: Path) -> None:
    place = Place(tmp_path).filled(35)
    before = len(place.segments())

    removed = retain(place.folder, place.head, place.keys, before=datetime.now(UTC) + timedelta(days=1))

    verdict = place.verdict()
    assert (len(removed) > 0, len(place.segments())) == (True, before - len(removed))
    assert (verdict.sound, verdict.first > 1, verdict.records) == (True, True, 35)
    place.filled(5)
    assert place.verdict().records == 40
    assert retain(place.folder, place.head, place.keys, before=datetime(2020, 1, 1, tzinfo=UTC)) == []


@pytest.mark.promise("ledger.upkeep")
def test_a_torn_end_is_set_aside_and_noted(tmp_path: Path) -> None:
    place = Place(tmp_path).filled(9)
    tear_last_line(place)

    assert mend(place.folder, place.head, place.keys) == 14

    verdict = place.verdict()
    assert (verdict.sound, verdict.records) == (True, 10)
    assert [file.read_bytes() for file in place.folder.glob("*.torn")] == [b'{"arguments":"']


@pytest.mark.promise("ledger.chain")
def test_the_merkle_root_is_that_of_rfc_6962() -> None:
    # From the test vectors of Certificate Transparency: the empty tree, and leaves of known hashes.
    assert merkle_root([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    leaves = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    assert merkle_root(leaves) == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


@pytest.mark.promise("ledger.chain")
def test_a_line_is_read_as_it_was_written() -> None:
    line, position = line_of(entry(1), Position(4, "ab" * 32), "2026-01-01T00:00:00.000000+00:00")

    record = read_line(line)

    assert (record["seq"], record["prev"], record["hash"]) == (5, "ab" * 32, position.hash)


@pytest.mark.promise("ledger.chain")
def test_two_writers_in_turn_follow_each_other_over_segments_and_checkpoints(tmp_path: Path) -> None:
    place = Place(tmp_path)
    first, second = place.open(every=7, segment_bytes=1500), place.open(every=7, segment_bytes=1500)
    for number in range(60):
        (first if number % 5 < 3 else second).append(entry(number))
    second.close()

    verdict = place.verdict()
    assert (verdict.sound, verdict.records, len(place.segments()) > 5) == (True, 60, True), verdict
    assert verdict.checkpoints == 9, "eight of seven records and the rest"


@pytest.mark.promise("ledger.closed")
def test_a_chain_that_was_made_anew_under_a_writer_is_not_gone_on_with(tmp_path: Path) -> None:
    place, other = Place(tmp_path / "a").filled(3), Place(tmp_path / "b").filled(9)
    ledger = place.open()
    ledger.append(entry(3))
    (mine,), theirs = place.segments(), b"".join(file.read_bytes() for file in other.segments())
    mine.write_bytes(theirs)

    for _ in range(2):
        with pytest.raises(LedgerUnavailable):
            ledger.append(entry(4))


@pytest.mark.promise("ledger.crash")
@pytest.mark.parametrize("records", [0, 5])
def test_a_segment_that_never_got_its_first_record_is_filled_by_the_next(tmp_path: Path, records: int) -> None:
    place = Place(tmp_path)
    for number in range(records):
        place.open(segment_bytes=10).append(entry(number))
    place.folder.mkdir(exist_ok=True)
    (place.folder / f"{records + 1:012d}.jsonl").touch()

    place.open(segment_bytes=10).append(entry(records))

    assert (place.verdict().sound, place.verdict().records) == (True, records + 1), place.verdict()


@pytest.mark.promise("ledger.chain")
def test_an_append_costs_the_same_however_long_the_ledger_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    ledger = place.open(every=20, segment_bytes=10**9)
    read: list[bytes] = []
    whole = chain_end.read_line
    monkeypatch.setattr(chain_end, "read_line", lambda line: (read.append(line), whole(line))[1])
    for number in range(200):
        ledger.append(entry(number))

    assert read == [], "its own records are never read again"


@pytest.mark.promise("ledger.tamper")
def test_a_ledger_that_servers_write_to_is_verified_as_it_stands_between_two_writes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    stop = threading.Event()

    def write(number: int) -> None:
        ledger = place.open()
        while not stop.is_set():
            ledger.append(entry(number))
            number += 1

    with ThreadPoolExecutor(3) as pool:
        writing = [pool.submit(write, 1000 * number) for number in range(3)]
        verdicts = [place.verdict() for _ in range(15)]
        stop.set()
        for each in writing:
            each.result()

    assert [verdict.fault for verdict in verdicts] == [None] * 15
    assert verdicts[-1].records > verdicts[0].records


@pytest.mark.promise("ledger.tamper")
def test_a_head_that_was_taken_away_under_a_ledger_is_not_made_anew(tmp_path: Path) -> None:
    place = Place(tmp_path)
    ledger = place.open()
    ledger.append(entry(1))
    (place.head / "head.json").unlink()

    with pytest.raises(LedgerUnavailable):
        ledger.append(entry(2))
    assert not (place.head / "head.json").exists()


@pytest.mark.promise("ledger.tamper")
def test_a_process_that_dies_after_its_very_first_record_leaves_a_ledger_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    dying = place.open()

    def dies(*_arguments: object) -> None:
        raise SystemExit

    monkeypatch.setattr(dying, "_sign_head", dies)
    with pytest.raises(SystemExit):
        dying._write([entry(1)])

    assert place.verdict().sound
    place.open().append(entry(2))
    assert (place.verdict().sound, place.verdict().records) == (True, 2)
