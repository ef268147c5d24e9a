"""Scenarios from TOML: one file is one scenario, or several that differ in what its variants say."""

import tomllib
from collections.abc import Mapping
from typing import Any

from springtide.ids import BadName, valid_name
from springtide.migration.errors import Refused
from springtide.migration.step import Options
from springtide.migration.strategies import DEFAULT, LIVE, check_live
from springtide.simulator.model.arrivals import read_profile
from springtide.simulator.scenario.fields import BadScenario, Fields
from springtide.simulator.scenario.scenario import (
    EPOCHS,
    PIPELINE,
    ClusterModel,
    ControlModel,
    FailureModel,
    FlowModel,
    MigrationModel,
    OperatorModel,
    Outage,
    Scenario,
    SourceModel,
    StateModel,
)


def read(text: str, name: str) -> tuple[Scenario, ...]:
    """All scenarios of a TOML text; BadScenario names the key that is wrong."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise BadScenario(name, "TOML", str(wrong)) from None
    variants = Fields({"variants": table.pop("variants", [{}])}).tables("variants")
    return tuple(_scenario(table, variant, name) for variant in variants)


def _scenario(table: Mapping[str, Any], variant: Fields, file: str) -> Scenario:
    name = f"{file} {variant.text('name')}" if variant.has("name") else file
    fields = Fields(_merged(table, variant.rest()))
    flow = _flow(fields.table("flow", {}))
    sources = tuple(_source(one) for one in fields.tables("sources"))
    operators = _operators(fields, {source.name for source in sources})
    if not sources or not operators:
        raise BadScenario("sources" if not sources else "operators", "one or more", [])
    scenario = Scenario(
        name=name,
        title=fields.text("title", name),
        duration_s=fields.positive("duration_s"),
        seed=fields.whole("seed", 0),
        flow=flow,
        sources=sources,
        operators=operators,
        cluster=_cluster(fields.table("cluster", {"workers": 1} if flow.kind == PIPELINE else {})),
        failures=_failures(fields.table("failures", {})),
        state=_state(fields.table("state", {})),
        migration=_migration(fields.table("migration", {})),
        control=_control(fields.table("control")),
    )
    fields.end()
    _check(scenario)
    return scenario


def _merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The table with the changes; tables in it are merged, lists of tables by the `name` of their entries."""
    found = dict(table)
    for key, value in changes.items():
        before = found.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            found[key] = _merged(before, value)
        elif _named(before) and _named(value):
            by_name = {entry["name"]: entry for entry in before or ()}
            for entry in value:
                by_name[entry["name"]] = _merged(by_name.get(entry["name"], {}), entry)
            found[key] = list(by_name.values())
        else:
            found[key] = value
    return found


def _named(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) and "name" in entry for entry in value)


def _name(fields: Fields) -> str:
    name = fields.text("name")
    try:
        return valid_name(fields.path, name)
    except BadName as bad:
        raise BadScenario(fields.key("name"), "letters, digits, '_' or '-'", bad.name) from None


def _flow(fields: Fields) -> FlowModel:
    flow = FlowModel(
        kind=fields.choice("kind", (EPOCHS, PIPELINE), EPOCHS),
        overhead_s=fields.number("overhead_s", FlowModel.overhead_s),
        trigger_s=fields.positive("trigger_s", FlowModel.trigger_s),
        most_rows=fields.whole("most_rows", least=1) if fields.has("most_rows") else None,
        jitter=fields.number("jitter", FlowModel.jitter, most=1.0),
        tick_s=fields.positive("tick_s", FlowModel.tick_s),
        buffer_rows=fields.whole("buffer_rows", FlowModel.buffer_rows, least=1),
    )
    fields.end()
    return flow


def _source(fields: Fields) -> SourceModel:
    backlog_s = fields.positive("backlog_s") if fields.has("backlog_s") else None
    source = SourceModel(_name(fields), read_profile(fields.table("rate")), backlog_s)
    fields.end()
    return source


def _operators(fields: Fields, sources: set[str]) -> tuple[OperatorModel, ...]:
    found: list[OperatorModel] = []
    for one in fields.tables("operators"):
        known = sources | {operator.name for operator in found}
        operator = _operator(one)
        strangers = [name for name in operator.inputs if name not in known]
        if strangers:
            expected = f"sources and operators told before it, of {', '.join(sorted(known))}"
            raise BadScenario(one.key("from"), expected, strangers)
        if operator.name in known:
            raise BadScenario(one.key("name"), "a name that no other source or operator has", operator.name)
        found.append(operator)
    return tuple(found)


