"""Errors of the vector backends."""


class BackendError(Exception):
    """A backend refused or could not do its work; the message says which target and what to do."""


class InvalidFilter(BackendError):
    """A filter names an unknown field, has a value of the wrong type, or an operator that does not exist."""


class InvalidRecord(BackendError):
    """A record lacks a field of its collection's schema, has one too many, or one of the wrong type."""


class IndexMismatch(BackendError):
    """An index was built with another embedder, schema or corpus than the one that queries it."""


class IndexAbsent(BackendError):
    """There is no index under this target."""


class BackendUnavailable(BackendError):
    """The service did not answer in time, or not with an answer; nothing is known to be wrong with the request."""


class AccessRefused(BackendError):
    """The service does not accept the key, or the account may not do this."""
