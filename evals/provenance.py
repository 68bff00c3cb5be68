"""What produced a scorecard: corpus, every part that ranks or decides, and code, so that a figure is attributable."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from cda.contracts.decision import Provenance
from cda.retrieval.words import ANALYZER
from cda.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
TREES = ("backends", "cda", "corpus", "evals")
SOURCES = frozenset({".py", ".yaml", ".json", ".md", ".txt", ".css", ".js"})
RANKING = ("backend", "embedder", "reranker", "lexical")
"""What finds and orders clauses; a comparison names these whether they have moved or not."""
MOVABLE = ("corpus_digest", *RANKING, "tokeniser", "index_manifest", "reasoner", "model")
"""What a comparison must name when it has moved. Code is what a comparison is there to judge."""


def run_provenance(given: Provenance, settings: Settings) -> dict[str, Any]:
    """The answer's own provenance, with what a run of evals adds: tokeniser, lexical scorer, fault, code."""
    return {
        **given.model_dump(),
        "tokeniser": ANALYZER,
        "lexical": settings.lexical,
        "fault": settings.fault,
        "max_iterations": settings.max_iterations,
        "code_digest": code_digest(),
    }


def told(provenance: Mapping[str, Any]) -> str:
    """What stands beside every score: a figure is of this corpus, embedder, tokeniser and index, and of no other."""
    parts = ("corpus_digest", "embedder", "backend", "reranker", "tokeniser", "index_manifest", "reasoner")
    return "  of " + ", ".join(f"{name} {str(provenance[name])[:12]}" for name in parts)


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Sha256 over the files that the product and its evals consist of, case sets and the baseline left out."""
    digest = sha256()
    for tree in TREES:
        for file in sorted((ROOT / tree).rglob("*")):
            inside = file.relative_to(ROOT)
            if file.suffix not in SOURCES or inside.parts[:2] in (("evals", "cases"), ("evals", "baseline.json")):
                continue
            digest.update(inside.as_posix().encode("utf-8") + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of the checkout. commit None: this is no checkout, or there is no git."""

    commit: str | None
    dirty: tuple[str, ...] = ()


def working_tree(root: Path = ROOT, ignore: tuple[str, ...] = ("evals/baseline.json",)) -> Tree:
    """The commit and the files that differ from it, those in `ignore` left out."""
    git = shutil.which("git")
    if git is None:
        return Tree(None)
    commit = subprocess.run([git, "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if commit.returncode != 0:
        return Tree(None)
    status = subprocess.run(
        [git, "-C", str(root), "status", "--porcelain", "-z"], capture_output=True, text=True, check=True
    ).stdout
    changed = [entry[3:] for entry in status.split("\0") if len(entry) > 3]
    return Tree(commit.stdout.strip(), tuple(name for name in changed if name not in ignore))
