"""The host side of the GPU engines: devices, CUDA sources, memory, slices, and their bicliques."""
