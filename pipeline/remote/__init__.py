"""Places that are not on this machine: how their file systems are opened, and what of a URL may be shown."""
