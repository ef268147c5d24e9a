"""Writes docs/api.md from the docstrings of the public API; with --check, says whether the page is up to date.

It reads source text and imports nothing of it, so the page has the same bytes on every machine.
"""

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
PAGE = ROOT / "docs" / "api.md"
WIDTH = 100
"""A longer signature has a line for each parameter."""
INTRODUCTION = """# API reference

The public API, as its docstrings tell it; `make api` writes this page. The [guide](guide.md) tells how the parts go
together."""
PLUMBING = frozenset({"add", "restrict"})
"""What streams call on their app; people do not."""
APART = frozenset({"SourceSpec", "SinkSpec", "SpringtideError"})
"""Bases with an entry of their own: what they tell is not told again."""
OUT_OF_DATE = "docs/api.md is out of date: run `make api`, and commit what it writes"

Function = ast.FunctionDef
Documented = tuple[ast.stmt, str]


@dataclass(frozen=True)
class Module:
    """A module's source text, and its tree."""

    name: str
    text: str
    tree: ast.Module


@dataclass(frozen=True)
class Definition:
    """A class, a function or an assignment, and the module that has it."""

    home: Module
    node: ast.stmt


@dataclass(frozen=True)
class Entry:
    """A public class, or a type alias."""

    path: str
    """How people import it."""
    module: str
    """Where it is defined."""
    made: bool = True
    """People make one; else methods return it."""
    methods: bool = True
    """Its methods are for people, not only its fields."""

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


@dataclass(frozen=True)
class Listed:
    """A public module: all of its functions, then all of its classes."""

    path: str
    module: str


@dataclass(frozen=True)
class Section:
    """A chapter of the page."""

    title: str
    entries: tuple[Entry, ...] | Listed

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z -]", "", self.title.lower()).replace(" ", "-")


def _returned(path: str) -> Entry:
    return Entry(path, path.rpartition(".")[0], made=False)


def _named(path: str) -> Entry:
    return Entry(path, path.rpartition(".")[0], methods=False)


SECTIONS = (
    Section("App", (Entry("springtide.App", "springtide.app"),)),
    Section(
        "Streams",
        (
            _returned("springtide.dataflow.stream.Stream"),
            _returned("springtide.dataflow.keyed_stream.KeyedStream"),
            _returned("springtide.dataflow.windowed.WindowedStream"),
            _returned("springtide.dataflow.windowed.CountWindowStream"),
            _returned("springtide.dataflow.windowed.SessionStream"),
            _returned("springtide.dataflow.query.Query"),
        ),
    ),
    Section("`springtide.sources`", Listed("springtide.sources", "springtide.connectors.sources")),
    Section("`springtide.sinks`", Listed("springtide.sinks", "springtide.connectors.sinks")),
    Section("`springtide.rates`", Listed("springtide.rates", "springtide.connectors.generator.rates")),
    Section("`springtide.agg`", Listed("springtide.agg", "springtide.state.aggregates")),
    Section(
        "Reducers",
        (
            Entry("springtide.Groups", "springtide.state.logic"),
            Entry("springtide.Reduced", "springtide.state.reduce"),
            _returned("springtide.state.timers.Timer"),
        ),
    ),
    Section(
        "Time",
        (
            Entry("springtide.Ttl", "springtide.dataflow.ttl"),
            Entry("springtide.PROCESSING_TIME", "springtide.state.clock", methods=False),
        ),
    ),
    Section(
        "A running app",
        (_returned("springtide.engine.lifecycle.running.Running"),),
    ),
    Section("Errors", (Entry("springtide.SpringtideError", "springtide.errors"),)),
    Section(
        "Options and types",
        (
            _named("springtide.connectors.generator.rows.GeneratorSpec"),
            _named("springtide.control.adapt.settings.Adapt"),
            _named("springtide.migration.step.Options"),
            _named("springtide.engine.lifecycle.stop_condition.StopCondition"),
            _named("springtide.dataflow.duration.Duration"),
            _named("springtide.dataflow.fields.Fields"),
            _named("springtide.state.per_key.KeyReducer"),
            _named("springtide.state.per_key.CoReducer"),
            _named("springtide.state.per_key.KeyTimer"),
            _named("springtide.state.reduce.BatchReducer"),
            _named("springtide.state.join.Where"),
        ),
    ),
)


# Finding definitions.


@cache
def read(name: str) -> Module:
    path = SOURCES / name.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = file.read_text(encoding="utf-8")
    return Module(name, text, ast.parse(text))


def find(home: Module, name: str) -> Definition | None:
    """What a name stands for in a module, also if it is imported from another one of ours."""
    for node in home.tree.body:
        match node:
            case ast.ClassDef(name=defined) | ast.FunctionDef(name=defined) if defined == name:
                return Definition(home, node)
            case ast.Assign(targets=[ast.Name(id=defined)]) | ast.AnnAssign(target=ast.Name(id=defined)):
                if defined == name:
                    return Definition(home, node)
            case ast.ImportFrom(module=str(origin), names=names, level=0) if origin.split(".")[0] == "springtide":
                for alias in names:
                    if (alias.asname or alias.name) == name:
                        return find(read(origin), alias.name)
    return None


