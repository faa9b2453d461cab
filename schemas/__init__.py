"""The data of the project: arrays, tables, pieces of work. It imports nothing of the other packages."""
