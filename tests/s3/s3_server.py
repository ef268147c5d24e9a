"""An S3 server on loopback, run as a script: moto's, with buckets in memory, one request at a time.

moto looks whether a name is taken and then writes: of two requests at once both could win. One at a time, put-if-absent
is atomic. Buckets whose names say so have the habits that other servers have, see `Habits`.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any

from moto import settings
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

CONDITION = "HTTP_IF_NONE_MATCH"
DEAF, TERSE, LOSSY = "deaf", "terse", "lossy"
HABITS = (DEAF, TERSE, LOSSY)
BUCKETS = ("tide", *HABITS)
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


class Habits:
    """What servers are known to do, by bucket.

    `deaf` pays no heed to conditions, as servers did before they had them. `terse` answers 412 without the element that
    names the condition, as some servers do. `lossy` does what a conditional write asks, and then, once a name,
    says that it could not.
    """

    def __init__(self, server: Callable[..., Iterable[bytes]]) -> None:
        self.server, self._turn, self._lost = server, Lock(), set[str]()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        bucket, conditional = path.split("/")[1], CONDITION in environ
        if bucket == DEAF:
            environ.pop(CONDITION, None)
        said: list[Any] = []
        with self._turn:
            body = b"".join(self.server(environ, lambda *head: said.append(head)))
        status, headers, *_ = said[-1]
        if bucket == LOSSY and conditional and path not in self._lost:
            self._lost.add(path)
            status, headers, body = "500 Internal Server Error", [], b""
        if bucket == TERSE and status.startswith("412"):
            body = body.replace(b"<Condition>If-None-Match</Condition>", b"")
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
        start_response(status, headers)
        return [body]


def main() -> None:
    """Serve on a port until killed; tell the key by a line of JSON. Others are refused if `checked` says so."""
    port, checked = int(sys.argv[1]), sys.argv[2] == "checked"
    buckets, users = (get_backend(name)[DEFAULT_ACCOUNT_ID]["aws"] for name in ("s3", "iam"))
    for name in BUCKETS:
        buckets.create_bucket(name, "us-east-1")
    users.create_user("us-east-1", "driver")
    users.put_user_policy("driver", "all", json.dumps(POLICY))
    key = users.create_access_key("driver")
    if checked:
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    application = Habits(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", port, application, threaded=True, request_handler=MotoRequestHandler)
    print(json.dumps({"key": key.access_key_id, "secret": key.secret_access_key}), flush=True)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  Nobody reads any further.
    server.serve_forever()


if __name__ == "__main__":
    main()