def found(home: Module, name: str) -> Definition:
    definition = find(home, name)
    if definition is None:
        raise SystemExit(f"{home.name}: expected a definition of {name}, got none: mend SECTIONS in this script")
    return definition


def public_names(home: Module) -> list[str]:
    """Those in `__all__`; without one, what the module itself defines."""
    listed = find(home, "__all__")
    if listed is not None and isinstance(listed.node, ast.Assign):
        return list(ast.literal_eval(listed.node.value))
    defined = [node.name for node in home.tree.body if isinstance(node, ast.ClassDef | Function)]
    return [name for name in defined if not name.startswith("_")]


def bases(home: Module, node: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
    """Those among ours, with their own bases before them."""
    for base in node.bases:
        definition = find(home, base.id) if isinstance(base, ast.Name) else None
        if definition is not None and isinstance(definition.node, ast.ClassDef):
            yield from bases(definition.home, definition.node)
            yield definition.home, definition.node


def lineage(home: Module, node: ast.ClassDef) -> list[tuple[Module, ast.ClassDef]]:
    """A class, and before it those of its bases that have no entry of their own."""
    return [(place, base) for place, base in bases(home, node) if base.name not in APART] + [(home, node)]


def with_docs(body: Sequence[ast.stmt]) -> Iterator[Documented]:
    """Each statement with the string that stands below it."""
    for node, below in zip(body, [*body[1:], None], strict=True):
        match below:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node, inspect.cleandoc(text)
            case _:
                yield node, ""


# Signatures.


def written(home: Module, node: ast.expr) -> str:
    """An expression as it is written, on one line."""
    return re.sub(r"\s*\n\s*", " ", ast.get_source_segment(home.text, node) or "")


def kind(home: Module, node: ast.expr | None) -> str:
    """An annotation, without the quotes that put its evaluation off; a choice of texts is written out."""
    match node:
        case None:
            return ""
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            value = assigned(find(home, name))
            if value is not None and written(*value).startswith("Literal["):
                return written(*value)
    return written(home, node)


def default(home: Module, node: ast.expr) -> str:
    """A default; for a name of ours that stands for a plain value, that value."""
    value: tuple[Module, ast.expr] | None = None
    match node:
        case ast.Name(id=name):
            value = assigned(find(home, name))
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            definition = find(home, owner)
            if definition is not None and isinstance(definition.node, ast.ClassDef):
                value = next(
                    (
                        (definition.home, field.value)
                        for field in fields(definition.node)
                        if field.value is not None and field_name(field) == name
                    ),
                    None,
                )
    return written(*value) if value is not None and is_plain(value[1]) else written(home, node)


def assigned(definition: Definition | None) -> tuple[Module, ast.expr] | None:
    if definition is not None and isinstance(definition.node, ast.Assign | ast.AnnAssign) and definition.node.value:
        return definition.home, definition.node.value
    return None


def is_plain(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def parameter(name: str, annotation: str, value: str) -> str:
    if annotation:
        return f"{name}: {annotation}" + (f" = {value}" if value else "")
    return name + (f"={value}" if value else "")


def parameters(home: Module, function: Function) -> list[str]:
    """Of a function, or of a method without its `self`."""

    def one(argument: ast.arg, value: ast.expr | None = None, stars: str = "") -> str:
        given = "" if value is None else default(home, value)
        return parameter(stars + argument.arg, kind(home, argument.annotation), given)

    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    result = [one(argument, value) for argument, value in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        result.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg is not None:
        result.append(one(arguments.vararg, stars="*"))
    elif arguments.kwonlyargs:
        result.append("*")
    result += [one(a, value) for a, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:
        result.append(one(arguments.kwarg, stars="**"))
    return result[1:] if positional and positional[0].arg in ("self", "cls") else result


def call(name: str, given: Sequence[str], returned: str) -> str:
    """A call as people would write it, in one line or in a line for each parameter."""
    end = f" -> {returned}" if returned else ""
    line = f"{name}({', '.join(given)}){end}"
    if len(line) <= WIDTH or not given:
        return line
    return "\n".join([f"{name}(", *(f"    {one}," for one in given), f"){end}"])


def decorators(node: ast.ClassDef | Function) -> set[str]:
    names = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return {d.id for d in names if isinstance(d, ast.Name)}


def fields(node: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and not field_name(one).startswith("_"):
            yield one


def field_name(node: ast.AnnAssign) -> str:
    return node.target.id if isinstance(node.target, ast.Name) else "_"


def field_parameter(home: Module, node: ast.AnnAssign) -> str | None:
    """A field as a parameter of the constructor; None if it is not one."""
    value = "" if node.value is None else default(home, node.value)
    match node.value:
        case ast.Call(func=ast.Name(id="field"), keywords=keywords):
            options = {keyword.arg: keyword.value for keyword in keywords}
            match options.get("init"):
                case ast.Constant(value=False):
                    return None
            factory = options.get("default_factory")
            value = f"{written(home, factory)}()" if factory is not None else ""
            if "default" in options:
                value = default(home, options["default"])
    return parameter(field_name(node), kind(home, node.annotation), value)


def constructor(home: Module, node: ast.ClassDef) -> list[str] | None:
    """What a class is called with; None if it says nothing of that."""
    if "dataclass" in decorators(node):
        return [given for field in fields(node) if (given := field_parameter(home, field)) is not None]
    for place, one in reversed(lineage(home, node)):
        for method in one.body:
            if isinstance(method, Function) and method.name == "__init__":
                return parameters(place, method)
    return None


# The page.


def docs(text: str | None) -> str:
    """A docstring as Markdown: examples become blocks of code."""
    paragraphs = (text or "").split("\n\n")
    return "\n\n".join(f"```pycon\n{one}\n```" if one.startswith(">>> ") else one for one in paragraphs)


def entry(level: int, title: str, signature: str, text: str) -> str:
    parts = [f"{'#' * level} `{title}`", f"```python\n{signature}\n```", text]
    return "\n\n".join(part for part in parts if part)


def function_entry(level: int, title: str, path: str, definition: Definition) -> str:
    node, home = definition.node, definition.home
    assert isinstance(node, Function)
    if "property" in decorators(node):
        signature = f"{path}: {kind(home, node.returns)}"
    else:
        signature = call(path, parameters(home, node), kind(home, node.returns))
    return entry(level, title, signature, docs(ast.get_docstring(node)))


def class_entries(level: int, title: str, wanted: Entry, definition: Definition) -> Iterator[str]:
    """A class with its fields, then its methods."""
    node, home = definition.node, definition.home
    assert isinstance(node, ast.ClassDef)
    given = constructor(home, node) if wanted.made else None
    signature = f"class {wanted.path}" if given is None else call(f"class {wanted.path}", given, "")
    text = [docs(ast.get_docstring(node)), "\n".join(field_lines(home, node))]
    yield entry(level, title, signature, "\n\n".join(part for part in text if part))
    if wanted.methods:
        short = title.removeprefix("springtide.")
        for place, method in public_methods(home, node):
            name = f"{short}.{method.name}"
            yield function_entry(level + 1, name, f"{wanted.name}.{method.name}", Definition(place, method))


def field_lines(home: Module, node: ast.ClassDef) -> Iterator[str]:
    """The fields that a docstring tells more of, or that no constructor shows."""
    shown = "dataclass" in decorators(node)
    for one, text in with_docs(node.body):
        if not isinstance(one, ast.AnnAssign) or field_name(one).startswith("_") or (shown and not text):
            continue
        name = field_name(one) if shown else field_parameter(home, one)
        told = f": {' '.join(text.split())}" if text else ""
        yield f"- `{name}`{told}"


def public_methods(home: Module, node: ast.ClassDef) -> Iterator[tuple[Module, Function]]:
    """Those with a docstring: what has none does what its base says, or is not for people."""
    apart = [base for _, base in bases(home, node) if base.name in APART]
    told = {method.name for base in apart for method in base.body if isinstance(method, Function)}
    for place, one in lineage(home, node):
        for method in one.body:
            if not isinstance(method, Function) or method.name.startswith("_") or method.name in PLUMBING:
                continue
            if ast.get_docstring(method) and method.name not in told:
                yield place, method


def alias_entry(level: int, wanted: Entry, definition: Definition) -> str:
    value = assigned(definition)
    assert value is not None
    text = next(text for node, text in with_docs(definition.home.tree.body) if node is definition.node)
    return entry(level, wanted.name, f"{wanted.path} = {written(*value)}", docs(text))


def listed_entries(listed: Listed) -> Iterator[str]:
    home = read(listed.module)
    yield docs(ast.get_docstring(home.tree))
    definitions = [(name, found(home, name)) for name in public_names(home)]
    short = listed.path.removeprefix("springtide.")
    for name, definition in definitions:
        if isinstance(definition.node, Function):
            yield function_entry(3, f"{short}.{name}", f"{listed.path}.{name}", definition)
    for name, definition in definitions:
        if isinstance(definition.node, ast.ClassDef):
            yield from class_entries(3, f"{short}.{name}", Entry(f"{listed.path}.{name}", listed.module), definition)


def section_entries(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    if isinstance(section.entries, Listed):
        yield from listed_entries(section.entries)
        return
    for one in section.entries:
        definition = found(read(one.module), one.name)
        if isinstance(definition.node, ast.ClassDef):
            yield from class_entries(3, one.path if one.path.count(".") == 1 else one.name, one, definition)
        else:
            yield alias_entry(3, one, definition)


def page() -> str:
    """All of docs/api.md."""
    contents = " · ".join(f"[{s.title}](#{s.anchor})" for s in SECTIONS)
    parts = [INTRODUCTION, contents]
    for section in SECTIONS:
        parts.extend(section_entries(section))
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write docs/api.md from the docstrings of the public API.")
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if the page is out of date")
    text = page()
    if not parser.parse_args(arguments).check:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
        return 0
    if not PAGE.exists() or PAGE.read_bytes() != text.encode():
        print(OUT_OF_DATE, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
