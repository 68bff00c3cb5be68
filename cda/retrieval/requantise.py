"""The packaged model with its matrix products in int8: about twice as fast, another identity, opt-in.

The package stores int8 and multiplies in float32. Re-quantised with per-channel weights it differs from the original by
a cosine of about 0.006; it is built once per machine, and only used when it passes a comparison with the original here,
since 8-bit products saturate on some older processors.
"""

import json
import logging
import os
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cda.errors import UnavailableError
from cda.retrieval.minilm import MiniLM, Weights, packaged_weights

NAME = "all-MiniLM-L6-v2-int8-dynamic"
LEAST_COSINE = 0.985
SENTENCES = (
    "The member has type 1 diabetes and checks fingersticks four times a day.",
    "Home sleep testing is not covered unless obstructive sleep apnea is suspected.",
    "Six weeks of physical therapy did not relieve the radiculopathy.",
    "Is prior authorization required?",
    "A claim was denied because the drug is investigational for this indication.",
)


def requantised_weights(models: Path) -> Weights:
    """The re-quantised file under `models`, built there first when it is absent.

    Raises UnavailableError when the `onnx` package that building needs is missing, or when the file fails here.
    """
    source = packaged_weights()
    file = models / f"{NAME}-{source.sha256[:16]}.onnx"
    stamp = file.with_suffix(".json")
    if not stamp.exists():
        models.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=models) as folder:
            draft = Path(folder) / "model.onnx"
            _quantise(source, draft)
            digest = sha256(draft.read_bytes()).hexdigest()
            _compare(source, Weights(NAME, draft, digest))
            draft.replace(file)
        stamp.write_text(json.dumps({"source": source.sha256, "sha256": digest}), encoding="utf-8")
    return Weights(NAME, file, str(json.loads(stamp.read_text(encoding="utf-8"))["sha256"]))


def _quantise(source: Weights, out: Path) -> None:
    import onnxruntime

    try:
        from onnxruntime import quantization
    except ImportError:
        raise UnavailableError(
            "CDA_EMBEDDER=minilm-int8-dynamic is built with the package onnx: pip install onnx"
        ) from None
    MiniLM(source).embed(["the bytes have the known hash"])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = os.fspath(out.with_name("folded.onnx"))
    onnxruntime.InferenceSession(os.fspath(source.path), options, providers=["CPUExecutionProvider"])
    logging.getLogger().addFilter(_no_advice)
    try:
        quantization.quantize_dynamic(
            options.optimized_model_filepath,
            os.fspath(out),
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
    finally:
        logging.getLogger().removeFilter(_no_advice)


def _no_advice(record: logging.LogRecord) -> bool:
    """The quantiser advises a pre-processing that the folded graph has had."""
    return "pre-processing" not in record.getMessage()


def _compare(source: Weights, built: Weights) -> None:
    cosines = np.vecdot(MiniLM(source).embed(SENTENCES), MiniLM(built).embed(SENTENCES))
    if float(cosines.min()) < LEAST_COSINE:
        raise UnavailableError(
            f"the re-quantised model differs on this processor (cosine {cosines.min():.3f}, {LEAST_COSINE} is needed); "
            "use CDA_EMBEDDER=minilm-int8"
        )
