"""From outside words to a `CoverageRequest`: a malformed one is a halt that names its field and repeats nothing."""

import re
from collections.abc import Mapping

from pydantic import ValidationError

from cda.contracts.decision import CoverageRequest
from cda.errors import UsageError

_KEY = re.compile(r"[a-z][a-z_]{0,39}\Z")
_RULES = {
    "string_type": "is a text",
    "string_too_long": "is too long",
    "tuple_type": "is a list",
    "dict_type": "is an object",
    "float_type": "is a number",
    "float_parsing": "is a number",
    "extra_forbidden": "is no field of a request",
}


class MalformedRequest(UsageError):
    """A request that has not the shape of one. The text is "field: rule", without the value."""


def parse_request(raw: object) -> CoverageRequest:
    """Return the request that `raw` (decoded JSON) holds. Raises MalformedRequest for the first field at fault."""
    if isinstance(raw, CoverageRequest):
        return raw
    if not isinstance(raw, Mapping):
        raise MalformedRequest("request: is an object")
    if strange := [key for key in raw if not isinstance(key, str)]:
        raise MalformedRequest(f"request: {len(strange)} field names are no text")
    try:
        return CoverageRequest.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    field = str(first["loc"][0]) if first["loc"] else "request"
    # A name that is no field may hold anything; one in the shape of a field name is safe to show.
    label = field if field in CoverageRequest.model_fields or _KEY.match(field) else "a field"
    within = ", an entry" if len(first["loc"]) > 1 else ""
    raise MalformedRequest(f"{label}{within}: {_RULES.get(first['type'], 'is not well formed')}")
