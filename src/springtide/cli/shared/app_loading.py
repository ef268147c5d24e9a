"""Finds the app that a person means: a file, or a module."""

import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from springtide.app import App
from springtide.errors import BadValue, SpringtideError

VARIABLE = "app"


class CannotLoad(BadValue):
    """There is no app where the person pointed."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.target, self.reason = target, reason

    def __str__(self) -> str:
        return f"can't load an app from {self.target!r}: {self.reason}"


class Misbuilt(SpringtideError):
    """The person's own code asked for a dataflow that makes no sense."""

    def __init__(self, target: str, line: int, error: SpringtideError) -> None:
        super().__init__(target, line, error)
        self.target, self.line, self.error = target, line, error
        self.exit_code = error.exit_code

    def __str__(self) -> str:
        return f"{self.target}, line {self.line}: {self.error}"


class UserCodeFailed(SpringtideError):
    """The person's own code raised while it was loaded; `trace` has only frames of theirs."""

    def __init__(self, target: str, trace: str) -> None:
        super().__init__(target, trace)
        self.target, self.trace = target, trace

    def __str__(self) -> str:
        return f"{self.target!r} failed while it was loaded:\n{self.trace}"


@dataclass(frozen=True)
class Target:
    """A file or a module, and the variable in it that holds the app, if it was named."""

    text: str
    where: Path | str
    """A path is a file, a string is a module."""
    variable: str | None

    @classmethod
    def parse(cls, text: str) -> "Target":
        """From `file.py`, `file.py:name`, `package.module` or `package.module:name`."""
        where, _, variable = text.partition(":") if not Path(text).is_file() else (text, "", "")
        if not where:
            raise CannotLoad(text, "expected file.py, file.py:name or module:name")
        named = variable or None
        is_file = where.endswith(".py") or os.sep in where or Path(where).exists()
        return cls(text, Path(where) if is_file else where, named)

    @property
    def directory(self) -> Path:
        """What the app's own imports are found in: where its file lies, or where the person stands."""
        return self.where.resolve().parent if isinstance(self.where, Path) else Path.cwd()


def load_app(target: Target) -> App:
    """The app of a file or a module; raises CannotLoad, or UserCodeFailed with the person's own error."""
    with _importable(target.directory):
        variables = _run_file(target, target.where) if isinstance(target.where, Path) else _import(target, target.where)
    return _pick(target, variables)


def share_with_workers(directory: Path) -> None:
    """Let Python processes that Spark starts later import what lies beside the app."""
    known = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(directory) if not known else f"{directory}{os.pathsep}{known}"


@contextmanager
def _importable(directory: Path) -> Iterator[None]:
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(directory))


def _run_file(target: Target, path: Path) -> Mapping[str, Any]:
    if path.is_dir():
        raise CannotLoad(target.text, "it is a directory; give the file in it")
    if not path.is_file():
        raise CannotLoad(target.text, f"there is no file {str(path)!r} in {Path.cwd()}")
    try:
        # Not left in sys.modules: Spark then sends the file's functions to workers by value, not by name.
        return runpy.run_path(str(path), run_name=f"springtide_app_{path.stem}")
    except SpringtideError as error:
        raise Misbuilt(target.text, _line_in(str(path), error), error) from error
    except Exception as error:
        raise UserCodeFailed(target.text, _own_frames(error)) from error


def _import(target: Target, module: str) -> Mapping[str, Any]:
    try:
        return vars(importlib.import_module(module))
    except ModuleNotFoundError as error:
        # Only the module asked for, or a package around it: a missing import inside it is the person's own error.
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise CannotLoad(target.text, f"there is no module {module!r}, and no file of that name") from error
        raise UserCodeFailed(target.text, _own_frames(error)) from error
    except Exception as error:
        raise UserCodeFailed(target.text, _own_frames(error)) from error


def _pick(target: Target, variables: Mapping[str, Any]) -> App:
    apps = {name: value for name, value in variables.items() if isinstance(value, App)}
    if target.variable is not None:
        if target.variable in apps:
            return apps[target.variable]
        if target.variable in variables:
            kind = type(variables[target.variable]).__name__
            raise CannotLoad(target.text, f"{target.variable!r} is a {kind}, not a springtide.App")
        raise CannotLoad(target.text, f"it has no {target.variable!r}{_among(apps)}")
    if VARIABLE in apps:
        return apps[VARIABLE]
    different = {id(app): app for app in apps.values()}
    if not different:
        raise CannotLoad(target.text, f"there is no App in it; assign one: {VARIABLE} = App('my-app')")
    if len(different) > 1:
        raise CannotLoad(target.text, f"it has several apps; say which one: {_choices(target, apps)}")
    return next(iter(different.values()))


def _among(apps: Mapping[str, App]) -> str:
    return f"; its apps are {', '.join(sorted(apps))}" if apps else ", and no other App"


def _choices(target: Target, apps: Mapping[str, App]) -> str:
    return " or ".join(f"{target.where}:{name}" for name in sorted(apps))


def _line_in(path: str, error: Exception) -> int:
    """The last line of a file that led to an error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return frames[-1].lineno or 0 if frames else 0


def _own_frames(error: Exception) -> str:
    """The traceback from the person's own file on, as Python would print it."""
    summary = traceback.TracebackException.from_exception(error)
    ours = (__file__, runpy.__file__, importlib.__file__)
    frames = [f for f in summary.stack if f.filename not in ours and not f.filename.startswith("<frozen ")]
    summary.stack = traceback.StackSummary.from_list(frames)
    summary.__cause__ = summary.__context__ = None
    return "".join(summary.format()).rstrip()
