"""The GPU engines' host side: devices, sources, memory, items in and bicliques out."""
