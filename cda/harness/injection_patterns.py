"""What injected words look like. Sentences are described in `data/injection.txt`, whose notation is compiled here;
set-out forms (brackets, markup, encoded text, characters that are not shown) are below.

An imperative counts only where one can stand, and its object is named, so that "unable to follow discharge
instructions" and "gastric bypass" are chart language.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cda.harness.patterns import bounded

# Zero width, bidirectional controls, invisible operators, tag characters and supplementary selectors, C0 and C1.
HIDDEN = bounded(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\U000e0000-\U000e0fff\u061c\u180e"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
SOFT = bounded("[\u00ad\ufeff]")
# Cyrillic or Armenian, full-width or mathematical letters beside Latin ones; Greek is ordinary in charts (TNF-α).
MIXED_SCRIPT = bounded(r"\b(?=\w*[A-Za-z])(?=\w*[\u0400-\u058f\uff21-\uff5a\U0001d400-\U0001d7ff])\w+\b")
BRACKETS = {"[": "]", "{": "}", "(": ")", "<": ">", "«": "»", "【": "】"}

_READER = (
    r"(?:a\.?i\.?|llm|chat\s?bot|bot|model|assistant|agent|system|algorithm|language\s+model|automated\s+\w+|ai\s+\w+"
    r"|machine|auto[- ]?adjudicat\w+|claude|gpt\w*|copilot|gemini|downstream\s+\w+)"
)
_MESSAGE = r"(?:note|message|memo|instructions?|directive|attention|attn|reminder|command|order)s?"
_LABEL = (
    r"(?:system\b|sys\b|admin(?:istrator)?\b|developer\b|directive|override|prompt\b|hidden\b|instructions?\b|jailbreak"
    rf"|{_MESSAGE}\s*(?:to|for|:)?\s*(?:the\s+)?{_READER}\b|ai\s*[:\-]|assistant\s*[:\-]|begin\b|end\s+of\b|inst\b"
    r"|(?:note|message)\s+to\s+(?:the\s+)?(?:adjudicator|evaluator|grader|verifier)|(?:important|new)\s+instructions?"
    r"|policy\s+(?:override|update))"
)
# A round bracket is ordinary punctuation ("(system review negative)"): there a bare word is no label.
_BARE = r"(?:system|sys|hidden|begin|end\s+of|admin|developer|prompt|override|instructions?)\b"
_SAID = r"(?!\s*(?:directive|note|message|prompt|override|command|instructions?)?\s*[:\])])"
DIRECTIVE = bounded(
    rf"[\[{{<«【][\[{{<*#\s]{{0,6}}{_LABEL}|\([*#\s]{{0,6}}(?!{_BARE}{_SAID}){_LABEL}",
    re.IGNORECASE,
)
_SENDER = r"(?:system|admin(?:istrator)?|developer|ai|assistant)"
DIRECTIVE_LINE = bounded(
    r"(?:(?<![^\n])|(?<=[.!?;]\s)|(?<=[*#>-]\s))[ \t*#>-]{0,8}(?:SYSTEM|ASSISTANT|DEVELOPER"
    rf"|(?i:{_SENDER}\s+(?:directive|note|message|prompt|instructions?|override|command|notice))"
    rf"|(?i:(?:note|message|attention|instructions?|memo)\s+(?:to|for)?\s*(?:the\s+)?{_READER})"
    r"|(?i:human|assistant|user|(?:new|important)\s+instructions?|end\s+of\s+(?:prompt|instructions|context)))"
    r"\s*(?:[:：]|[-–—]\s|\]\s)"
)
# 40 characters that could be a blob, or 24 pairs of hexadecimal digits with blanks between.
LONG_RUN = bounded(r"\w[\w+/]{39}|[0-9a-fA-F]{2}(?: [0-9a-fA-F]{2}){11}")
_TAG = (
    r"(?:system|user|assistant|instructions?|prompt|admin|override|context|developer|tool\w*|function\w*|script|style)"
)
_BASE64 = r"[A-Za-z0-9+/]{0,80}"

# (kind, what must stand in the lower-cased text ("": a long run), opener, closer): fenced from one to the other, or to
# the end of the line.
PAIRED: tuple[tuple[str, str, str, str], ...] = (
    ("delimiter", "```", r"```", r"```"),
    ("delimiter", "<", rf"<{_TAG}\b[^>\n]*>", rf"</{_TAG}\s*>"),
    ("delimiter", "<|", r"<\|[a-z_]+\|>", r"<\|(?:im_)?end\w*\|>"),
    ("delimiter", "inst]", r"\[/?inst\]", r"\[/inst\]"),
    ("delimiter", "sys>>", r"<</?sys>>", r"<</sys>>"),
    ("delimiter", "<!--", r"<!--", r"-->"),
    (
        "delimiter",
        "##",
        r"(?m)^\s*#{2,}\s*(?:system|instructions?|assistant|user|human|response|new\s+task|override)\b",
        r"\n\s*\n",
    ),
    (
        "delimiter",
        "of",
        r"[-=*]{3,}\s*(?:begin|end|start)\s+of\s+(?:the\s+)?(?:system|prompt|instructions?|context|input|user"
        r"|narrative|document)\b[^\n]*?(?:[-=*]{3,}|$)",
        r"\s*",
    ),
    ("delimiter", "role", r"\{?\s*[\"']role[\"']\s*:\s*[\"'](?:system|assistant|user|developer)", r"\}"),
    (
        "encoded_blob",
        "",
        rf"(?<![A-Za-z0-9+/=])(?={_BASE64}\d)(?={_BASE64}(?-i:[A-Z]))(?={_BASE64}(?-i:[a-z]))[A-Za-z0-9+/]{{40,}}={{0,2}}",
        r"",
    ),
    ("encoded_blob", "", r"\b(?:[0-9a-f]{2}\s?){24,}\b", r""),
    ("encoded_blob", "\\", r"(?:\\[ux][0-9a-f]{2,4}){4,}", r""),
    ("encoded_blob", "%", r"(?:%[0-9a-f]{2}){6,}", r""),
    ("encoded_blob", "&#", r"(?:&#x?[0-9a-f]{2,6};){4,}", r""),
)

# Where an imperative can stand: after a break, or after a word that leads one in.
_IMPERATIVE_AFTER = bounded(
    r"(?:^|[.!?;:,(\[\"'*>—–-]|\n|\b(?:please|kindly|must|should|now|then|and|or|so|but|therefore|to|just|simply|always"
    r"|immediately|instead|you|reviewer|system|assistant|ai|model|completely|also))\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A rule of `injection.txt`: each hit fences its whole sentence."""

    kind: str
    triggers: tuple[str, ...]
    source: str
    imperative: bool
    cased: bool

    def hits(self, text: str, low: str) -> Iterator[tuple[int, int]]:
        """Spans in `text`, whose lower case of equal length is `low`."""
        if not any(word in low or (self.cased and word in text) for word in self.triggers):
            return
        pattern, read, position = bounded(self.source), (text if self.cased else low), 0
        while found := pattern.search(read, position):
            fits = not self.imperative or _IMPERATIVE_AFTER.search(read[max(0, found.start() - 20) : found.start()])
            if fits:
                yield found.span()
            # A hit that cannot be an imperative may hide one that begins inside it.
            position = found.end() if fits else found.start() + 1


