"""A double of Pinecone on loopback, for the real client library: control plane, vectors and hosted models.

One port is the control plane and inference; each index has a port of its own, told by describing it. Faults and delays
are set on the server object, and everything that came in is kept as raw bytes. By hand:

    PYTHONPATH=tests python -m doubles.pinecone_server --port 5080 --key anything
"""

import argparse
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
from doubles import pinecone_models as models
from doubles import pinecone_rules as rules
from doubles.pinecone_rules import Refused
from doubles.pinecone_store import IndexState, Store

Kind = Literal["status", "drop", "lose_answer", "cut", "page", "stall"]


@dataclass(frozen=True)
class Seen:
    """One request as it came in; `status` is 0 when no answer was sent. Times are of the monotonic clock."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int
    came: float
    answered: float


@dataclass
class Fault:
    """What happens to the next `times` requests whose path contains `path`.

    status: an answer of `status` and nothing done. drop: the connection closes, nothing done. lose_answer: done, then
    the connection closes. cut: done, and half of the answer is sent. page: an HTML page of a gateway with `status`.
    stall: nothing for `seconds`.
    """

    kind: Kind
    path: str = ""
    times: int = 1
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class PineconeDouble:
    """The service. A context manager; `host` is what CDA_PINECONE_HOST is set to."""

    def __init__(self, *, key: str = "the-key", port: int = 0) -> None:
        self.key = key
        self.store = Store()
        self.latency_s = 0.0
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.describes_until_ready = 0
        self._servers: list[ThreadingHTTPServer] = []
        self.host = self._serve(None, port)

    def __enter__(self) -> "PineconeDouble":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def asked(self, path: str) -> list[Seen]:
        """The requests whose path contains this."""
        return [one for one in self.seen if path in one.path]

    def round_trips(self, since: int = 0) -> int:
        """How many waits after one another the requests were: those that were under way together are one."""
        trips, until = 0, float("-inf")
        for one in sorted(self.seen[since:], key=lambda seen: seen.came):
            trips += one.came > until
            until = max(until, one.answered)
        return trips

    def serve_index(self, name: str) -> str:
        return self._serve(name, 0)

    def take_fault(self, path: str) -> Fault | None:
        with self.store.lock:
            for fault in self.faults:
                if fault.path in path and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def _serve(self, index: str | None, port: int) -> str:
        double = self

        class Handler(_Handler):
            service = double
            index_name = index

        server = _Server(("127.0.0.1", port), Handler)
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: PineconeDouble
    index_name: str | None
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Kept in `seen` instead."""

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_GET  # noqa: N815 - the base class names them

    def _answer(self) -> None:
        service = self.service
        self._came = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(service.latency_s)
        fault = service.take_fault(self.path)
        if fault is not None and fault.kind == "stall":
            time.sleep(fault.seconds)
        if fault is not None and fault.kind in ("status", "page", "drop"):
            self._note(body, 0 if fault.kind == "drop" else fault.status)
            self._fail(fault)
            return
        try:
            self._authorise()
            status, answer, headers = self._route(body)
        except Refused as refused:
            status, answer, headers = refused.status, self._refusal(refused), {}
        lost = fault is not None and fault.kind == "lose_answer"
        self._note(body, 0 if lost else status)
        if lost:
            self.close_connection = True
            return
        self._send(status, json.dumps(answer).encode(), headers, cut=fault is not None and fault.kind == "cut")

    def _note(self, body: bytes, status: int) -> None:
        with self.service.store.lock:
            seen = Seen(self.command, self.path, dict(self.headers), body, status, self._came, time.monotonic())
            self.service.seen.append(seen)

    def _fail(self, fault: Fault) -> None:
        if fault.kind == "drop":
            self.close_connection = True
            return
        page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
        words = json.dumps({"code": 8 if fault.status == 429 else 14, "message": "later", "details": []}).encode()
        self._send(fault.status, page if fault.kind == "page" else words, fault.headers)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str], *, cut: bool = False) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            self.wfile.flush()
        if cut:
            self.close_connection = True

    def _refusal(self, refused: Refused) -> dict[str, Any]:
        if self.index_name is None:
            return {"error": {"code": refused.code, "message": refused.message}, "status": refused.status}
        return {"code": 3, "message": refused.message, "details": []}

    def _authorise(self) -> None:
        if self.headers.get("Api-Key") != self.service.key:
            raise Refused(401, "UNAUTHENTICATED", "Invalid API Key", "https://docs.pinecone.io/reference/api/errors")
        if not self.headers.get("X-Pinecone-Api-Version"):
            raise Refused(
                400, "INVALID_ARGUMENT", "no API version", "https://docs.pinecone.io/reference/api/versioning"
            )

    def _route(self, body: bytes) -> tuple[int, Any, dict[str, str]]:
        url = urlsplit(self.path)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        sent = json.loads(body) if body else {}
        if self.index_name is None:
            with self.service.store.lock:
                return Control(self.service).route(self.command, parts, sent)
        if len(body) > rules.MAX_REQUEST_BYTES:
            raise Refused(413, "PAYLOAD_TOO_LARGE", "Request size exceeds 2MB", rules.LIMITS)
        with self.service.store.lock:
            state = self.service.store.indexes.get(self.index_name)
            if state is None:
                raise Refused(404, "NOT_FOUND", "Index not found", "https://docs.pinecone.io/reference/api/errors")
            return Data(self.service.store, state).route(self.command, parts, sent, parse_qs(url.query))


