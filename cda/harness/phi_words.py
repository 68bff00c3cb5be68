"""Word lists of the redactor: common United States given names that are no other word, the words of charts that stand
capitalised where a name could, and the states (a state may stay in a text, what lies below it may not)."""

from pathlib import Path

_DATA = Path(__file__).parent / "data"


def _words(name: str) -> frozenset[str]:
    return frozenset((_DATA / f"{name}.txt").read_text(encoding="utf-8").split())


GIVEN_NAMES = _words("given_names")
NOT_NAMES = _words("not_names")
# Eponyms, colours and months that are surnames once a title or a label stands before them ("Mr. White").
_SURNAMES_TEXT = (
    "black white wilson bell baker parkinson paget addison cushing hodgkin lynch marfan graves young long good day may "
    "march down guardian tandem philips abbott old first english"
)
SURNAMES_TOO = frozenset(_SURNAMES_TEXT.split())
STATE_CODES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|DC|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR"
    "|PA|PR|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY"
)
_STATES_TEXT = (
    "alabama|alaska|arizona|arkansas|california|colorado|connecticut|delaware|florida|georgia|hawaii|idaho|"
    "illinois|indiana|iowa|kansas|kentucky|louisiana|maine|maryland|massachusetts|michigan|minnesota|"
    "mississippi|missouri|montana|nebraska|nevada|new hampshire|new jersey|new mexico|new york|north carolina|"
    "north dakota|ohio|oklahoma|oregon|pennsylvania|puerto rico|rhode island|south carolina|south dakota|"
    "tennessee|texas|utah|vermont|virginia|washington|west virginia|wisconsin|wyoming"
)
STATE_NAMES = frozenset(_STATES_TEXT.split("|"))
