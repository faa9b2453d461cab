"""The fourth step, on the side of the driver: the schedule, and the ledger that is written."""
