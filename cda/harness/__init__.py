"""Control of a run: pre-flight, loop, verifier, gate, budget, trace. Pure Python; no model client is imported here, and
the corpus is reached through `PolicyTools` alone, so nothing that reasons can decide what may be issued."""
