"""What the pipeline does on GPUs besides searching: finding them, workers on them, reading and writing with cuDF."""