def _operator(fields: Fields) -> OperatorModel:
    operator = OperatorModel(
        name=_name(fields),
        inputs=fields.texts("from"),
        service_s=fields.positive("service_us") / 1e6,
        selectivity=fields.number("selectivity", OperatorModel.selectivity),
        exponent=fields.number("exponent", OperatorModel.exponent, least=0.1, most=1.0),
        keys=fields.whole("keys", OperatorModel.keys),
        key_bytes=fields.number("key_bytes", OperatorModel.key_bytes),
        skew=fields.number("skew", OperatorModel.skew),
        parallelism=fields.whole("parallelism", OperatorModel.parallelism, least=1),
        affinity=fields.number("affinity", OperatorModel.affinity, most=1.0),
        remote_s=fields.number("remote_us", 0.0) / 1e6,
        row_bytes=fields.number("row_bytes", OperatorModel.row_bytes),
    )
    fields.end()
    return operator


def _cluster(fields: Fields) -> ClusterModel:
    cluster = ClusterModel(
        workers=fields.whole("workers", least=1),
        slots=fields.whole("slots", ClusterModel.slots, least=1),
        zones=fields.whole("zones", ClusterModel.zones, least=1),
        workers_a_host=fields.whole("workers_a_host", ClusterModel.workers_a_host, least=1),
        start_s=fields.number("start_s", ClusterModel.start_s),
        warm_up_s=fields.number("warm_up_s", ClusterModel.warm_up_s),
        bandwidth_bytes=fields.positive("bandwidth_mb_s", ClusterModel.bandwidth_bytes / 1e6) * 1e6,
    )
    fields.end()
    return cluster


def _failures(fields: Fields) -> FailureModel:
    outages = []
    for one in fields.tables("outages", ()):
        outages.append(Outage(one.number("at_s"), one.whole("workers", 1, least=1), one.whole("every", 1, least=1)))
        one.end()
    mean_h = fields.positive("mean_h") if fields.has("mean_h") else None
    failures = FailureModel(tuple(outages), mean_h, fields.number("detect_s", FailureModel.detect_s))
    fields.end()
    return failures


def _state(fields: Fields) -> StateModel:
    state = StateModel(
        slices=fields.whole("slices", StateModel.slices, least=1),
        replicas=fields.whole("replicas", StateModel.replicas),
        checkpoint_s=fields.positive("checkpoint_s", StateModel.checkpoint_s),
        durable_s=fields.positive("durable_s", StateModel.durable_s),
    )
    fields.end()
    return state


def _migration(fields: Fields) -> MigrationModel:
    strategy = fields.choice("strategy", LIVE, DEFAULT)
    options = Options(
        slices_an_epoch=fields.whole("slices_an_epoch", least=1) if fields.has("slices_an_epoch") else None,
        hottest_first=fields.flag("hottest_first", False),
        hold_s=fields.number("hold_s", Options.hold_s),
    )
    try:
        check_live(strategy, options)
    except Refused as refused:
        raise BadScenario(fields.path, "options that go together", str(refused)) from None
    stop_restart_s = fields.number("stop_restart_s") if fields.has("stop_restart_s") else None
    fields.end()
    return MigrationModel(strategy, options, stop_restart_s)


def _control(fields: Fields) -> ControlModel:
    policies = fields.texts("policies")
    own = {policy: fields.table(policy) for policy in policies if fields.has(policy)}
    control = ControlModel(
        policies=policies,
        interval_s=fields.positive("interval_s", ControlModel.interval_s),
        first_s=fields.positive("first_s") if fields.has("first_s") else None,
        stability=fields.table("stability").rest() if fields.has("stability") else None,
        intervals_s={policy: own[policy].positive("interval_s") for policy in own if own[policy].has("interval_s")},
        settings={policy: options.rest() for policy, options in own.items()},
    )
    fields.end()
    return control


def _check(scenario: Scenario) -> None:
    """What holds between tables."""
    slices = scenario.state.slices
    if scenario.flow.kind == PIPELINE:
        if scenario.migration.stop_restart_s is None:
            raise BadScenario("migration.stop_restart_s", "a number, as a pipeline stops for each change", None)
        if scenario.failures != FailureModel():
            raise BadScenario("failures", "none in a pipeline: they are modelled for epochs", scenario.failures)
    elif scenario.cluster.workers > slices:
        raise BadScenario("cluster.workers", f"1 to {slices}, one slice each", scenario.cluster.workers)
