"""Skills: domain policy that roles are given, as versioned texts whose differences can be reviewed.

A skill is a Markdown file that opens with its name and version between two lines of dashes. What it says is part of the
unchanging prefix of a role's requests, so its text decides what a model is told, and its digest says which text it was.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cda.errors import UnavailableError

_RULE = "---"


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. `text` is the body, without what stands between the dashes."""

    name: str
    version: int
    text: str


def read_skill(file: Path) -> Skill:
    """The skill in a file. Raises UnavailableError that names the file and what it lacks."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnavailableError(f"the skill {file.name} cannot be read ({type(error).__name__})") from None
    if lines[0] != _RULE or _RULE not in lines[1:]:
        raise UnavailableError(f"the skill {file.name} does not open with its name and version between lines of ---")
    end = lines.index(_RULE, 1)
    head = dict(line.split(": ", 1) for line in lines[1:end] if ": " in line)
    if head.get("name") != file.stem or not head.get("version", "").isdecimal():
        raise UnavailableError(f"the skill {file.name} needs `name: {file.stem}` and a whole-number `version:`")
    return Skill(head["name"], int(head["version"]), "\n".join(lines[end + 1 :]).strip())


def skills_digest(statics: Iterable[str]) -> str:
    """The sha256 of the unchanging prefixes of a set of roles, whatever their order: instruction and skills, whole."""
    return sha256("\0".join(sorted(statics)).encode("utf-8")).hexdigest()
