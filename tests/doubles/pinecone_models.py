"""The hosted models: dense and sparse embeddings and reranking, made of hashed words, with the service's limits.

Limits: https://docs.pinecone.io/reference/api/database-limits and https://docs.pinecone.io/models/overview
"""

import math
import re
from hashlib import blake2b
from typing import Any

from doubles.pinecone_rules import Refused

SOURCE = "https://docs.pinecone.io/models/overview"
MAX_INPUTS = 96
DENSE = {
    "llama-text-embed-v2": (2048, (384, 512, 768, 1024, 2048), 1024),
    "multilingual-e5-large": (507, (1024,), 1024),
}
SPARSE = {"pinecone-sparse-english-v0": 512}
RERANK = {"bge-reranker-v2-m3": (100, 1024)}


def _bad(message: str) -> Refused:
    return Refused(400, "INVALID_ARGUMENT", message, SOURCE)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def number(word: str, modulus: int) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big") % modulus


def embed(body: dict[str, Any]) -> dict[str, Any]:
    """The answer to POST /embed."""
    model, parameters = body.get("model"), body.get("parameters") or {}
    if model not in DENSE and model not in SPARSE:
        raise Refused(404, "NOT_FOUND", f"Model '{model}' not found", SOURCE)
    inputs = body.get("inputs")
    if not isinstance(inputs, list) or not 1 <= len(inputs) <= MAX_INPUTS:
        raise _bad(f"1 to {MAX_INPUTS} inputs")
    if parameters.get("input_type") not in ("query", "passage"):
        raise _bad("parameters.input_type must be query or passage")
    limit = DENSE[model][0] if model in DENSE else SPARSE[model]
    texts, total = [], 0
    for one in inputs:
        held = words(one["text"])
        if len(held) > limit:
            if parameters.get("truncate", "END") == "NONE":
                raise _bad(f"Input text exceeds the maximum of {limit} tokens")
            held = held[:limit] if parameters.get("truncate", "END") == "END" else held[-limit:]
        total += len(held)
        texts.append(held)
    data = [_dense(model, held, parameters) if model in DENSE else _sparse(held) for held in texts]
    kind = "dense" if model in DENSE else "sparse"
    return {"model": model, "vector_type": kind, "data": data, "usage": {"total_tokens": total}}


def _dense(model: str, held: list[str], parameters: dict[str, Any]) -> dict[str, Any]:
    _, allowed, usual = DENSE[model]
    dimension = parameters.get("dimension", usual)
    if dimension not in allowed:
        raise _bad(f"dimension must be one of {allowed}")
    values = [0.0] * dimension
    for word in held:
        values[number(word, dimension)] += 1.0
    norm = math.sqrt(sum(value * value for value in values)) or 1.0
    return {"vector_type": "dense", "values": [value / norm for value in values]}


def _sparse(held: list[str]) -> dict[str, Any]:
    weights: dict[int, float] = {}
    for word in held:
        index = number(word, 2**32)
        weights[index] = weights.get(index, 0.0) + 1.0
    indices = sorted(weights)
    return {"vector_type": "sparse", "sparse_indices": indices, "sparse_values": [weights[one] for one in indices]}


def rerank(body: dict[str, Any]) -> dict[str, Any]:
    """The answer to POST /rerank: the share of the query's words that a document holds."""
    model, documents = body.get("model"), body.get("documents")
    if model not in RERANK:
        raise Refused(404, "NOT_FOUND", f"Model '{model}' not found", SOURCE)
    most, _ = RERANK[model]
    if not isinstance(documents, list) or not 1 <= len(documents) <= most:
        raise _bad(f"1 to {most} documents")
    asked = set(words(body["query"]))
    field = (body.get("rank_fields") or ["text"])[0]
    scored = [
        {"index": row, "score": len(asked & set(words(document[field]))) / max(len(asked), 1)}
        for row, document in enumerate(documents)
    ]
    scored.sort(key=lambda one: (-float(one["score"]), int(one["index"])))
    return {"model": model, "data": scored[: body.get("top_n") or len(scored)], "usage": {"rerank_units": 1}}