def _compiled(text: str) -> tuple[Sentence, ...]:
    macros: dict[str, str] = {}
    rules: list[tuple[str, tuple[str, ...], list[str]]] = []
    current = ""
    for line in filter(str.strip, text.splitlines()):
        if line.startswith("#"):
            continue
        if line.startswith("["):
            kind, _, triggers = line[1:].partition("] ")
            rules.append((kind, tuple(triggers.split("|")), []))
            current = ""
        elif not line.startswith(" "):
            current, _, macros_line = line.partition(" = ")
            macros[current] = macros_line
        elif current:
            macros[current] += "|" + line.strip()
        else:
            rules[-1][2].append(line.strip())
    return tuple(_sentence(kind, triggers, line, macros) for kind, triggers, lines in rules for line in lines)


def _sentence(kind: str, triggers: tuple[str, ...], line: str, macros: dict[str, str]) -> Sentence:
    pattern = line.lstrip("=!")
    marks = line[: len(line) - len(pattern)]
    for _ in range(3):  # a macro may name another
        pattern = re.sub(r"\{([A-Z_]+)\}", lambda found: f"(?:{macros[found.group(1)]})", pattern)
    # A look-behind has a fixed width, so its blank stays one blank.
    spaced = re.sub(r"\(\?<![^)]*\)| ", lambda found: r"\s+" if found.group() == " " else found.group(), pattern)
    start = "" if pattern.startswith((r"\b", '"')) else r"\b"
    return Sentence(kind, triggers, start + spaced, "!" in marks, "=" in marks)


_DATA = Path(__file__).parent / "data" / "injection.txt"
SENTENCES: tuple[Sentence, ...] = _compiled(_DATA.read_text(encoding="utf-8"))
