"""Settings read the environment once, and `.env.example` says the same as they do."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from cda.errors import UsageError
from cda.settings import Settings, load_settings

ROOT = Path(__file__).parents[3]


def variables() -> dict[str, object]:
    found = {}
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        assert alias is not None, name
        found[alias.choices[0]] = field.default  # type: ignore[union-attr]
    return found


@pytest.mark.promise("settings.example")
def test_the_example_file_lists_every_variable_and_its_default() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^#?([A-Z][A-Z_]+)=(.*)$", text, re.M))
    assert set(listed) == set(variables())
    for name, default in variables().items():
        if isinstance(default, str | float | int):
            assert listed[name] == str(default), name


@pytest.mark.promise("settings.refused")
def test_a_wrong_value_is_refused_by_name_and_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDA_FAULT", "canary-4711")
    with pytest.raises(UsageError, match="CDA_FAULT") as caught:
        load_settings()
    assert "canary-4711" not in str(caught.value)


@pytest.mark.promise("settings.precedence")
def test_a_real_variable_beats_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CDA_RERANKER=rrf\nCDA_EMBEDDER=tfidf\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDA_RERANKER", "weighted")
    settings = load_settings()
    assert (settings.reranker, settings.embedder) == ("weighted", "tfidf")


@pytest.mark.promise("settings.precedence")
def test_an_empty_variable_is_not_set_and_case_is_no_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "export CDA_RERANKER='rrf'\ncda_embedder=tfidf\nCDA_MAX_ITERATIONS=\nCDA_LEXICAL\nOTHER=1\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDA_RERANKER", "")
    settings = load_settings()
    assert (settings.reranker, settings.embedder, settings.max_iterations) == ("rrf", "tfidf", 3)
    assert Settings(_env_file=None).reranker == "adaptive"
    assert Settings(CDA_RERANKER="weighted").reranker == "weighted"  # type: ignore[call-arg]


@pytest.mark.promise("settings.refused")
def test_what_was_read_does_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDA_RERANKER", "rrf")
    settings = load_settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.reranker = "weighted"  # type: ignore[misc]
    assert settings.model_copy(update={"reranker": "weighted"}).reranker == "weighted"


@pytest.mark.promise("settings.refused")
@pytest.mark.parametrize("place", ["/a/bare/folder", "s3:", "s3://UPPER/x", "file:", "redis://canary-4711"])
def test_a_place_of_manifests_that_is_none_is_refused_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("CDA_MANIFESTS", place)
    with pytest.raises(UsageError, match=r"CDA_MANIFESTS.* file:FOLDER, s3://BUCKET/PREFIX or postgres") as caught:
        load_settings()
    assert place not in str(caught.value).replace("s3://BUCKET", "").replace("file:FOLDER", "")


@pytest.mark.promise("settings.precedence")
@pytest.mark.parametrize("place", ["postgres", "file:/srv/cda", "s3://a-bucket", "s3:a-bucket/of/cda"])
def test_a_place_of_manifests_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("CDA_MANIFESTS", place)
    assert load_settings().manifests_place == place
