import re
import sqlite3
from pathlib import Path

import pytest

from cda import patterns
from cda.contracts.definitions import definitions_from_data
from cda.extraction.language import shared_language
from cda.extraction.lexicon import compile_lexicon
from cda.systems.coverage.authored_corpus import check_corpus

pytestmark = pytest.mark.promise("speed.patterns")


def shipped_patterns(every: int) -> list[str]:
    """One in `every` of the phrases of the shipped lexicons, as regular expressions."""
    contents, _ = check_corpus(["builtin"])
    assert contents is not None
    definitions = definitions_from_data(contents.facts)
    lexicons = [compile_lexicon(definition, shared_language().compiler) for definition in definitions.values()]
    return [phrase.pattern for lexicon in lexicons for phrase in lexicon.phrases()][::every]


def row(folder: Path, sql: str, *values: object) -> tuple[object, ...]:
    (file,) = folder.glob("patterns-*.sqlite")
    with sqlite3.connect(file) as db:
        found: tuple[object, ...] = db.execute(sql, values).fetchone() or ()
    db.close()
    return found


def test_a_kept_pattern_equals_the_one_compiled_anew(tmp_path: Path) -> None:
    wanted = [(pattern, 0) for pattern in shipped_patterns(every=60)]
    wanted += [(r"(?P<day>\d+)/(?P<month>\d+)|(x)", 0), ("weiß|É", re.I), (r" a \d  # figure", re.X | re.I), ("", 0)]
    first = patterns.PatternFile(tmp_path)
    made = [first.compile(pattern, int(flags)) for pattern, flags in wanted]
    kept = [patterns.PatternFile(tmp_path).compile(pattern, int(flags)) for pattern, flags in wanted]
    fresh = [re.compile(pattern, flags) for pattern, flags in wanted]
    assert len(wanted) > 20
    assert row(tmp_path, "SELECT count(*) FROM patterns") == (len(set(wanted)),)
    # Patterns are equal when their source, their flags and the numbers that the engine runs are.
    assert made == fresh
    assert kept == fresh
    assert [pattern.groupindex for pattern in kept] == [pattern.groupindex for pattern in fresh]
    found = kept[-4].match("5/12")
    assert found is not None
    assert (found["day"], found.lastgroup) == ("5", "month")


def test_patterns_are_read_from_the_file_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patterns.PatternFile(tmp_path).compile("a+b", 0)

    def refuse(*_: object) -> None:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(patterns.PatternFile, "_made", refuse)
    assert patterns.PatternFile(tmp_path).compile("a+b", 0).fullmatch("aab")


@pytest.mark.parametrize("damage", ["code = zeroblob(length(code))", "code = x'00'", "names = '[1]'", "hash = x''"])
def test_a_damaged_row_is_compiled_anew(tmp_path: Path, damage: str) -> None:
    patterns.PatternFile(tmp_path).compile("a+(?P<x>b)", 0)
    row(tmp_path, f"UPDATE patterns SET {damage}")  # noqa: S608 - one of the four above
    assert patterns.PatternFile(tmp_path).compile("a+(?P<x>b)", 0) == re.compile("a+(?P<x>b)")
    kept = patterns.PatternFile(tmp_path)
    assert kept._kept(("a+(?P<x>b)", 0)) == re.compile("a+(?P<x>b)")


def test_a_pattern_that_is_none_raises_what_compiling_raises(tmp_path: Path) -> None:
    with pytest.raises(re.error, match="unterminated"):
        patterns.PatternFile(tmp_path).compile("(a", 0)


def test_where_nothing_can_be_kept_patterns_are_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns, "_file", [])
    monkeypatch.setattr(patterns, "_open", {})
    place = tmp_path / "taken"
    place.write_text("a file, not a folder", encoding="utf-8")
    patterns.keep_in(place)
    assert patterns.compiled("a+b", re.I) == re.compile("a+b", re.I)
    assert list(tmp_path.iterdir()) == [place]
