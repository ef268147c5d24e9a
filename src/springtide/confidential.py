"""Passwords, keys and tokens: which settings hold one, and texts without them.

Who takes in a secret remembers it here. What leaves the process as text for people (errors, logs, answers of the
control API, Spark's log on the terminal) goes through `hide`, as drivers and servers may quote what they were given. A
description of a source or a sink shows none either way: see `Discreet`.
"""

import json
import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import quote, unquote

NAMES = (
    "secret|password|passwd|passphrase|token|credential|jaas|basic[._]auth|ssl[.]key[.]pem"
    "|(access|account|api|private|shared)[._-]?key|(^|[._-])sas([._-]|$)"
)
"""Settings whose names match hold a secret; Spark takes the same expression for what it shows."""
HIDDEN = "…"
SHORTEST = 4
"""Shorter values are in every text: hiding them would make it unreadable, and tell them."""
LONG = 12
"""Longer values are hidden also as a part of a longer word."""

_SECRET_NAME = re.compile(NAMES, re.IGNORECASE)
_QUOTED = re.compile(r"""(\w*(?:password|secret|token)\w*)\s*=\s*["']?([^"';\s]+)""", re.IGNORECASE)
_PASSWORD = re.compile(r"(://[^/?#@:]*:)([^/?#]*)(?=@)")
_PARAMETER = re.compile(r"([?&]([^=&#\s]+)=)([^&#\s]+)")
_SIGNATURES = ("sig", "signature")


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


class Secrets:
    """The secrets that a process knows."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._turn = threading.Lock()

    def remember(self, value: str) -> None:
        """Hide a value from now on, as it is and as JSON and URLs write it."""
        forms = {value, unquote(value), quote(value, safe=""), json.dumps(value)[1:-1], repr(value)[1:-1]}
        with self._turn:
            new = {form for form in forms if len(form) >= SHORTEST} - self._known
            if new:
                self._known |= new
                self._pattern = re.compile("|".join(map(_form, sorted(self._known, key=len, reverse=True))))

    def remember_settings(self, settings: Mapping[str, str]) -> None:
        """Hide the values of settings that hold secrets, and the secrets in values that are URLs."""
        for name, value in settings.items():
            text = str(value)
            if is_secret(name):
                self.remember(text)
                for _, part in _QUOTED.findall(text):  # Java's way to log in: a line with user and password.
                    self.remember(part)
            elif "://" in text:
                self.remember_url(text)

    def remember_url(self, url: str) -> None:
        """Hide the password of a URL, and the parameters that hold a secret."""
        for _, password in _PASSWORD.findall(url):
            self.remember(password)
        for _, name, value in _PARAMETER.findall(url):
            if _is_secret_parameter(name):
                self.remember(value)

    def hide(self, text: str) -> str:
        """The same text without any secret that is known."""
        pattern = self._pattern
        return text if pattern is None else pattern.sub(HIDDEN, text)


def _form(value: str) -> str:
    escaped = re.escape(value)
    return escaped if len(value) >= LONG else rf"(?<![A-Za-z0-9]){escaped}(?![A-Za-z0-9])"


def _is_secret_parameter(name: str) -> bool:
    return is_secret(name) or name.lower() in _SIGNATURES


def masked_url(text: str) -> str:
    """A URL without its password and the parameters that hold a secret; other text as it is."""

    def parameter(found: re.Match[str]) -> str:
        return f"{found[1]}{HIDDEN}" if _is_secret_parameter(found[2]) else found[0]

    return _PARAMETER.sub(parameter, _PASSWORD.sub(rf"\g<1>{HIDDEN}", text))


class Discreet:
    """A dataclass (with `repr=False`) whose representation holds no secrets, also where nobody remembers them."""

    def __repr__(self) -> str:
        shown = (f"{field.name}={_shown(getattr(self, field.name))}" for field in fields(self) if field.repr)  # type: ignore[arg-type]
        return hide(f"{type(self).__name__}({', '.join(shown)})")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return repr({name: HIDDEN if is_secret(str(name)) else _masked(value[name]) for name in value})
    return repr(_masked(value))


def _masked(value: Any) -> Any:
    return masked_url(value) if isinstance(value, str) else value


_secrets = Secrets()
remember, remember_settings, remember_url = _secrets.remember, _secrets.remember_settings, _secrets.remember_url
hide = _secrets.hide


def hide_in(content: Any) -> Any:
    """The same JSON content without any secret in its texts."""
    if isinstance(content, str):
        return hide(content)
    if isinstance(content, Mapping):
        return {name: hide_in(value) for name, value in content.items()}
    return [hide_in(value) for value in content] if isinstance(content, list | tuple) else content


class HideInLogs(logging.Filter):
    """Takes secrets out of a record, its traceback included."""

    def filter(self, record: logging.LogRecord) -> bool:
        told = record.getMessage()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = hide(record.exc_text)
        if (shown := hide(told)) != told:
            record.msg, record.args = shown, None
        return True
