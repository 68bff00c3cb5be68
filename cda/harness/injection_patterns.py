"""What injected words look like, as data. An imperative counts only where one can stand (`_IMPERATIVE`), and an
object is named, so that "unable to follow discharge instructions" and "gastric bypass" are chart language."""

import re

Pattern = re.Pattern[str]

# Zero width, bidirectional controls, invisible operators, variation selectors' plane, tag characters, C0/C1 controls.
HIDDEN = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\U000e0000-\U000e0fff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e]"
)
SOFT = re.compile("[\u00ad\ufeff]")
# Cyrillic or Armenian beside Latin in one word; Greek letters are ordinary in charts (TNF-α, β-blocker).
MIXED_SCRIPT = re.compile(
    r"\b(?=\w*[A-Za-z])(?=\w*[\u0400-\u058f])[\w]+\b|\b(?=\w*[A-Za-z])(?=\w*[\uff21-\uff5a\U0001d400-\U0001d7ff])\w+\b"
)
BRACKETS = {"[": "]", "{": "}", "(": ")", "<": ">", "«": "»", "【": "】"}

_READER = (
    r"(?:a\.?i\.?|llm|chat\s?bot|bot|model|assistant|agent|system|algorithm|language\s+model|automated\s+\w+|ai\s+\w+|machine"
    r"|auto[- ]?adjudicat\w+|claude|gpt\w*|copilot|gemini|downstream\s+\w+)"
)
_LABEL = (
    rf"(?:system\b|sys\b|admin(?:istrator)?\b|developer\b|directive|override|prompt\b|hidden\b|instructions?\b|jailbreak"
    rf"|(?:note|message|memo|instructions?|directive|attention|attn|reminder|command|order)s?\s*(?:to|for|:)?\s*(?:the\s+)?{_READER}\b"
    r"|(?:note|message)\s+to\s+(?:the\s+)?(?:adjudicator|evaluator|grader|verifier)|ai\s*[:\-]|assistant\s*[:\-]"
    r"|important\s+instructions?|new\s+instructions?|policy\s+(?:override|update)|begin\b|end\s+of\b|inst\b)"
)
# A round bracket is ordinary punctuation ("(system review negative)"): there the bare word "system" is no label.
DIRECTIVE = re.compile(
    rf"[\[{{<«【][\[{{<*#\s]*{_LABEL}"
    rf"|\([*#\s]*(?!(?:system|sys|hidden|begin|end\s+of|admin|developer|prompt|override|instructions?)\b(?!\s*(?:directive|note|message|prompt|override|command|instructions?)?\s*[:\])]))"
    rf"{_LABEL}",
    re.IGNORECASE,
)
DIRECTIVE_LINE = re.compile(
    r"(?:(?<![^\n])|(?<=[.!?;]\s)|(?<=[*#>-]\s))[ \t*#>-]*(?:SYSTEM|ASSISTANT|DEVELOPER|(?i:"
    r"(?:system|admin(?:istrator)?|developer|ai|assistant)\s+(?:directive|note|message|prompt|instructions?|override|command|notice)"
    rf"|(?:note|message|attention|instructions?|memo)\s+(?:to|for)?\s*(?:the\s+)?{_READER}|(?:human|assistant|user)"
    r"|new\s+instructions?|important\s+instructions?|end\s+of\s+(?:prompt|instructions|context)))\s*(?:[:：]|[-–—]\s|\]\s)"
)

