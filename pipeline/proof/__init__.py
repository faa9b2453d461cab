"""The step ``prove``, which reads the parts back and compares them with the ledger, and what checks a run later."""
