"""The files that images are made by, as tests read them."""

import re


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile and their arguments, with continued lines joined and without comments."""
    joined = re.sub(r"(?m)^#.*\n", "", text).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]