PAIRED: tuple[tuple[str, Pattern, Pattern], ...] = tuple(
    (kind, re.compile(opener, re.IGNORECASE), re.compile(closer, re.IGNORECASE))
    for kind, opener, closer in (
        ("delimiter", r"```|~~~", r"```|~~~"),
        (
            "delimiter",
            r"<(?:system|user|assistant|instructions?|prompt|admin|override|context|developer|tool\w*|function\w*|script|style)\b[^>\n]*>",
            r"</(?:system|user|assistant|instructions?|prompt|admin|override|context|developer|tool\w*|function\w*|script|style)\s*>",
        ),
        ("delimiter", r"<\|[a-z_]+\|>|\[/?inst\]|<</?sys>>", r"<\|(?:im_)?end\w*\|>|\[/inst\]|<</sys>>"),
        ("delimiter", r"<!--", r"-->"),
        (
            "delimiter",
            r"(?m)^\s*#{2,}\s*(?:system|instructions?|assistant|user|human|response|new\s+task|override)\b",
            r"\n\s*\n",
        ),
        (
            "delimiter",
            r"(?:[-=*]{3,})\s*(?:begin|end|start)\s+(?:of\s+)?(?:the\s+)?(?:system|prompt|instructions?|context|input|user|narrative|document)\b[^\n]*?(?:[-=*]{3,}|$)",
            r"\s*",
        ),
        ("delimiter", r"[\"']role[\"']\s*:\s*[\"'](?:system|assistant|user|developer)", r"\}"),
        (
            "encoded_blob",
            r"(?<![A-Za-z0-9+/=])(?=[A-Za-z0-9+/]{0,80}\d)(?=[A-Za-z0-9+/]{0,80}(?-i:[A-Z]))(?=[A-Za-z0-9+/]{0,80}(?-i:[a-z]))[A-Za-z0-9+/]{40,}={0,2}",
            r"",
        ),
        (
            "encoded_blob",
            r"\b(?:[0-9a-f]{2}\s?){24,}\b|(?:\\[ux][0-9a-f]{2,4}){4,}|(?:%[0-9a-f]{2}){6,}|(?:&#x?[0-9a-f]{2,6};){4,}",
            r"",
        ),
    )
)

_IMPERATIVE = (
    r"(?:(?<![^\n])|(?<=[.!?;:,(\[\"'*>—–-])|(?<=[.!?;:,(\[\"'*>—–-]\s)"
    r"|\b(?:please|kindly|must|should|now|then|and|or|so|but|therefore|to|just|simply|always|immediately|instead|you|reviewer|system|assistant|ai|model)\s+)"
    r"(?:(?:please|kindly|just|simply|immediately|completely|always|also)\s+)*"
)
_INSTRUCTIONS = r"(?:(?<!discharge )(?<!dietary )(?<!medication )(?<!care )instructions?|prompts?|directives?|commands?|programming|guardrails?|safeguards?)"
_RULES = r"(?:rules?|polic(?:y|ies)|criteri(?:a|on)|guidelines?|requirements?|constraints?|restrictions?|limitations?|exclusions?|clauses?|bulletins?|riders?|protocols?|checks?)"
_THIS = r"(?:all|any|every|the|these|those|your|our|its|previous|prior|preceding|earlier|above|foregoing|other|plan'?s?|payer'?s?|coverage|medical|step|existing|normal|usual|standard|stated|system|safety|original|initial|of)"
_ANSWER = r"(?:not[_ -]covered|covered|insufficient[_ -]evidence|approved?|denied|medically\s+necessary)"
_OUTCOME = rf"(?:{_ANSWER}|determined?|met|satisfied|eligible)"

