"""The keys of a profile of AWS, for obstore, which knows only variables. Arrow reads the same files by itself."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

from bicliques.schemas.errors import InputError

#: Variables that give credentials without a profile, or say that none are needed.
_GIVEN = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def keys_of_profile() -> dict[str, str]:
    """The keys of the profile that ``AWS_PROFILE`` names, or of ``default``. Empty if the environment has others.

    Raises
    ------
    InputError
        If the profile that is named has no keys, or its file cannot be read.
    """
    if any(map(os.environ.get, _GIVEN)):
        return {}
    named = os.environ.get("AWS_PROFILE")
    name = named or "default"
    config = Path(os.environ.get("AWS_CONFIG_FILE") or _home("config"))
    credentials = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or _home("credentials"))
    found = _section(credentials, name) or _section(config, name if name == "default" else f"profile {name}")
    if named and not found:
        raise InputError(
            f"AWS_PROFILE is {named!r}, a profile without aws_access_key_id in {credentials}; write the keys there, or "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return found


def _home(name: str) -> str:
    return os.path.expanduser(f"~/.aws/{name}")  # noqa: PTH111 - no home is no error


def _section(file: Path, name: str) -> dict[str, str]:
    """The keys in one section of a file. Empty if it has none."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(file)
    except (configparser.Error, OSError, UnicodeDecodeError):
        raise InputError(f"{file} cannot be read as a file of profiles; mend it") from None  # its lines have secrets
    return {key: parser[name][key] for key in _KEYS if name in parser and key in parser[name]}