class Control:
    """Indexes and hosted models."""

    def __init__(self, service: PineconeDouble) -> None:
        self.service, self.indexes = service, service.store.indexes

    def route(self, method: str, parts: list[str], sent: Any) -> tuple[int, Any, dict[str, str]]:
        match method, parts:
            case "POST", ["indexes"]:
                return 201, self.create(sent), {}
            case "GET", ["indexes"]:
                return 200, {"indexes": [state.model for state in self.indexes.values()]}, {}
            case "GET", ["indexes", name]:
                return 200, self.describe(name), {}
            case "DELETE", ["indexes", name]:
                if self.find(name).model["deletion_protection"] == "enabled":
                    source = "https://docs.pinecone.io/guides/manage-data/manage-indexes"
                    raise Refused(403, "FORBIDDEN", "Deletion protection is enabled for this index", source)
                del self.indexes[name]
                return 202, {}, {}
            case "POST", ["embed"]:
                return 200, models.embed(sent), {}
            case "POST", ["rerank"]:
                return 200, models.rerank(sent), {}
        raise Refused(404, "NOT_FOUND", "no such path", "the client library's own paths")

    def find(self, name: str) -> IndexState:
        if name not in self.indexes:
            source = "https://docs.pinecone.io/reference/api/errors"
            raise Refused(404, "NOT_FOUND", f"Resource {name} not found", source)
        return self.indexes[name]

    def describe(self, name: str) -> dict[str, Any]:
        state = self.find(name)
        ready = state.describes_until_ready <= 0
        state.describes_until_ready -= 1
        return state.model | {"status": {"ready": ready, "state": "Ready" if ready else "Initializing"}}

    def create(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Both bodies: fields (API 2026-07) and dimension with spec (API 2025-10)."""
        name = sent["name"]
        if name in self.indexes:
            source = "https://docs.pinecone.io/reference/api/errors"
            raise Refused(409, "ALREADY_EXISTS", f"Resource {name} already exists", source)
        sparse, dimension = self._vectors_of(sent)
        metric = "dotproduct" if sparse else "cosine"
        deployment = sent.get("deployment") or {"deployment_type": "managed", **sent["spec"]["serverless"]}
        if deployment.get("deployment_type") != "managed":
            raise Refused(400, "INVALID_ARGUMENT", "pods cannot be created", "pinecone 10.2.0, indexes.create")
        model = {
            "name": name,
            "host": self.service.serve_index(name),
            "dimension": dimension,
            "metric": metric,
            "vector_type": "sparse" if sparse else "dense",
            "status": {"ready": False, "state": "Initializing"},
            "schema": {"fields": _SPARSE_FIELDS if sparse else {"_values": _dense_field(dimension, metric)}},
            "deployment": deployment,
            "spec": {"serverless": {"cloud": deployment["cloud"], "region": deployment["region"]}},
            "deletion_protection": sent.get("deletion_protection") or "disabled",
            "tags": sent.get("tags"),
        }
        state = IndexState(model, dimension, describes_until_ready=self.service.describes_until_ready)
        self.indexes[name] = state
        return model

    @staticmethod
    def _vectors_of(sent: dict[str, Any]) -> tuple[bool, int | None]:
        """(whether they are sparse, dimension)."""
        fields = sent.get("schema", {}).get("fields", {})
        if "_sparse_values" in fields or sent.get("vector_type") == "sparse":
            held = fields.get("_sparse_values") or sent
            if held.get("dimension") is not None or held.get("metric", "dotproduct") != "dotproduct":
                raise Refused(400, "INVALID_ARGUMENT", "sparse: dotproduct, and no dimension", rules.SPARSE)
            return True, None
        dense = fields.get("_values") or {"dimension": sent.get("dimension"), "metric": sent.get("metric", "cosine")}
        dimension, metric = dense["dimension"], dense.get("metric", "cosine")
        if not isinstance(dimension, int) or not 1 <= dimension <= 20_000:
            raise Refused(400, "INVALID_ARGUMENT", "dimension must be in 1..20000", rules.LIMITS)
        if metric != "cosine":
            raise Refused(400, "INVALID_ARGUMENT", "this double keeps cosine indexes", "this double")
        return False, dimension


_SPARSE_FIELDS = {"_sparse_values": {"type": "sparse_vector"}}  # as pinecone 10.2 sends it


def _dense_field(dimension: int | None, metric: str) -> dict[str, Any]:
    return {"type": "dense_vector", "dimension": dimension, "metric": metric}


class Data:
    """The vectors of one index."""

    def __init__(self, store: Store, index: IndexState) -> None:
        self.store, self.index = store, index

    def route(
        self, method: str, parts: list[str], sent: Any, query: dict[str, list[str]]
    ) -> tuple[int, Any, dict[str, str]]:
        verbs: dict[tuple[str, ...], Callable[[], tuple[Any, dict[str, str]]]] = {
            ("POST", "vectors", "upsert"): lambda: self.upsert(sent),
            ("POST", "vectors", "delete"): lambda: self.delete(sent),
            ("GET", "vectors", "fetch"): lambda: self.fetch(query),
            ("GET", "vectors", "list"): lambda: self.list(query),
            ("POST", "query"): lambda: self.query(sent),
            ("POST", "describe_index_stats"): self.stats,
        }
        if (method, parts[0]) == ("DELETE", "namespaces"):
            self._present(parts[1])
            del self.index.namespaces[parts[1]]
            return 200, {}, {}
        verb = verbs.get((method, *parts))
        if verb is None:
            raise Refused(404, "NOT_FOUND", "no such path", "the client library's own paths")
        answer, headers = verb()
        return 200, answer, headers

    def upsert(self, sent: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        vectors = sent.get("vectors")
        if not isinstance(vectors, list) or not 1 <= len(vectors) <= rules.MAX_VECTORS:
            raise Refused(400, "INVALID_ARGUMENT", f"1 to {rules.MAX_VECTORS} vectors a request", rules.LIMITS)
        for vector in vectors:
            rules.check_metadata(vector.get("metadata") or {}, self.store.semantics, _size)
        kept = [rules.check_vector(vector, self.index.dimension, self.store.semantics) for vector in vectors]
        counted, position = self.store.upsert(self.index, self._name(sent.get("namespace")), kept)
        return {"upsertedCount": counted}, {"x-pinecone-request-lsn": str(position)}

    def delete(self, sent: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        ids = sent.get("ids")
        if not isinstance(ids, list) or not 1 <= len(ids) <= rules.MAX_DELETE_IDS:
            raise Refused(400, "INVALID_ARGUMENT", f"1 to {rules.MAX_DELETE_IDS} ids a deletion", rules.LIMITS)
        space = self._present(self._name(sent.get("namespace")))
        position = space.write("delete", ids, self.store.delay)
        return {}, {"x-pinecone-request-lsn": str(position)}

    def query(self, sent: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        top_k, where = sent.get("topK"), sent.get("filter")
        if type(top_k) is not int or not 1 <= top_k <= rules.MAX_TOP_K:
            raise Refused(400, "INVALID_ARGUMENT", f"topK must be in 1..{rules.MAX_TOP_K}", rules.LIMITS)
        asked = self._asked(sent)
        if where is not None:
            rules.check_filter(where)
        namespace = self._name(sent.get("namespace"))
        found, position = self.store.query(self.index, namespace, asked, top_k, where)
        matches = [
            {"id": one["id"], "score": score}
            | ({"metadata": one["metadata"]} if sent.get("includeMetadata") else {})
            | ({"values": _listed(one)} if sent.get("includeValues") else {})
            for score, one in found
        ]
        headers = {} if position is None else {"x-pinecone-max-indexed-lsn": str(position)}
        return {"matches": matches, "namespace": namespace, "usage": {"readUnits": 1}}, headers

    def _asked(self, sent: dict[str, Any]) -> list[float] | dict[str, Any]:
        """The vector that is asked with, of the index's kind."""
        if self.index.dimension is None:
            if sent.get("vector"):
                raise Refused(400, "INVALID_ARGUMENT", "a sparse index takes no dense vector", rules.SPARSE)
            return rules.check_sparse(sent.get("sparseVector"))
        if sent.get("sparseVector"):
            raise Refused(400, "INVALID_ARGUMENT", "Index configuration does not support sparse values", rules.KNOWN)
        rules.check_values(sent.get("vector"), self.index.dimension)
        return list(sent["vector"])

    def fetch(self, query: dict[str, list[str]]) -> tuple[Any, dict[str, str]]:
        namespace = self._name((query.get("namespace") or [""])[0])
        space = self.index.namespaces.get(namespace)
        if space and self.store.delay.fetches_too:
            space.read_comes(self.store.delay)
        held = space.fetched.vectors if space else {}
        vectors = {name: held[name] | {"values": _listed(held[name])} for name in query.get("ids", []) if name in held}
        return {"vectors": vectors, "namespace": namespace, "usage": {"readUnits": 1}}, {}

    def list(self, query: dict[str, list[str]]) -> tuple[Any, dict[str, str]]:
        limit = int((query.get("limit") or ["100"])[0])
        if not 1 <= limit <= rules.MAX_LIST_PAGE:
            raise Refused(400, "INVALID_ARGUMENT", f"limit must be in 1..{rules.MAX_LIST_PAGE}", rules.LIMITS)
        namespace = self._name((query.get("namespace") or [""])[0])
        space = self.index.namespaces.get(namespace)
        after = (query.get("paginationToken") or [""])[0]
        held = [name for name in sorted(space.fetched.vectors if space else ()) if name > after]
        following = {"pagination": {"next": held[limit - 1]}} if len(held) > limit else {}
        page = [{"id": name} for name in held[:limit]]
        return {"vectors": page, "namespace": namespace, "usage": {"readUnits": 1}} | following, {}

    def stats(self) -> tuple[Any, dict[str, str]]:
        counts = {name: len(space.queried.vectors) for name, space in self.index.namespaces.items()}
        return {
            "namespaces": {name: {"vectorCount": count} for name, count in counts.items()},
            "dimension": self.index.dimension,
            "indexFullness": 0.0,
            "totalVectorCount": sum(counts.values()),
            "metric": self.index.model["metric"],
            "vectorType": self.index.model["vector_type"],
        }, {}

    def _present(self, namespace: str) -> Any:
        if namespace not in self.index.namespaces:
            source = "https://docs.pinecone.io/reference/api/errors"
            raise Refused(404, "NOT_FOUND", "Namespace not found", source)
        return self.index.namespaces[namespace]

    @staticmethod
    def _name(namespace: str | None) -> str:
        """An absent name is the default namespace, which statistics call __default__ (pinecone-io/cli issue 85)."""
        return namespace or "__default__"


def _listed(vector: dict[str, Any]) -> list[float]:
    """The dense components; a sparse vector has none."""
    held = np.asarray(vector.get("values", []), dtype=np.float32)
    return [round(value, 9) for value in held.tolist()]


def _size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=5080)
    parser.add_argument("--key", default="the-key")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="waited before each answer")
    options = parser.parse_args()
    with PineconeDouble(key=options.key, port=options.port) as double:
        double.latency_s = options.latency_ms / 1000
        print(f"CDA_PINECONE_HOST={double.host} PINECONE_API_KEY={options.key}", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
