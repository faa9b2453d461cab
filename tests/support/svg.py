"""Pictures as SVG, and where their squares and crosses are."""

import re
from xml.etree.ElementTree import Element, fromstring

SVG = "{http://www.w3.org/2000/svg}"


def parsed(svg: str) -> Element:
    return fromstring(svg)


def squares(root: Element, name: str) -> set[tuple[float, float]]:
    """Where the squares or crosses of a class begin."""
    paths = [path.get("d") or "" for path in root.iter(f"{SVG}path") if path.get("class") == name]
    return {(float(x), float(y)) for path in paths for x, y in re.findall(r"M([\d.]+) ([\d.]+)", path)}
