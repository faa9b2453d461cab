"""What the data is: arrays, tables, pieces of work. Imports nothing of the other packages."""
