"""The folder of a run: its files, its lock, its ledger. The rest of `pipeline` reads and writes runs through it."""
