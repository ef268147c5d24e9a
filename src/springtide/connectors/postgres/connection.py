"""Connections to PostgreSQL, and errors that name the step; the password of a dsn shows nowhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from springtide.confidential import remember
from springtide.dataflow.errors import StepFailed
from springtide.errors import BadValue

if TYPE_CHECKING:
    from psycopg import Connection

CONNECT_S = 10
"""How long to wait for a server that does not answer, unless the dsn says otherwise."""
STATEMENT_S = 600
"""How long one statement may take, the waiting for locks included, unless the dsn's `options` say otherwise."""
IDLE_S = 60
"""How long a paused driver may keep a transaction open, and its successor waiting, unless `options` say otherwise."""
DEAD_CONNECTION = {
    "tcp_user_timeout": 60_000,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""A server that is cut off is noticed after a minute."""
_SECRETS = ("password", "sslpassword")


@dataclass(frozen=True)
class Dsn:
    """Where a database is and how to get in, as libpq takes it: a URL or `host=… dbname=…`."""

    text: str = field(repr=False)
    where: str = field(init=False, default="")
    """The same without its secrets, for messages."""

    def __post_init__(self) -> None:
        try:
            fields = self._fields()
        except ModuleNotFoundError:
            raise ModuleNotFoundError("sinks.postgres needs psycopg: pip install 'springtide[postgres]'") from None
        except Exception:
            # libpq's own message would quote the text, and with it a password.
            raise BadValue(
                "expected a dsn such as 'postgresql://user:password@host:5432/database' or 'host=… dbname=… user=…', "
                "got text that is neither (not shown, as it may hold a password)"
            ) from None
        for name in _SECRETS:
            if fields.get(name):
                remember(str(fields[name]))
        object.__setattr__(self, "where", _where(fields))

    def _fields(self) -> dict[str, Any]:
        from psycopg.conninfo import conninfo_to_dict

        return dict(conninfo_to_dict(self.text))

    @contextmanager
    def connected(self, step: str, doing: str) -> "Iterator[Connection[Any]]":
        """A connection that commits each statement; errors of the database name the step."""
        import psycopg

        fields = self._fields()
        arguments: dict[str, Any] = {"connect_timeout": CONNECT_S, "application_name": f"springtide {step}"}
        arguments |= DEAD_CONNECTION | fields | {"client_encoding": "UTF8"}
        # Ours first: what the dsn says comes later and wins.
        limits = f"-c statement_timeout={STATEMENT_S}s -c idle_in_transaction_session_timeout={IDLE_S}s"
        arguments["options"] = f"{limits} {fields.get('options') or ''}".strip()
        try:
            connection = psycopg.connect(**arguments, autocommit=True)
        except psycopg.Error as error:
            hint = "Start the server or mend the dsn, and start the app again: the epoch is committed and not lost"
            raise StepFailed(step, doing, f"cannot connect to {self.where}: {self._told(error)}", hint) from None
        try:
            with connection:
                yield connection
        except psycopg.Error as error:
            raise StepFailed(step, doing, f"{self.where} says: {self._told(error)}") from None

    def _told(self, error: Exception) -> str:
        """What the database says, in one line."""
        diagnosis = getattr(error, "diag", None)
        parts = [getattr(diagnosis, name, None) for name in ("message_primary", "message_detail", "context")]
        text = "; ".join(part for part in parts if part) or str(error)
        fields = self._fields()
        for name in _SECRETS:
            if fields.get(name):
                text = text.replace(str(fields[name]), "…")
        return " ".join(text.split())


def _where(fields: dict[str, Any]) -> str:
    user = f"{fields['user']}@" if fields.get("user") else ""
    port = f":{fields['port']}" if fields.get("port") else ""
    host = fields.get("host") or fields.get("hostaddr") or ""
    return f"postgresql://{user}{host}{port}/{fields.get('dbname') or ''}"
