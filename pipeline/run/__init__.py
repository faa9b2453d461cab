"""The folder of a run: its files, its lock, its ledger. Everything above writes and reads through it."""
