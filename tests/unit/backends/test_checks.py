"""What every backend refuses in the same words."""

from dataclasses import replace

import pytest
from conformance.backend import EVERY_OP, SPEC, record

from backends.base import ALL_OPS, Capabilities, FilterOp
from backends.checks import checked_records, require_filter
from backends.errors import InvalidFilter, InvalidRecord
from backends.filters import All, AnyOf, Everything, Where

FULL = Capabilities("narrow", exact=True, max_dim=9, max_k=9, id_max_length=9, server_side_filter=True)


@pytest.mark.promise("backends.declared")
@pytest.mark.parametrize("where", EVERY_OP, ids=lambda where: type(where).__name__)
def test_a_filter_that_needs_what_a_backend_lacks_is_refused_wherever_it_stands(where: Where) -> None:
    names: dict[str, FilterOp] = {"AnyOf": "any"}
    op = names.get(type(where).__name__, type(where).__name__.lower())  # type: ignore[arg-type]
    lacking = replace(FULL, filter_ops=ALL_OPS - {op})
    require_filter(FULL, where)
    for asked in (where, All((Everything(), where)), AnyOf((where, Everything()))):
        with pytest.raises(InvalidFilter, match="the narrow backend cannot filter by"):
            require_filter(lacking, asked)


@pytest.mark.promise("backends.schema")
def test_a_record_without_a_content_hash_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="'a' has no content hash"):
        list(checked_records(SPEC, [replace(record("a"), content_hash="")]))
