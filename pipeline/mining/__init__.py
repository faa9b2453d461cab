"""The driver's side of the step ``mine``: it schedules slices, and writes the ledger."""
