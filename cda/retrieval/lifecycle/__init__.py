"""The life-cycle of an index on a service: plan, upsert, verify, promote, prune, roll back.

Queries go where the pointer points, and the pointer moves only to what was verified. See docs/decisions.
"""
