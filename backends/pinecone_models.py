"""The models that Pinecone hosts, asked through the wrapped client library: texts go there, numbers come back."""

from typing import Any

from pinecone.errors import exceptions as sdk
from pinecone.models.inference.embed import DenseEmbedding, SparseEmbedding

from backends.deadlines import Call
from backends.pinecone_client import PineconeClient
from backends.sparse import SparseVector

Embedded = list[float] | SparseVector


class PineconeModels(PineconeClient):
    """Hosted embedding and reranking, on the control plane's host."""

    def begin_embed(self, model: str, texts: list[str], kind: str, dim: int | None) -> Call[list[Embedded] | None]:
        """One vector a text, of the model's own kind; None when the service refuses the texts as they are. Nothing is
        cut."""
        parameters: dict[str, Any] = {"input_type": kind, "truncate": "NONE"}
        if dim is not None:
            parameters["dimension"] = dim
        inference = self._inference()

        def embed() -> list[Embedded] | None:
            try:
                found = inference.embed(model=model, inputs=texts, parameters=parameters)
            except sdk.ApiError as error:
                if error.status_code in (400, 413, 422):
                    return None
                raise
            self._count(bytes_sent=_bytes(texts))
            return [_embedded(one) for one in found.data]

        return self._begin(embed, self.config.write_deadline_s)

    def begin_rerank(self, model: str, query: str, texts: list[str]) -> Call[dict[int, float]]:
        """The score of each text by its position."""
        inference = self._inference()

        def rerank() -> dict[int, float]:
            found = inference.rerank(
                model=model, query=query, documents=[{"text": text} for text in texts], return_documents=False
            )
            self._count(bytes_sent=_bytes(texts))
            return {one.index: float(one.score) for one in found.data}

        return self._begin(rerank, self.config.read_deadline_s)

    def _inference(self) -> Any:
        with self._lock:  # made on first use: two threads would make two, and one would stay open
            return self._client.inference


def _embedded(one: DenseEmbedding | SparseEmbedding) -> Embedded:
    if isinstance(one, DenseEmbedding):
        return list(one.values)
    return SparseVector(tuple(one.sparse_indices), tuple(one.sparse_values))


def _bytes(texts: list[str]) -> int:
    return sum(len(text.encode("utf-8")) for text in texts)
