"""What the service refuses, each rule with its source, and what its filters mean.

Where a source says "switch", the live service is undocumented or has changed, and both meanings can be chosen.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

LIMITS = "https://docs.pinecone.io/reference/api/database-limits"
FILTERS = "https://docs.pinecone.io/guides/search/filter-by-metadata"
KNOWN = "https://docs.pinecone.io/reference/api/known-limitations"
SPARSE = "https://docs.pinecone.io/guides/index-data/indexing-overview"

MAX_REQUEST_BYTES = 2_000_000
MAX_VECTORS = 1_000
MAX_METADATA_BYTES = 40_960
MAX_ID = 512
MAX_TOP_K = 10_000
MAX_IN = 10_000
MAX_SPARSE = 1_000  # later 2,048
MAX_DELETE_IDS = 1_000
MAX_LIST_PAGE = 100


class Refused(Exception):
    """An answer of 4xx: status, the service's code, its words, and where the rule comes from."""

    def __init__(self, status: int, code: str, message: str, source: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.source = status, code, message, source


def _bad(message: str, source: str) -> Refused:
    return Refused(400, "INVALID_ARGUMENT", message, source)


@dataclass(frozen=True)
class Semantics:
    """Switches. `ne_matches_absent`: $ne and $nin keep a record without the key (before 2024) or drop it (since:
    deepset-ai/haystack-core-integrations issue 590). `refuse_null`: a null in metadata is a 400 (run-llama/llama_index
    PR 11501) or its key is stripped (pinecone 10.2.0, vector_factory)."""

    ne_matches_absent: bool = False
    refuse_null: bool = False


def check_vector(vector: Any, dimension: int | None, semantics: Semantics) -> dict[str, Any]:
    """The vector as it is kept."""
    name, values, metadata = vector.get("id"), vector.get("values"), vector.get("metadata") or {}
    check_id(name)
    if dimension is None:
        if values:
            raise _bad("a sparse index takes no dense values", SPARSE)
        sparse = check_sparse(vector.get("sparseValues"))
        return {"id": name, "sparseValues": sparse, "metadata": check_metadata(metadata, semantics)}
    if vector.get("sparseValues"):
        raise _bad("Index configuration does not support sparse values", KNOWN)
    check_values(values, dimension)
    row = np.asarray(values, dtype=np.float32)  # as the service keeps it
    return {"id": name, "values": row, "metadata": check_metadata(metadata, semantics)}


def check_sparse(sparse: Any) -> dict[str, Any]:
    indices, values = (sparse or {}).get("indices"), (sparse or {}).get("values")
    if not isinstance(indices, list) or not isinstance(values, list) or len(indices) != len(values) or not indices:
        raise _bad("Sparse vector must contain at least one value, and as many indices", SPARSE)
    if len(indices) > MAX_SPARSE:
        raise _bad(f"Sparse vector size {len(indices)} exceeds the maximum of {MAX_SPARSE}", LIMITS)
    if not all(type(index) is int and 0 <= index < 2**32 for index in indices) or len(set(indices)) != len(indices):
        raise _bad("sparse indices are different unsigned 32-bit integers", SPARSE)
    if not all(type(value) in (int, float) and math.isfinite(value) and value != 0 for value in values):
        raise _bad("sparse values are finite numbers and not zero", SPARSE)
    return {"indices": indices, "values": values}


def check_id(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise _bad("a vector id must be a non-empty string", LIMITS)
    if not name.isascii():
        raise _bad("Vector ID must be ASCII", "Kav-K/GPTDiscord issue 84")
    if len(name) > MAX_ID or "\x00" in name:
        raise _bad(f"vector id of {len(name)} characters, {MAX_ID} are allowed", LIMITS)


def check_values(values: Any, dimension: int) -> None:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise _bad("values must be a list of numbers", LIMITS)
    if len(values) != dimension:
        raise _bad(
            f"Vector dimension {len(values)} does not match the dimension of the index {dimension}",
            "https://docs.pinecone.io/reference/api/errors",
        )
    if not all(math.isfinite(value) for value in values) or not any(values):
        raise _bad("Dense vectors must contain at least one non-zero value and only finite ones", KNOWN)


def check_metadata(metadata: Any, semantics: Semantics, size: Callable[[Any], int] | None = None) -> dict[str, Any]:
    if not isinstance(metadata, dict):
        raise _bad("metadata must be an object", FILTERS)
    if size is not None and size(metadata) > MAX_METADATA_BYTES:
        raise _bad(
            f"Metadata size is {size(metadata)} bytes, over the limit of {MAX_METADATA_BYTES} bytes per vector",
            "mayooear/ai-pdf-chatbot-langchain issue 383",
        )
    kept: dict[str, Any] = {}
    for key, value in metadata.items():
        if value is None:
            if semantics.refuse_null:
                raise _bad(
                    f"Metadata value must be a string, number, boolean or list of strings, got 'null' for "
                    f"field '{key}'",
                    "run-llama/llama_index PR 11501",
                )
            continue
        if isinstance(value, list):
            if not all(isinstance(item, str) for item in value):
                raise _bad(f"a list in metadata holds strings only, field '{key}'", FILTERS)
        elif not isinstance(value, str | bool | int | float):
            raise _bad(f"metadata is flat, field '{key}'", FILTERS)
        kept[key] = float(value) if type(value) in (int, float) else value
    return kept


_OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists")


def check_filter(where: Any) -> None:
    """Refuse what the service does not know."""
    if not isinstance(where, dict) or not where:
        raise _bad("a filter is a non-empty object", FILTERS)
    for key, condition in where.items():
        if key in ("$and", "$or"):
            if not isinstance(condition, list) or not condition:
                raise _bad(f"{key} takes a non-empty list", FILTERS)
            for part in condition:
                check_filter(part)
        elif key.startswith("$"):
            raise _bad(f"unknown operator {key}", FILTERS)
        elif isinstance(condition, dict):
            for operator, operand in condition.items():
                _check_condition(operator, operand)
        elif not isinstance(condition, str | bool | int | float):
            raise _bad("an implicit equality takes a string, number or boolean", FILTERS)


def _check_condition(operator: str, operand: Any) -> None:
    if operator not in _OPERATORS:
        raise _bad(f"unknown operator {operator}", FILTERS)
    if operator in ("$gt", "$gte", "$lt", "$lte") and type(operand) not in (int, float):
        raise _bad(f"the {operator} operator must be followed by a number", "run-llama/llama_index issue 16871")
    if operator in ("$in", "$nin"):
        if not isinstance(operand, list) or not operand:
            raise _bad(f"the {operator} operator must be followed by a non-empty list", FILTERS)
        if len(operand) > MAX_IN:
            raise _bad(f"the {operator} operator takes {MAX_IN} values", LIMITS)
    if operator in ("$eq", "$ne") and not isinstance(operand, str | bool | int | float):
        raise _bad(f"the {operator} operator takes a string, number or boolean", FILTERS)


def admits(where: Mapping[str, Any], metadata: Mapping[str, Any], semantics: Semantics) -> bool:
    """Whether a checked filter admits these fields."""
    for key, condition in where.items():
        if key == "$and":
            held = all(admits(part, metadata, semantics) for part in condition)
        elif key == "$or":
            held = any(admits(part, metadata, semantics) for part in condition)
        else:
            conditions = condition if isinstance(condition, dict) else {"$eq": condition}
            held = all(_holds(operator, operand, key, metadata, semantics) for operator, operand in conditions.items())
        if not held:
            return False
    return True


def _holds(operator: str, operand: Any, key: str, metadata: Mapping[str, Any], semantics: Semantics) -> bool:
    if operator == "$exists":
        return (key in metadata) == operand
    if key not in metadata:
        return operator in ("$ne", "$nin") and semantics.ne_matches_absent
    held = metadata[key]
    elements = held if isinstance(held, list) else [held]
    wanted = operand if isinstance(operand, list) else [operand]
    if operator in ("$eq", "$in"):
        return any(_same(element, one) for element in elements for one in wanted)
    if operator in ("$ne", "$nin"):
        return not any(_same(element, one) for element in elements for one in wanted)
    if type(held) is not float:
        return False
    compare = {"$gt": held > operand, "$gte": held >= operand, "$lt": held < operand, "$lte": held <= operand}
    return compare[operator]


def _same(held: Any, wanted: Any) -> bool:
    if isinstance(held, bool) or isinstance(wanted, bool):
        return held is wanted
    return bool(held == wanted)
