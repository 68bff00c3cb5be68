"""An append-only record of what was done: chained, checkpointed with a signature, shared by several processes."""

from cda.ledger.ledger import Ledger, LedgerUnavailable
from cda.ledger.verify import Verdict, verify

__all__ = ["Ledger", "LedgerUnavailable", "Verdict", "verify"]
