"""What the control API answers to those who may ask."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from control_kit import Served

from springtide.control.api.routes import MOST_BYTES, READ_ON_BYTES

MOVE = {"operator": "counts", "slices": "3-9", "to": "2"}


def test_reading(served: Served) -> None:
    assert served.ask("GET", "/v1/status") == (200, served.controls.status())
    assert served.ask("GET", "/v1/workers") == (200, served.controls.workers())
    assert served.ask("GET", "/v1/plan") == (200, served.controls.plan())
    assert served.ask("GET", "/v1/migration") == (200, None)
    assert served.controls.effects == []


def test_scale_and_move_have_a_default_strategy(served: Served) -> None:
    status, progress = served.ask("POST", "/v1/scale", {"workers": 3})
    assert (status, progress["state"], progress["strategy"]) == (200, "starting", "progressive")
    assert served.ask("POST", "/v1/cancel-migration", {})[1]["state"] == "cancelled"
    assert served.ask("POST", "/v1/move", MOVE | {"strategy": "lazy"})[0] == 200
    expected = [("scale", 3, "progressive"), ("cancel",), ("move", "counts", "3-9", "2", "lazy")]
    assert served.controls.effects == expected


def test_adapting(served: Served) -> None:
    status, told = served.ask("POST", "/v1/adapt", {"policy": "dhalion", "maximum": 4})
    assert (status, told["policy"], told["minimum"], told["interval_s"]) == (200, "dhalion", 1, 5.0)
    assert served.controls.effects == [("adapt", "dhalion", 1, 4)]
    refused = served.ask("POST", "/v1/adapt", {"minimum": 4, "maximum": 2})
    assert refused == (400, {"error": "workers: expected a maximum of 4 or more, got 2"})
    assert served.ask("POST", "/v1/rest", {})[0] == 400
    assert served.ask("GET", "/v1/adapt")[0] == 405


def test_other_methods_and_other_paths(served: Served) -> None:
    status, answer = served.ask("GET", "/v1/scale")
    assert (status, answer) == (405, {"error": "GET is not for /v1/scale: use POST"})
    for method, path in [("POST", "/v1/status"), ("PUT", "/v1/scale"), ("DELETE", "/v1/plan"), ("OPTIONS", "/v1/move")]:
        assert served.ask(method, path, {"workers": 3})[0] == 405
    for path in ("/", "/v1", "/v1/status/", "/v2/status", "/v1/scale/3"):
        assert served.ask("POST", path, {"workers": 3}) == (404, {"error": f"there is no {path}"})
    assert served.controls.effects == []


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_only_json(served: Served, kind: str | None) -> None:
    assert served.ask("POST", "/v1/scale", {"workers": 3}, Content_Type=kind)[0] == 415
    assert served.controls.effects == []


def test_json_with_a_charset(served: Served) -> None:
    assert served.ask("POST", "/v1/scale", {"workers": 3}, Content_Type="Application/JSON; charset=utf-8")[0] == 200


@pytest.mark.parametrize(
    ("path", "raw", "message"),
    [
        ("/v1/scale", b"", "the body is not JSON: send an object such as"),
        ("/v1/scale", b"\xff\xfe", "the body is not JSON"),
        ("/v1/scale", b"[" * 60_000, "the body is not JSON"),
        ("/v1/scale", b'{"workers": ' + b"9" * 5000 + b"}", "the body is not JSON"),
        ("/v1/scale", b"[3]", "the body is a JSON list"),
        ("/v1/scale", b"{}", "the field 'workers' is missing"),
        ("/v1/scale", b'{"workers": 3, "workers": 4}', "a field is there twice"),
        ("/v1/scale", b'{"workers": 3, "gently": 1}', '"gently" is not a field here: the fields are workers, force'),
        ("/v1/scale", b'{"workers": 3, "force": 1}', "'force' is 1: expected true or false"),
        ("/v1/scale", b'{"workers": true}', "'workers' is true: expected a whole number from 1"),
        ("/v1/scale", b'{"workers": "3"}', "'workers' is \"3\""),
        ("/v1/scale", b'{"workers": 3.0}', "'workers' is 3.0"),
        ("/v1/scale", b'{"workers": 0}', "'workers' is 0"),
        ("/v1/scale", b'{"workers": -1}', "'workers' is -1"),
        ("/v1/scale", b'{"workers": 10001}', "'workers' is 10001"),
        ("/v1/scale", b'{"workers": NaN}', "'workers' is NaN"),
        ("/v1/scale", b'{"workers": 3, "strategy": "stop"}', 'the strategy is "stop": choose one of handover,'),
        ("/v1/scale", b'{"workers": 3, "strategy": null}', "the strategy is null"),
        ("/v1/scale", b'{"workers": 3, "hottest_first": 1}', "'hottest_first' is 1: expected true or false"),
        ("/v1/scale", b'{"workers": 3, "slices_an_epoch": 0}', "'slices_an_epoch' is 0: expected a whole number"),
        ("/v1/scale", b'{"workers": 3, "strategy": ["lazy"]}', 'the strategy is ["lazy"]'),
        ("/v1/cancel-migration", b'{"id": 1}', '"id" is not a field here: there are no fields'),
        ("/v1/cancel-migration", b"", "the body is not JSON: send an object such as {}"),
    ],
)
def test_what_a_body_must_be(served: Served, path: str, raw: bytes, message: str) -> None:
    status, answer = served.ask("POST", path, raw=raw)
    assert status == 400
    assert message in answer["error"]
    assert served.controls.effects == []


@pytest.mark.parametrize("slices", ["", "a", "3-", "-3", "9-3", "3,,4", "3 -4", "3-4-5", "٣", "3\n", 3, None, "1" * 10])
def test_slices_are_numbers_and_ranges(served: Served, slices: Any) -> None:
    status, answer = served.ask("POST", "/v1/move", MOVE | {"slices": slices})
    assert status == 400
    assert "'slices' is" in answer["error"]
    assert "such as '3-9,12'" in answer["error"]
    assert served.controls.effects == []


@pytest.mark.parametrize("size", [MOST_BYTES + 1, 10 * MOST_BYTES, READ_ON_BYTES])
def test_a_body_may_not_be_large(served: Served, size: int) -> None:
    raw = json.dumps({"workers": 3}).encode().ljust(size)
    status, answer = served.ask("POST", "/v1/scale", raw=raw)
    assert (status, answer) == (413, {"error": "the body is too large: at most 65536 bytes are taken"})
    assert served.controls.effects == []


def test_a_large_body_in_chunks_that_tell_no_length(served: Served) -> None:
    lines = [f"{name}: {value}" for name, value in served.headers.items()]
    lines += ["Content-Type: application/json", "Transfer-Encoding: chunked"]
    chunks = b"%x\r\n%s\r\n" % (MOST_BYTES, b" " * MOST_BYTES) * 2 + b"0\r\n\r\n"
    assert served.send("\r\n".join(["POST /v1/scale HTTP/1.1", *lines, "", ""]).encode() + chunks) == 413
    assert served.controls.effects == []


def test_the_largest_body(served: Served) -> None:
    assert served.ask("POST", "/v1/scale", raw=json.dumps({"workers": 3}).encode().ljust(MOST_BYTES))[0] == 200


def test_a_second_migration_waits_for_the_first_to_end(served: Served) -> None:
    served.controls.moves = False
    assert served.ask("POST", "/v1/scale", {"workers": 3})[0] == 200
    for path, body in [("/v1/scale", {"workers": 3}), ("/v1/scale", {"workers": 4}), ("/v1/move", MOVE)]:
        status, answer = served.ask("POST", path, body)
        assert status == 409
        assert "migration 1 is starting" in answer["error"]
        assert "cancel it" in answer["error"]
    assert served.controls.effects == [("scale", 3, "progressive")]
    served.controls.current = {**(served.controls.current or {}), "state": "done"}
    assert served.ask("POST", "/v1/scale", {"workers": 4})[0] == 200


def test_of_many_at_once_one_starts(served: Served) -> None:
    many = 8
    served.controls.moves = False
    served.controls.linger_s = 0.3
    together = threading.Barrier(many)

    def post(number: int) -> int:
        together.wait(20)
        path, body = ("/v1/scale", {"workers": 3}) if number % 2 else ("/v1/move", MOVE)
        return int(served.ask("POST", path, body)[0])

    with ThreadPoolExecutor(many) as pool:
        found = sorted(pool.map(post, range(many)))
    assert found == [200] + [409] * (many - 1)
    assert len(served.controls.effects) == 1
    assert not served.controls.overlapped.is_set()


def test_what_the_app_refuses(served: Served) -> None:
    status, answer = served.ask("POST", "/v1/move", MOVE | {"to": "9"})
    assert (status, answer) == (404, {"error": "there is no worker '9': the workers are 1, 2"})
    status, answer = served.ask("POST", "/v1/cancel-migration", {})
    assert (status, answer) == (400, {"error": "no migration is under way: there is nothing to cancel"})


def test_a_failing_app_gives_an_error_and_the_next_answer_is_fine(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise LookupError("no such tide")

    monkeypatch.setattr(served.controls, "scale", fail)
    status, answer = served.ask("POST", "/v1/scale", {"workers": 3})
    assert (status, answer) == (500, {"error": "the app could not answer: LookupError: no such tide"})
    assert served.ask("POST", "/v1/move", MOVE)[0] == 200
    assert capfd.readouterr() == ("", "")
