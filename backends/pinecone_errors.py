"""The client library's errors, as ours. Nothing that the service said is repeated: it may repeat the request."""

from pinecone.errors import exceptions as sdk

from backends.errors import AccessRefused, BackendError, BackendUnavailable, IndexAbsent

PASSING = (
    sdk.RateLimitError,
    sdk.ServiceError,
    sdk.PineconeConnectionError,
    sdk.PineconeTimeoutError,
    sdk.ResponseParsingError,
)


def translated(what: str, error: Exception) -> Exception:
    """Our error for one of the library's; `what` names what was asked for. Told apart by status, since not every
    release has a class for each."""
    if isinstance(error, PASSING):
        return unavailable(what, error)
    if isinstance(error, sdk.ApiError):
        return _refused(what, error.status_code)
    if isinstance(error, sdk.PineconeError):
        return BackendError(f"the Pinecone library refuses to {what} ({type(error).__name__})")
    return error


def _refused(what: str, status: int) -> BackendError:
    match status:
        case 401:
            return AccessRefused("Pinecone does not accept the key in PINECONE_API_KEY; set one of this project")
        case 402 | 403:
            why = "a quota, the plan or deletion protection"
            return AccessRefused(f"Pinecone forbids to {what} (HTTP {status}): {why}")
        case 404:
            return IndexAbsent(f"Pinecone knows no such thing when asked to {what}; build the index first")
        case _:
            return BackendError(f"Pinecone refuses to {what} (HTTP {status}); this is a fault of the program")


def unavailable(what: str, last: BaseException | None) -> BackendUnavailable:
    """No answer before the deadline; `last` is how the latest attempt ended, if it did."""
    why = f" (HTTP {last.status_code})" if isinstance(last, sdk.ApiError) else ""
    return BackendUnavailable(f"Pinecone did not {what} in time{why}; nothing is known to be wrong with it, try again")
