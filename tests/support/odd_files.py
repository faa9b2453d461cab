"""Odd things in the place of files, as an attacker or a dying disk puts them there, and what a command says of them."""

import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bicliques.pipeline.run.files import checksum
from bicliques.schemas.records import with_checksum
from tests.support.forks import Sweeper

#: Bytes of address space of a command.
ROOM = 8 << 30
#: Numbers that no memory has room for, or that a loop would count for hours.
HUGE = (10**12, 2**62, 2**31 - 1)
#: A file that is not of the run. Nothing may change or remove it.
FOREIGN = "foreign.parquet"


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_PATH)  # the name of a socket is short
        made.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def cut(path: Path, data: bytes) -> None:
    path.write_bytes(data[: len(data) // 2])


def garbage(path: Path, data: bytes) -> None:
    path.write_bytes(random.Random(path.name).randbytes(len(data)))


def huge(path: Path, data: bytes) -> None:
    """Numbers in the file become huge, and all checksums are right, as somebody writes it who means it."""
    most = random.Random(path.name).choice(HUGE)
    if path.suffix == ".json":
        path.write_text(json.dumps(with_checksum(with_numbers(json.loads(data), most))))
    elif path.suffix == ".npy":
        array = np.load(path)
        short = data[:128].replace(f"({len(array)},)".encode(), f"({most},)".encode())
        path.write_bytes(short[: len(short) - 2].rstrip(b" ").ljust(127, b" ")[:127] + b"\n" + data[128:])
    elif path.suffix == ".parquet":
        path.write_bytes(with_rows(data, pq.read_metadata(path).num_rows, most))
    else:
        path.write_bytes(bytes(255 if 100 < k < len(data) - 20 and k % 7 == 0 else each for k, each in enumerate(data)))
    forge(path)


def with_numbers(value: Any, most: int) -> Any:
    if isinstance(value, dict):
        return {key: with_numbers(each, most) for key, each in value.items()}
    if isinstance(value, list):
        return [with_numbers(each, most) for each in value]
    return most if isinstance(value, int) and not isinstance(value, bool) else value


def varint(number: int) -> bytes:
    """A number as Thrift writes it."""
    number, out = number << 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def with_rows(data: bytes, n: int, most: int) -> bytes:
    """A Parquet file whose footer promises other numbers of rows."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8].replace(b"\x16" + varint(n), b"\x16" + varint(most))
    return data[: -8 - length] + footer + len(footer).to_bytes(4, "little") + data[-4:]


def forge(path: Path) -> None:
    """Let the record of the step that made a file have its checksum."""
    for record in path.parent.parent.glob("steps/*.json"):
        data = json.loads(record.read_text())
        name = f"{path.parent.name}/{path.name}"
        if name in data.get("files", {}):
            data["files"][name] = checksum(path)
            record.write_text(json.dumps(with_checksum(data)))


#: What comes in the place of a file of which the bytes are given.
KINDS: dict[str, Callable[[Path, bytes], object]] = {
    "pipe": lambda path, _: os.mkfifo(path),
    "socket": lambda path, _: make_socket(path),
    "folder": lambda path, _: path.mkdir(),
    "loop": lambda path, _: path.symlink_to(path.name),
    "device": lambda path, _: path.symlink_to("/dev/zero"),
    "link": lambda path, _: path.symlink_to(path.parents[1] / FOREIGN),
    "empty": lambda path, _: path.touch(),
    "cut": cut,
    "garbage": garbage,
    "huge": huge,
}


def ended(sweeper: Sweeper, place: Path, words: list[str]) -> tuple[int, str]:
    """The exit code of a command, and what it has said. It has said something that helps."""
    code = sweeper.run(place, words)
    told = (place / "err").read_text()
    assert code in (0, 1, 2, 3), (words, code, told)
    assert "Traceback" not in told, (words, told)
    lines = told.splitlines()
    if code in (1, 2) and words[0] != "status":
        assert lines[-1].startswith("bicliques: "), (words, told)
        assert [line for line in lines if not line.startswith("bicliques: ")] == [], (words, told)
    return code, told