# (kind, trigger words, pattern); each hit fences its whole sentence.
SENTENCES: tuple[tuple[str, tuple[str, ...], Pattern], ...] = tuple(
    (kind, tuple(triggers.split("|")) if triggers else (), re.compile(pattern, re.IGNORECASE))
    for kind, triggers, pattern in (
        (
            "override_instruction",
            "ignore|disregard|forget|override|bypass|set aside|pay no attention|neglect|discard|drop",
            rf"{_IMPERATIVE}(?:ignore|disregard|forget|override|bypass|set\s+aside|pay\s+no\s+attention\s+to|neglect|discard|drop)\s+"
            rf"(?:{_THIS}\s+){{0,4}}(?:{_INSTRUCTIONS}|(?!step\s+therapy){_RULES}|(?:everything|anything|what(?:ever)?|all|text|the)\s+(?:\w+\s+){{0,3}}?(?:above|before|previous\w*|prior|earlier|told)\b|(?:the\s+)?(?:above|foregoing|preceding)\b(?!\s+\w+\s+(?:value|result|note)))",
        ),
        (
            "override_instruction",
            "do not|don't|never|stop",
            rf"{_IMPERATIVE}(?:do\s+not|don['’]t|never|stop)\s+(?:follow(?:ing)?|apply(?:ing)?|us(?:e|ing)|consider(?:ing)?|enforc(?:e|ing)|check(?:ing)?|obey(?:ing)?|evaluat(?:e|ing)|verify(?:ing)?|read(?:ing)?)\s+(?:{_THIS}\s+){{0,3}}(?:{_INSTRUCTIONS}|{_RULES}|citations?|quotes?)\b",
        ),
        (
            "override_instruction",
            "instruction|prompt|directive|rules",
            r"\b(?:previous|prior|above|earlier|original|system|these|those|your)\s+(?:instructions?|prompts?|directives?|rules)\s+(?:are|is|were|have\s+been|no\s+longer|do\s+not|don['’]t)\b|\b(?:new|updated|revised|following)\s+instructions?\s*(?::|supersede|replace|override|take\s+precedence|apply)|\bsupersedes?\s+(?:all|any|the|every)\s+(?:\w+\s+){0,2}(?:polic|instruction|criteri|rule)",
        ),
        (
            "override_instruction",
            "ignor|olvid|instruc|anweisung|consignes",
            r"\b(?:ignor(?:a|e|en|ez|er|iere)|olvid(?:a|e)|oublie[rz]?|vergiss)\s+(?:\w+\s+){0,3}(?:instruc\w+|anweisung\w*|consignes|reglas|règles|regeln)",
        ),
        (
            "role_reassignment",
            "you are|you're|act as|pretend|from now on|your new|your role|your task|your only|your job|roleplay|role-play|mode|jailbreak|simulate",
            r"\byou(?:\s+are|['’]re)\s+(?:now\s+|no\s+longer\s+|actually\s+|really\s+)*(?:an?\s+|the\s+|in\s+|acting\s+as\s+)?(?:\w+\s+){0,2}(?:ai|assistant|bot|model|reviewer|approver|agent|system|adjudicator|administrator|expert|mode|dan|bound|restricted|authori[sz]ed\s+to|required\s+to|instructed\s+to|free\s+(?:to|of|from)|to\s+(?:approve|answer|output|respond|return|ignore))\b"
            r"|\bact\s+as\s+(?:if\s+you|though\s+you|(?:an?|the)\s+(?:\w+\s+){0,2}(?:ai|assistant|reviewer|approver|director|administrator|admin|developer|system|bot|model|adjudicator))\b"
            rf"|{_IMPERATIVE}(?:pretend|imagine|simulate|role-?play)\s+(?:to\s+be|that|you|as|an?\b|the\b)"
            r"|\bfrom\s+now\s+on\b[^.!?\n]{0,60}\byou\b|\byour\s+(?:new\s+|only\s+|sole\s+|real\s+|true\s+)?(?:role|task|job|goal|purpose|instructions?|mission)\s+(?:is|are|now)\b"
            r"|\b(?:developer|dan|god|debug|maintenance|unrestricted|approval|override|admin)\s+mode\b|\bjailbreak",
        ),
        (
            "forced_outcome",
            "",
            rf"{_IMPERATIVE}(?:output|respond|reply|answer|return|print|say|emit|conclude|declare|write)\b(?!\s+(?:whether|if)\b)(?:(?!\bwhether\b|\bif\b)[^.!?\n]){{0,60}}?[\"'`]?\b(?:{_ANSWER}|approval|(?-i:DETERMINE))\b",
        ),
        (
            "forced_outcome",
            "mark|set|classify|label|treat|record|report|rate|flag|state|decide|determine|find|deem|consider|count",
            rf"{_IMPERATIVE}(?:mark|set|classify|label|treat|record|report|rate|flag|list|state|decide|determine|find|deem|consider|count|show)\s+"
            r"(?:this|it|that|these|the|all|every|each|any|outcome|gate|determination|decision|status|as)\b(?:(?!\bwhether\b|\bif\b|\bdue\b)[^.!?\n]){0,60}?"
            rf"(?:\b(?:as|to|is|are|be|=)\s*[\"'`]?(?:being\s+|fully\s+|automatically\s+)*(?:{_OUTCOME})\b|\b(?:COVERED|NOT_COVERED|DETERMINE)\b)",
        ),
        (
            "forced_outcome",
            "answer|outcome|determination|decision|response|output|result|gate|status|confidence|verdict",
            r"\b(?:correct|right|final|only|required|expected|appropriate|true|proper|mandatory|valid)\s+(?:\w+\s+)?(?:answer|outcome|determination|decision|response|output|verdict)\s+(?:is|must\s+be|should\s+be|shall\s+be|:)"
            r"|\b(?:answer|outcome|determination|decision|response|output|gate|verdict|confidence)\s+(?:must|shall|should|has\s+to|needs\s+to|will)\s+be\b"
            r"|[\"'`]?\b(?:outcome|gate|verdict|determination|decision)[\"'`]?\s*(?:=|:)\s*[\"'`]?(?-i:COVERED|NOT_COVERED|DETERMINE|APPROVED?|INSUFFICIENT_EVIDENCE)"
            r"|\bconfidence\s*(?:=|:|of|to)\s*(?:1(?:\.0+)?\b|100\s*%|0?\.9\d)",
        ),
        (
            "forced_outcome",
            "not_covered|insufficient_evidence|auto",
            r"\b(?:NOT_COVERED|INSUFFICIENT_EVIDENCE)\b|\bauto[- ]?approv\w+|\bauto[- ]?determin\w+",
        ),
        (
            "forced_outcome",
            "regardless|irrespective|no matter|without|even if|even though|unconditionally|automatically|no further|skip",
            r"\b(?:approv\w+|cover(?:ed|age)?|authori[sz]\w+|determin\w+|pay)\b[^.!?\n]{0,80}\b(?:regardless\s+of|irrespective\s+of|no\s+matter)\s+(?:\w+\s+){0,2}(?:what|which|polic|criteri|rules?|requirements?|evidence|clauses?|documentation|guidelines?|the\s+chart|version|date)"
            r"|\b(?:regardless|irrespective)\s+of\s+(?:\w+\s+){0,2}(?:polic|criteri|rules|requirements|clauses?|guidelines)"
            r"|\b(?:approve|cover|authori[sz]e)\b[^.!?\n]{0,60}\b(?:without\s+(?:further\s+|any\s+)?(?:review|checking|verif\w+|question\w*|citations?|evidence|looking)|unconditionally|automatically|even\s+(?:if|though)\s+(?:the\s+)?(?:criteria|requirements?|polic\w+))"
            r"|\b(?:no\s+(?:further\s+)?(?:review|verification|citation|evidence|checks?)\s+(?:is\s+|are\s+)?(?:needed|required|necessary))"
            rf"|{_IMPERATIVE}skip\s+(?:\w+\s+){{0,2}}(?:verif\w+|review|checks?|retrieval|citations?|validation|gate)\b",
        ),
        (
            "forced_outcome",
            "must be|shall be|has to be|needs to be|have to be",
            r"\b(?:must|shall|has\s+to|have\s+to|needs?\s+to)\s+(?:always\s+|automatically\s+|immediately\s+)?be\s+(?:marked|returned|reported|output|classified|answered|auto\w*|determined|labell?ed|treated\s+as|considered)\b[^.!?\n]{0,40}",
        ),
        (
            "forced_outcome",
            "you must|you should|you will|you shall|you have to|you are to|you need to",
            r"\byou\s+(?:must|should|will|shall|have\s+to|are\s+to|need\s+to)\s+(?:now\s+|always\s+|only\s+|not\s+)*(?:approve|cover|authori[sz]e|answer|output|return|respond|determine|deny|refuse|mark|conclude|ignore|say|reply|disregard|treat|find|set)\b",
        ),
        (
            "forced_outcome",
            "do not|don't|never",
            rf"{_IMPERATIVE}(?:do\s+not|don['’]t|never)\s+(?:flag|mention|reveal|disclose|escalate|halt|route|cite|report|log|refer)\b[^.!?\n]{{0,50}}\b(?:this|these|it|any|the|to\s+review|conflict|instruction|message)\b",
        ),
        (
            "authority_claim",
            "director|administrator|admin|officer|developer|supervisor|anthropic|openai|compliance|executive|management|engineer|vendor",
            r"\b(?:as|i\s+am|this\s+is|speaking\s+as|on\s+behalf\s+of|by\s+order\s+of|from|by)\s+(?:the\s+|your\s+|an?\s+|our\s+)?(?:\w+['’]?s?\s+){0,3}(?:administrator|admin|developers?|chief\s+medical\s+officer|cmo|medical\s+director|ceo|compliance\s+(?:officer|team|department)|supervisor|anthropic|openai|management|executive)\b"
            r"[^.!?\n]{0,100}\b(?:approv(?:e|es|al)\s+(?:this|the|it|coverage|all)|override|hereby|instruct|order(?:s|ed)?\s+(?:you|that)|direct(?:s|ed)?\s+(?:you|that|the\s+reviewer)|authori[sz]ed?\s+(?:you|this|coverage)|command|mandate[sd]?|require\s+you|must)\b",
        ),
        (
            "authority_claim",
            "pre-approved|preapproved|already approved|been approved|already determined|override code|full authority|sudo|authorization level|clearance|instructed you|instructs you|instructed the|admin override",
            r"\b(?:pre-?approved|already\s+(?:been\s+)?(?:approved|determined|adjudicated)|has\s+been\s+approved)\b[^.!?\n]{0,40}\bby\s+(?:the\s+)?(?:\w+\s+){0,2}(?:medical\s+director|administrator|admin|cmo|compliance|system|management|supervisor|leadership|executive)\b"
            r"|\b(?:override\s+code|admin(?:istrator)?\s+override|full\s+authority|sudo|authori[sz]ation\s+level|clearance\s+level)\b|\b(?:payer|plan|insurer|health\s+plan)\s+(?:has\s+)?instruct(?:s|ed)\s+(?:you|the\s+(?:reviewer|system|model|ai))",
        ),
        (
            "fabricate_citation",
            "invent|fabricate|make up|cite|quote|clause",
            rf"{_IMPERATIVE}(?:invent|fabricate|make\s+up|hallucinate)\s+(?:an?\s+|any\s+|the\s+|some\s+)?(?:\w+\s+){{0,2}}(?:citation|clause|quote|policy|section|reference|rider|source|rule)"
            rf"|{_IMPERATIVE}(?:cite|quote|reference)\s+(?:(?:an?y|some|as)\b|(?:\w+\s+){{0,3}}(?:clause|policy|section|rider|bulletin)\s+(?:[A-Z]*\d|[A-Z]{{2,}}-)|(?:\w+\s+){{0,4}}(?:that|which)\s+(?:says|states|supports))"
            r"|\beven\s+if\s+(?:it|they|the\s+(?:clause|citation|policy))\s+(?:do(?:es)?\s+not|don['’]t|doesn['’]t)\s+exist",
        ),
        (
            "prompt_leak",
            "prompt|your instructions|your rules",
            rf"{_IMPERATIVE}(?:reveal|show|print|repeat|output|display|tell\s+me|what\s+(?:is|are))\b[^.!?\n]{{0,40}}\b(?:(?:system|hidden|initial|your)\s+prompt|your\s+(?:instructions|rules))|\bsystem\s+prompt\b",
        ),
        (
            "role_reassignment",
            "language model|as an ai|dear ai|attention ai|hey ai|to the ai|ai model|ai reviewer|ai assistant|llm|chatbot|to the model|to the system|to the assistant|automated",
            rf"\b(?:as\s+an\s+ai|(?:large\s+)?language\s+model|llms?|chat\s?bots?|ai\s+(?:model|reviewer|assistant|agent|system))\b|\b(?:attention|dear|hey|hello|to)[,:]?\s+(?:the\s+)?{_READER}\s*[,:—-]|\bautomated\s+(?:reviewer|system|agent|adjudicator|tool)s?\s*[,:—-]",
        ),
        ("encoded_blob", "base64|rot13|decode", r"\b(?:base64|rot13|decode\s+(?:the|this|and)\b)"),
    )
)
