"""Patterns of identifiers that a text can be searched for: all safe-harbour kinds but names, as rules in their order.

Source: the eighteen kinds of 45 CFR 164.514(b)(2). A rule runs only when one of its triggers stands in the lower-cased
text, and most begin with a plain letter or digit, so that a chart without identifiers costs little. What is
left alone on purpose: procedure, diagnosis and drug codes, doses, laboratory values, vital signs, policy and clause
ids, and dates of service (the dates that decide coverage); see docs/decisions/004-verification.md.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from cda.harness.patterns import bounded
from cda.harness.phi_words import NOT_NAMES, STATE_CODES, STATE_NAMES

Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """Finds one kind. The group `v`, when the pattern has one, is the part to take out; `keep` vetoes a match.

    It is tried when one of `words` is a word of the text or one of `marks` stands in it, or when it has neither.
    A cased rule reads the text as it is, the others read it in lower case. The mark "7digits" stands for seven digits
    in a row or nearly so, "5digits" for five in a row.
    """

    kind: str
    words: frozenset[str]
    marks: tuple[str, ...]
    source: str
    keep: Callable[[Match], bool] | None = None
    cased: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled source."""
        return bounded(self.source)


def triggers(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The triggers that `text` lists, "word|word|mark": words are letters only, marks are anything else."""
    listed = text.split("|") if text else []
    return frozenset(filter(str.isalpha, listed)), tuple(mark for mark in listed if not mark.isalpha())


SEVEN_DIGITS = bounded(r"\d(?:[^\w\n]{0,2}\d){6}")
FIVE_DIGITS = bounded(r"\d{5}")

# Label, an optional "number", a separator, then the value; a value holds digits, so that "account of pain" is none.
_NUMBER = r"(?:\s*\(?(?:nos?|num|number|id|ident\w*|code|#)\.?\)?)?"
_AS_NUMBER = r"(?=\s*\(?(?:nos?\b|num|number|id\b|ident\w*|#))"
_SEPARATOR = r"\s*(?:is|was|of|:|=|#|-|–|\s)\s*#?\s*"
_VALUE = r"(?P<v>[a-z0-9](?:[a-z0-9]|[-./](?=[a-z0-9]*\d))*)"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = (
    r"(?P<v>\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}\s*[-/.]\s*\d{1,2}\s*[-/.]\s*(?:\d{4}|\d{2})|\d{8}"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?"
    rf"|(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of)?[\s-]+{_MONTH}(?:[\s,-]+\d{{4}})?|{_MONTH}\s+\d{{4}})(?!\d)"
)
_IS = r"(?:\W{0,4}(?:is|was|on|in|of|date|:)){0,2}\W{0,4}"
_OVER_89 = r"(?P<v>9(?<![\d.\[]9)\d|1(?<![\d.\[]1)[0-2]\d)"
_OLD = (
    r"[\s-]*(?:years?[\s-]*old|yrs?\.?[\s-]*old|years?[\s-]of[\s-]age|y\s?[./]?\s?o\b\.?|yr\.?\s+(?:m|f|male|female)\b)"
)
_PHONE = (
    r"(?P<v>(?:\+?\d{1,3}[-. ]?)?(?:\(\d{3}\)\s?|\d{3}[-. ]?)?\d{3}[-. ]?\d{4}(?:\s*(?:x|ext\.?)\s*\d{1,5})?)(?!\d)"
)
_LONG_TYPES = "street|avenue|boulevard|road|lane|highway|parkway|circle|trail"
_SHORT_TYPES = "drive|court|terrace|place|way|st|ave|blvd|rd|ln|dr|ct|hwy|pkwy|ter|cir|pl|trl"
_PLACE = r"[A-Z][a-z]+(?:[ -][A-Z][a-z]+){0,2}"
_UNIT_AFTER = bounded(
    r"\s*(?:/|%|x\b|\*|per\b|copies|iu\b|units?\b|u\b|cells?\b|mg|mcg|ml|ng|pg|meq|mmol|cfu|k\b|mm|ul\b|steps?\b)", re.I
)
_SAFE_BEFORE = bounded(
    r"(?:clauses?|polic(?:y|ies)|section|bulletin|article|document|version|paragraph|ncd|lcd|ndc|nct|cpt|hcpcs|icd|codes?"
    r"|platelets?|plt|wbc|count|load|vl|bnp|ferritin|glucose|volume|total)[\s:#.=-]*(?:(?:no|number|id|of|is|was)\b)?"
    r"[\s:#.=-]*$",
    re.I,
)
_RUNNING_TEXT = "the a an of in on to per by and with mg units times weeks days"
_RUNNING = frozenset(_RUNNING_TEXT.split())


def _before(found: Match) -> str:
    start = found.start("v") if "v" in found.re.groupindex else found.start()
    return found.string[max(0, start - 40) : start]


def _digits(text: str) -> int:
    return sum(char.isdigit() for char in text)


def _no_vehicle(found: Match) -> bool:
    text = found.group()
    return _digits(text) < 5 or len(text) - _digits(text) < 3


def _no_internet_address(found: Match) -> bool:
    return any(int(part) > 255 for part in found["v"].split(".")) or bool(_SAFE_BEFORE.search(_before(found)))


def _no_identifier(found: Match) -> bool:
    """A bare run of digits that is a date of service, a measured value or the number of a rule."""
    text = found["v"]
    is_day = len(text) == 8 and text[:2] in ("19", "20") and "01" <= text[4:6] <= "12" and "01" <= text[6:] <= "31"
    measured = bool(_UNIT_AFTER.match(found.string, found.end("v")))
    return is_day or measured or text.startswith("NCT") or bool(_SAFE_BEFORE.search(_before(found)))


def _no_street(found: Match) -> bool:
    """ "5 Units Per Dr", "70553 Brain CT" and "walks 2 blocks down the road" are no addresses."""
    words, kind = found["name"].replace(".", "").split(), found["type"]
    if {word.lower() for word in words} & (_RUNNING | NOT_NAMES):
        return True
    capital = all(word[0].isupper() or word[0].isdigit() for word in words)
    shouted = found["name"].isupper() == kind.isupper()
    return kind.lower() in _SHORT_TYPES.split("|") and not (capital and shouted and kind[0].isupper())


def _no_place(found: Match) -> bool:
    place = found["v"].lower()
    return place in STATE_NAMES or place.split()[0] in NOT_NAMES


def _labelled(kind: str, label: str, listed: str, digits: int = 3) -> Rule:
    def keep(found: Match) -> bool:
        inside_word = found.start() > 0 and found.string[found.start() - 1].isalpha()
        return inside_word or _digits(found["v"]) < digits

    return Rule(kind, *triggers(listed), rf"(?:{label}){_NUMBER}{_SEPARATOR}{_VALUE}", keep)


def _plain(
    kind: str, pattern: str, listed: str = "", *, keep: Callable[[Match], bool] | None = None, cased: bool = False
) -> Rule:
    return Rule(kind, *triggers(listed), pattern, keep, cased)


RULES: tuple[Rule, ...] = (
    _plain("EMAIL", r"[\w.+%-]+(?:@|\s?[\[(]at[\])]\s?)[\w-]+(?:\.[\w-]+)+", "@|(at)|[at]"),
    _plain("URL", r"https?://[^\s<>\])]+|www\.[^\s<>\])]+", "http|www."),
    _plain(
        "URL",
        r"\b(?<!@)[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.(?:com|org|net|edu|gov|info|health)\b(?:/[^\s<>\])]*)?",
        ".com|.org|.net|.edu|.gov|.info|.health",
    ),
    _plain("PHOTO", r"[\w()-]+\.(?:jpe?g|png|gif|heic|bmp|tiff?)\b", ".jp|.png|.gif|.heic|.bmp|.tif"),
    _plain(
        "FILE",
        r"[\w()-]+(?:\.[\w()-]+){0,6}\.(?:pdf|docx?|rtf|txt|xml|dcm|hl7|csv|xlsx?|json)\b",
        ".pdf|.doc|.rtf|.txt|.xml|.dcm|.hl7|.csv|.xls|.json",
    ),
    _labelled("PHOTO", rf"photo(?:graph)?s?{_AS_NUMBER}", "photo|photos|photograph|photographs"),
    _labelled(
        "BIOMETRIC",
        r"(?:finger|palm|voice)\s?prints?|(?:retina|retinal|iris|face)\s+scan|biometrics?",
        "print|prints|fingerprint|fingerprints|voiceprint|palmprint|scan|biometric|biometrics",
        digits=2,
    ),
    _plain("SSN", r"(?P<v>\d(?<![\w-]\d)\d{2}([-. –])\d{2}\2\d{4})(?![\w-])", "7digits"),
    _plain("SSN", r"(?P<v>[x*#•]{3}[-. ]?[x*#•]{2}[-. ]?\d{4})(?!\d)", "xxx|xx|**|##|••"),
    _plain(
        "SSN",
        r"(?:\bssn?\b|\bsoc(?:ial)?\.?\s*sec(?:urity)?\b|\bsocial\b)(?:\s*\(?(?:no|num|number|#)?\.?\)?)"
        r"(?:\W{0,3}(?:is|ending(?:\s+in)?|ends(?:\s+in)?|last(?:\s+(?:4|four))?(?:\s+digits)?(?:\s+(?:are|is))?|in))"
        r"{0,3}\W{0,4}(?P<v>\d{3}[-. ]?\d{2}[-. ]?\d{4}|\d{9}|\d{4})(?!\d)",
        "ssn|social|soc.|soc sec|ss#|ss #|ss:",
    ),
    _plain(
        "SSN",
        r"last\s+(?:4|four)(?:\s+digits)?(?:\s+of)?(?:\s+(?:the|her|his|their))?"
        r"\s+(?:ssn|social(?:\s+security)?(?:\s+number)?)\W{0,3}(?:is|are)?\W{0,3}(?P<v>\d{4})(?!\d)",
        "last 4|last four",
    ),
    _plain("DEVICE", r"\(01\)\s?\d{14}(?:\s?\(\d{2}\)[\w/-]+)*", "(01)"),
    _plain("DEVICE", r"[0-9a-f](?<!\w.)[0-9a-f][:-](?:[0-9a-f]{2}[:-]){4}[0-9a-f]{2}\b", ":|-"),
    _plain("IP", r"(?P<v>\d(?<![\d.]\d)\d{0,2}(?:\.\d{1,3}){3})(?![\d.]*\d)", ".", keep=_no_internet_address),
    _plain(
        "IP",
        r"[0-9a-f](?<![\w:].)(?<=(?=[0-9a-f:]*(?:::|[a-f])).)[0-9a-f]{0,3}:{1,2}(?:[0-9a-f]{1,4}:{1,2}){1,6}[0-9a-f]{1,4}(?![\w:])",
        ":",
    ),
    _plain(
        "DOB",
        rf"(?:d\.?\s?o\.?\s?b\b\.?|birth[\s-]?(?:date|day)\b|date\s+of\s+birth\b|born\b|(?<![\w.])b\.(?=\s*\d)){_IS}{_DATE}",
        "dob|d.o|d. o|birth|birthdate|birthday|born|b.",
    ),
    _plain(
        "DATE",
        rf"(?:admitted|admission|admit|discharged?|deceased|died|death)\b{_IS}{_DATE}",
        "admitted|admission|admit|discharge|discharged|deceased|died|death",
    ),
    _plain("AGE", rf"{_OVER_89}{_OLD}", "old|age|yo|y/o|y.o|y o|yr"),
    _plain(
        "AGE",
        r"age[ds]?\b(?<!\wage)(?<!\[age)(?:\s+(?:is|of))?\s*[:=]?\s*(?P<v>9\d|1[0-2]\d)\b"
        r"(?!\s*(?:days?|weeks?|wks?|months?|mos?\b|%|mg|kg|lb))",
        "age",
    ),
    _plain("AGE", rf"{_OVER_89}(?<=[.;\n:]\s..)\s?[mf]\b(?=,|\s+(?:with|w/|who|presents|h/o|hx|pt|here))", "9"),
    _plain("AGE", r"^(?P<v>9\d|1[0-2]\d)\s?[mf]\b(?=,|\s+(?:with|w/|who|presents|h/o|hx|pt|here))", "9|1"),
    _plain(
        "AGE",
        r"(?P<v>ninety(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine))?|(?:a|one)\s+hundred(?:\s+and)?(?:\s+\w+)?)"
        r"[\s-]+years?[\s-]+old",
        "ninety|hundred",
    ),
    _labelled(
        "MRN",
        rf"m\.?r\.?n\.?|mr\s?(?=#)|med(?:ical)?\.?\s+rec(?:ord)?|(?:chart|unit|patient|pt|hospital|record){_AS_NUMBER}",
        "mrn|mr|m.r|med|medical|chart|unit|patient|patientid|pt|hospital|record",
    ),
    _labelled(
        "PLAN_ID",
        r"(?:member|subscriber|beneficiary|insured|policy\s?holder|enrollee|group|medicaid|medicare|insurance|health\s+plan"
        rf"|plan|policy|coverage)(?:'s)?(?:\s+(?:policy|plan|member))?{_AS_NUMBER}|(?:member|subscriber|insured|group)(?=\s*:\s*[a-z]*\d)"
        r"|mbi|hicn?",
        "member|memberid|subscriber|beneficiary|insured|insurance|policy|policyholder|enrollee|group|medicaid|medicare|plan"
        "|mbi|hic|hicn|coverage",
    ),
    _plain(
        "PLAN_ID",  # the Medicare beneficiary identifier: CMS's published positions, letters without S L O I B Z
        r"[1-9](?<!\w.)[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y\d]\d-?[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y\d]\d-?[AC-HJKMNP-RT-Y]{2}\d{2}\b",
        cased=True,
    ),
    _labelled(
        "ACCOUNT",
        rf"account|acct\.?|(?:encounter|visit|invoice|claim|case|auth(?:orization)?|reference|ref|tracking|confirmation)\.?"
        rf"{_AS_NUMBER}|csn|iban",
        "account|acct|encounter|visit|invoice|claim|case|auth|authorization|reference|ref|csn|tracking|confirmation|iban",
    ),
    _plain(
        "VEHICLE",
        r"plates?(?:\s*(?:no|number|#)\.?)?\s*(?:is|:|#)?\s*(?P<v>(?=[a-z -]*\d)[a-z0-9]{2,4}[- ]?[a-z0-9]{2,4})\b",
        "license plate|licence plate|number plate|plate no|plate #|plate:",
    ),
    _labelled(
        "LICENSE",
        r"lic(?:en[cs]e|\.)?(?!\s*plate)|dea|passport|certificate|d\.?l\.?(?=\s*#)",
        "lic|license|licence|dea|passport|certificate|dl|d.l",
    ),
    _plain("VEHICLE", r"\b[A-HJ-NPR-Z0-9]{17}\b", "5digits", keep=_no_vehicle, cased=True),
    _labelled(
        "DEVICE",
        r"serial(?=\s*\(?(?:no|num|number|#|:))|s/n|sn(?=\s*[:#])|udi|imei"
        r"|(?:device|pump|sensor|receiver|transmitter|implant|machine|pacemaker)(?=\s*(?:id\b|no\b|number|serial|#|s/n))"
        r"(?:\s*serial)?",
        "serial|s/n|sn|udi|imei|device|pump|sensor|receiver|transmitter|implant|machine|pacemaker",
    ),
    _plain(
        "FAX",
        rf"(?:fax|facsimile)\b(?:\s*(?:no|num|number|#))?\.?\W{{0,3}}(?:(?:is|at|to)\s+)?{_PHONE}",
        "fax|facsimile",
    ),
    _plain(
        "PHONE",
        r"(?:phone|telephone|tel|cell|mobile|call(?:back)?|contact|ph|home|work|pager?|text)\b(?:\s*(?:no|num|number|#|phone))?"
        rf"\.?\W{{0,3}}(?:(?:is|at|her|him|them|us|me)\s+){{0,2}}{_PHONE}",
        "7digits",
    ),
    _plain(
        "PHONE",
        r"\((?<![\w.-]\()\d{3}\)\s?\d{3}[-.–]\d{4}(?![\w-])(?:\s*(?:x|ext\.?)\s*\d{1,5})?"
        r"|\d(?<![\w.-]\d)(?:[-. ]?\(?\d{3}\)?[-.– ]?|\d{2}[-.–])\d{3}[-.–]\d{4}(?![\w-])(?:\s*(?:x|ext\.?)\s*\d{1,5})?"
        r"|[2-9](?<![\w.-].)\d\d [2-9]\d\d[ -]\d{4}(?!\w)"
        r"|\+(?<!\w\+)\d{1,3}[ .-]?\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,4}(?!\w)",
        "7digits",
    ),
    _plain(
        "LOCATION",
        r"\d(?<![\w.-]\d)\d{0,5}[A-Za-z]?\s+"
        r"(?P<name>(?:(?:[NSEW]|North|South|East|West)\.?\s+)?(?:[A-Za-z][\w'’.-]*\s+|\d{1,3}(?:st|nd|rd|th)\s+){1,3}?)"
        rf"(?P<type>(?i:{_LONG_TYPES}|{_SHORT_TYPES}))\b\.?(?:,?\s*(?i:apt|apartment|unit|suite|ste|#)\.?\s*#?\w{{1,6}})?"
        rf"(?:,?\s+{_PLACE},?\s+(?:{STATE_CODES})\b\.?)?(?:,?\s+\d{{5}}(?:-\d{{4}})?)?",
        keep=_no_street,
        cased=True,
    ),
    _plain("LOCATION", r"p\.?\s?o\.?\s+box\s+\d+", "box"),
    _plain("LOCATION", rf"{_PLACE},\s*(?:{STATE_CODES})\s+\d{{5}}(?:-\d{{4}})?\b", "5digits", cased=True),
    _plain("LOCATION", r"(?:zip|postal)(?:\s*code)?\s*(?:is|:|=|#)?\s*(?P<v>\d{5}(?:-\d{4})?)\b", "zip|zipcode|postal"),
    _plain(
        "LOCATION",
        r"\b(?i:address|city|town|county|village|street|neighbou?rhood|residence)\s*[:=]\s*"
        r"(?P<v>\d*\s?[A-Z][\w'’.-]*(?:,?[ ][A-Z0-9][\w'’.-]*){0,6})",
        "address|city|town|county|village|street|neighborhood|neighbourhood|residence",
        cased=True,
    ),
    _plain(
        "LOCATION",
        rf"\b(?i:lives|living|resides|residing|resident|moved|native|born)\s+(?i:in|of|at|to|from|near)\s+(?P<v>{_PLACE})",
        "lives|living|resides|residing|resident|moved|native|born",
        keep=_no_place,
        cased=True,
    ),
    _plain(
        "LOCATION",
        r"[A-Z][a-z]+(?:\s[A-Z][a-z]+)?\s+(?:County|Parish|Township)\b",
        "county|parish|township",
        cased=True,
    ),
    _labelled("OTHER_ID", r"npi|tax\s+id|tin|ein", "npi|tax|tin|ein", digits=7),
    _labelled(
        "OTHER_ID",
        rf"(?:accession|specimen|study|research|subject|trial|order|requisition|employee|student|sample|ticket){_AS_NUMBER}",
        "accession|specimen|study|research|subject|trial|order|requisition|employee|student|sample|ticket",
    ),
    _plain("SSN", r"(?P<v>\d(?<![\w.,/-]\d)\d{8})(?![\w-]|[.,/]\d)", "7digits", keep=_no_identifier),
    _plain("OTHER_ID", r"(?P<v>\d(?<![\w.,/-]\d)\d{6,15})(?![\w-]|[.,/]\d)", "7digits", keep=_no_identifier),
    _plain(
        "OTHER_ID",
        r"(?P<v>[A-Z](?<![\w.,/-].)[A-Z]{0,2}-?\d{6,16})(?![\w-])",
        "5digits",
        keep=_no_identifier,
        cased=True,
    ),
)
