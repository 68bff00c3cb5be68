from pathlib import Path

import pytest

from cda.agents.skills import read_skill, skills_digest
from cda.errors import UnavailableError

pytestmark = pytest.mark.promise("models.skills")


def test_a_skill_is_its_name_its_version_and_its_text(tmp_path: Path) -> None:
    file = tmp_path / "a-skill.md"
    file.write_text("---\nname: a-skill\nversion: 3\n---\nOne.\n\nTwo.\n", encoding="utf-8")
    skill = read_skill(file)
    assert (skill.name, skill.version, skill.text) == ("a-skill", 3, "One.\n\nTwo.")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One.",
        "---\nname: a-skill\n",
        "---\nname: another\nversion: 1\n---\n",
        "---\nname: a-skill\nversion: x\n---\n",
    ],
)
def test_a_skill_without_its_head_is_refused_by_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a-skill.md"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnavailableError, match=r"a-skill\.md"):
        read_skill(file)


def test_the_digest_moves_with_a_word_and_not_with_the_order() -> None:
    assert skills_digest(["a", "b"]) == skills_digest(["b", "a"]) != skills_digest(["a", "c"])
