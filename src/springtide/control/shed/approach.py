"""How queries get from the accuracy that they have to the one that was decided: at once, in steps, or gently.

An accuracy falls at once and rises in steps. Under the same load it is held nearly where it is, as what would move it
is mostly the noise of measuring. Whatever holds one query back, none of lower priority on its workers gains by it.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from springtide.control.shed.offer import Offer
from springtide.control.shed.tenant import Tenant
from springtide.ids import PlanVersion
from springtide.policies.shedding.graph import Query
from springtide.policies.shedding.model import Model
from springtide.policies.shedding.verdict import QodDecision

STEADY = 0.05
"""Rates that differ by less are the same load."""
GENTLE, SMALL = 0.2, 0.015
"""Under the same load an accuracy goes this share of its way in a cycle, and no more than that at once."""
FAR = 0.1
"""An accuracy that is further from its goal, in two cycles running, is not so because of noise."""
TINY = 0.005
"""Accuracies that differ by less are not worth a change."""
ENOUGH = 0.9
"""How many times the load has to fit for an app that sheds nothing to go on so: what is planned has a margin."""
TO_SPARE = 1.1
"""How many times the load has to fit for shedding to end at once."""

Wanted = dict[Tenant, dict[str, float]]
"""By app and query: the accuracy from the next epoch on."""


@dataclass(frozen=True)
class Stage:
    """What a decision was made for: who works where, and how full that is."""

    room: float
    """How many times the work of all tasks at full accuracy fits into the fullest worker."""
    workers: Mapping[str, Collection[str]]
    """By query: those that work for it, or will when everybody has moved."""
    settling: bool
    """Whether an instance moves, or has just moved."""


def stage_of(model: Model, decision: QodDecision, *, warming: bool) -> Stage:
    """The stage of a decision; `warming` tells whether somebody moved a short time ago."""
    graph = model.graph
    place = {key: model.machines[number].id for key, number in zip(model.keys, model.place.tolist(), strict=True)}
    place |= {move.instance: move.target for move in decision.moves}
    on: dict[str, set[str]] = defaultdict(set)
    load: dict[str, float] = defaultdict(float)
    for (task, _), worker in place.items():
        on[task].add(worker)
        load[worker] += decision.full_cpu.get(task, 0.0)
    workers: dict[str, set[str]] = defaultdict(set)
    for task_number, query in zip(graph.pairs.task.tolist(), graph.pairs.query.tolist(), strict=True):
        workers[graph.queries[query].name] |= on[graph.names[graph.pairs.tasks[task_number]]]
    free = dict(zip(model.machine_index, model.available.tolist(), strict=True))
    room = min((free[worker] / cores for worker, cores in load.items() if cores > 0), default=math.inf)
    return Stage(room, workers, settling=warming or bool(decision.moves))


@dataclass(frozen=True)
class Way:
    """One query on its way, in one cycle."""

    query: Query
    tenant: Tenant
    now: float
    """The accuracy that it has."""
    asked: float
    """The one that it gets from the next epoch on."""
    near: float
    """The one that it would get, if it could rise as far at once and nobody stood above it."""

    def ceiling(self, goal: float, tenant: Tenant) -> float:
        """The most for a query of lower priority on the same workers, with this goal.

        It waits for this one on its way up; if that is another app's, until it has risen, as epochs of two apps do not
        begin together. Otherwise it is above this one only if that was decided.
        """
        if self.asked < self.near or self.asked > self.now:
            return self.asked if tenant is self.tenant else min(self.now, self.asked)
        return max(goal, self.asked)


class Approach:
    """Remembers from cycle to cycle where queries could have been, and for which load that was decided."""

    def __init__(self) -> None:
        self._goals: Mapping[str, float] = {}
        self._met: dict[str, tuple[float, PlanVersion]] = {}
        """By app: the rows a second to be dealt with, and the plan, when its accuracies were last set anew."""

    def forget(self, app: str) -> None:
        """An app has ended."""
        self._met.pop(app, None)

    def next(self, offers: Mapping[Tenant, Offer], decision: QodDecision, stage: Stage, rise: float) -> Wanted:
        """What queries are to have, and never less than their minimum: what can't be worked on has to wait.

        `rise` is the most that an accuracy rises in one cycle. Apps share workers: if the load of one has changed, all
        are set anew, or a steady one would not give way to it.
        """
        all_keep_up = all(offer.keeps_up for offer in offers.values())
        changed = [tenant for tenant, offer in offers.items() if not self._steady(tenant, offer)]
        hold = not changed and not stage.settling and stage.room < TO_SPARE
        ways: list[Way] = []
        wanted: Wanted = {tenant: {} for tenant in offers}
        queries = [(query, tenant) for tenant in offers for query in tenant.queries()]
        for query, tenant in sorted(queries, key=lambda each: -each[0].priority):
            name = tenant.step(query.name) or query.name
            now, goal = tenant.accuracy[name], decision.accuracy[query.name]
            # While all apps keep up, none begins to shed: what was seen counts more than what is reckoned.
            stays = now == 1 and (all_keep_up or (hold and stage.room > ENOUGH))
            before = self._goals.get(query.name, now)
            near = now if stays else gently(now, goal, before) if hold else goal
            most = min((way.ceiling(goal, tenant) for way in ways if _above(way, query, stage)), default=1.0)
            asked = max(offers[tenant].least[name], min(near, now + rise, most))
            if asked < near:
                self._met.pop(tenant.app, None)  # It is on its way, and goes on in the next cycle.
            wanted[tenant][name] = asked
            ways.append(Way(query, tenant, now, asked, near))
        self._goals = decision.accuracy
        return wanted

    def _steady(self, tenant: Tenant, offer: Offer) -> bool:
        """Whether an app has the load and the plan that its accuracies were set for; if not, they are set anew."""
        due, plan = offer.total, tenant.plan_version
        met = self._met.get(tenant.app)
        if met is not None and met[1] == plan and abs(due - met[0]) <= STEADY * met[0]:
            return True
        self._met[tenant.app] = (due, plan)
        return False


def _above(way: Way, query: Query, stage: Stage) -> bool:
    """Whether a query is to give way to another one: of higher priority, with a worker that works for both."""
    return way.query.priority > query.priority and bool(
        set(stage.workers[way.query.name]) & set(stage.workers[query.name])
    )


def gently(now: float, goal: float, before: float) -> float:
    """A small step of the way to a goal, if it is worth one; to full accuracy it always is.

    If the goal of the cycle before was far away in the same direction, it is no noise: as far as both go.
    """
    least = min(goal, before) if goal > now else max(goal, before)
    if (goal - now) * (before - now) > 0 and abs(least - now) > FAR:
        return least
    if goal >= 1:
        return min(1.0, now + SMALL)
    step = max(-SMALL, min(SMALL, GENTLE * (goal - now)))
    return now if abs(step) < TINY else now + step
