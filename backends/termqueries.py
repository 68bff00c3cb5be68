"""Filters compiled to tantivy queries, so that the lexical leg filters inside its search as the vectors do.

TEXT and TEXTS fields are indexed raw, DAY fields as unsigned integers; `add_fields` and `add_values` are the two ends
of that agreement.
"""

from typing import Any

import tantivy

from backends.errors import InvalidFilter
from backends.filters import All, AnyOf, Contains, Eq, Everything, Ge, In, Le, Nothing, Where, check_fields
from backends.schema import Field, Kind, Meta, Schema


def add_fields(builder: tantivy.SchemaBuilder, schema: Schema) -> None:
    """Declare every field of the collection in a tantivy schema."""
    for field in schema.fields:
        if field.kind is Kind.DAY:
            builder.add_unsigned_field(field.name, indexed=True, fast=True)
        else:
            builder.add_text_field(field.name, tokenizer_name="raw", index_option="basic")


def add_values(document: tantivy.Document, schema: Schema, meta: Meta) -> None:
    """Write a checked record's fields into a tantivy document."""
    for field in schema.fields:
        match meta[field.name]:
            case int(day):
                document.add_unsigned(field.name, day)
            case str(text):
                document.add_text(field.name, text)
            case texts:
                for text in texts:
                    document.add_text(field.name, text)


def compile_query(where: Where, schema: Schema, declared: tantivy.Schema) -> tantivy.Query:
    """The filter as a query of score 0. InvalidFilter for a field that is not of the collection."""
    check_fields(where, schema)
    return tantivy.Query.const_score_query(_query(where, declared), 0.0)


def _query(where: Where, declared: tantivy.Schema) -> tantivy.Query:  # noqa: PLR0911 - one return a node
    query = tantivy.Query
    match where:
        case Everything():
            return query.all_query()
        case Nothing() | In(_, ()):
            return query.empty_query()
        case All(parts):
            return query.boolean_query([(tantivy.Occur.Must, _query(part, declared)) for part in parts])
        case AnyOf(parts):
            return query.boolean_query([(tantivy.Occur.Should, _query(part, declared)) for part in parts])
        case Eq(field, value) | Contains(field, value):
            return _term(declared, field, value)
        case In(field, values):
            return query.boolean_query([(tantivy.Occur.Should, _term(declared, field, value)) for value in values])
        case Le(field, bound):
            return query.range_query(declared, field.name, tantivy.FieldType.Unsigned, upper_bound=bound)
        case Ge(field, bound):
            return query.range_query(declared, field.name, tantivy.FieldType.Unsigned, lower_bound=bound)
    raise InvalidFilter(f"not a filter: {type(where).__name__}")


def _term(declared: tantivy.Schema, field: Field, value: Any) -> tantivy.Query:
    return tantivy.Query.term_query(declared, field.name, value, "basic")
