"""Compiles the authored language data to the one JSON file that the package reads.

YAML costs an import and some 10 ms at every start; JSON does not. Run `python -m cda.extraction.compile_language` after
an edit of language.yaml, cues.yaml or quantities.yaml.
"""

import json

import yaml

from cda.extraction.language import COMPILED


def authored() -> str:
    """The authored YAML files as one JSON text."""
    names = ("language", "cues", "quantities")
    files = {name: yaml.safe_load(COMPILED.with_name(f"{name}.yaml").read_text(encoding="utf-8")) for name in names}
    return json.dumps(files, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    COMPILED.write_text(authored(), encoding="utf-8")
