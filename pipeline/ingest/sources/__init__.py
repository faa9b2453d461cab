"""What a person names as the input, made something that readers can open: files of this machine, or an object."""
