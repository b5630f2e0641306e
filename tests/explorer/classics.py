"""Classic models with known numbers of states, in the modelling API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dra_spec.explorer.model import (
    Action,
    ActionType,
    AlwaysPossible,
    DeadlockFree,
    Kind,
    Model,
    Outcome,
    Property,
    Slot,
    StateInvariant,
    StepInvariant,
    Truth,
    View,
    action,
)

ROOM = frozenset({"room"})


def slot(name: str, initial: Any) -> Slot[Any]:
    return Slot(name, initial, "room")


def instance(kind: ActionType, context: Any = None, **params: Any) -> Action:
    return Action(kind, params, ROOM, context)


def truth(value: bool) -> Truth:
    return Truth.TRUE if value else Truth.FALSE


# dining philosophers: take one fork, take the other, put both down


@attrs.frozen(eq=False)
class Table:
    forks: list[Slot[Any]]  # None, or who holds it
    first: list[int]  # the fork that a philosopher takes first
    second: list[int]


@action("philosopher.take", writer="philosopher")
def take(v: View, table: Table, who: int, which: int) -> Iterator[Outcome]:
    """Takes the first fork, or the second one when the first is held."""
    first, second = table.forks[table.first[who]], table.forks[table.second[who]]
    if which == 1:
        if v.value(first) != who or v.value(second) is not None:
            return
    elif v.value(first) is not None:
        return
    outcome = v.outcome("ok")
    outcome[second if which else first] = who
    yield outcome


@action("philosopher.put", writer="philosopher")
def put(v: View, table: Table, who: int) -> Iterator[Outcome]:
    """Puts both forks down."""
    forks = [table.forks[table.first[who]], table.forks[table.second[who]]]
    if all(v.value(fork) == who for fork in forks):
        outcome = v.outcome("ok")
        for fork in forks:
            outcome[fork] = None
        yield outcome


def philosophers(count: int, ordered: bool) -> Model:
    """`ordered`: the last philosopher takes the forks the other way round, which breaks the circle."""
    left = list(range(count))
    right = [(i + 1) % count for i in range(count)]
    if ordered:
        left[-1], right[-1] = right[-1], left[-1]
    table = Table([slot(f"fork{i}", None) for i in range(count)], left, right)
    actions = [instance(take, table, who=i, which=w) for i in range(count) for w in (0, 1)]
    actions += [instance(put, table, who=i) for i in range(count)]

    def eats(i: int) -> Any:
        def goal(v: View) -> Truth:
            return truth(v.value(table.forks[left[i]]) == i and v.value(table.forks[right[i]]) == i)

        return goal

    properties: list[Property] = [DeadlockFree("no-deadlock", lambda v: Truth.FALSE)]
    properties += [AlwaysPossible("each-can-eat", eats(i), lambda a: True, {"philosopher": str(i)}) for i in range(count)]
    return Model("philosophers", table.forks, actions, properties)


# Peterson's mutual exclusion


@attrs.frozen(eq=False)
class Processes:
    pc: list[Slot[Any]]
    flag: list[Slot[Any]]
    turn: Slot[Any]
    polite: bool  # whether turn is given to the other one


@action("process.step", writer="process")
def step(v: View, p: Processes, me: int) -> Iterator[Outcome]:
    """The next line of the program: idle, flag up, give turn, wait, critical, flag down."""
    pc, other = v.value(p.pc[me]), 1 - me
    outcome = v.outcome(pc)
    if pc == "idle":
        outcome[p.pc[me]], outcome[p.flag[me]] = "flagged", True
    elif pc == "flagged":
        outcome[p.pc[me]] = "waiting"
        if p.polite:
            outcome[p.turn] = other
    elif pc == "waiting":
        if v.value(p.flag[other]) and v.value(p.turn) == other:
            return
        outcome[p.pc[me]] = "critical"
    else:
        outcome[p.pc[me]], outcome[p.flag[me]] = "idle", False
    yield outcome


def peterson(polite: bool = True) -> Model:
    p = Processes([slot(f"pc{i}", "idle") for i in (0, 1)], [slot(f"flag{i}", False) for i in (0, 1)], slot("turn", 0), polite)

    def exclusive(v: View) -> Truth:
        return truth(not (v.value(p.pc[0]) == "critical" and v.value(p.pc[1]) == "critical"))

    def enters(v: View, later: View, act: Action, label: str) -> Truth:
        if label != "waiting":
            return Truth.TRIVIAL
        me = act.params["me"]
        return truth(later.value(p.pc[me]) == "critical" and v.value(p.pc[1 - me]) != "critical")

    properties: list[Property] = [StateInvariant("mutual-exclusion", exclusive), StepInvariant("enters-alone", lambda a: True, enters)]

    def inside(i: int) -> Any:
        return lambda v: truth(v.value(p.pc[i]) == "critical")

    properties += [AlwaysPossible("can-enter", inside(i), lambda a: True, {"process": str(i)}) for i in (0, 1)]
    return Model("peterson", [*p.pc, *p.flag, p.turn], [instance(step, p, me=i) for i in (0, 1)], properties)


def peterson_states(polite: bool) -> int:
    """The same program written again as a function on tuples: the number of reachable states."""
    start: tuple[Any, ...] = ("idle", "idle", False, False, 0)
    seen, todo = {start}, [start]
    while todo:
        now = todo.pop()
        for me in (0, 1):
            pcs, flags, turn = list(now[:2]), list(now[2:4]), now[4]
            match pcs[me]:
                case "idle":
                    pcs[me], flags[me] = "flagged", True
                case "flagged":
                    pcs[me], turn = "waiting", (1 - me if polite else turn)
                case "waiting":
                    if flags[1 - me] and turn == 1 - me:
                        continue
                    pcs[me] = "critical"
                case _:
                    pcs[me], flags[me] = "idle", False
            after = (*pcs, *flags, turn)
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return len(seen)


# two-phase commit, as in the well-known specification with one transaction manager


@attrs.frozen(eq=False)
class Transaction:
    rm: list[Slot[Any]]
    manager: Slot[Any]
    prepared: Slot[Any]  # whom the manager knows to be prepared
    messages: Slot[Any]


@action("manager.receive", writer="manager")
def receive(v: View, t: Transaction, rm: int) -> Iterator[Outcome]:
    """Learns that a resource manager is prepared."""
    if v.value(t.manager) == "init" and v.project(t.messages, _holds, rm):
        outcome = v.outcome("ok")
        outcome[t.prepared] = v.value(t.prepared) | {rm}
        yield outcome


def _holds(messages: frozenset[Any], wanted: Any) -> bool:
    return wanted in messages


@action("manager.decide", writer="manager")
def decide(v: View, t: Transaction) -> Iterator[Outcome]:
    """Commits when all are prepared; aborts at will."""
    if v.value(t.manager) != "init":
        return
    for decision in ("commit", "abort"):
        if decision == "abort" or len(v.value(t.prepared)) == len(t.rm):
            outcome = v.outcome(decision)
            outcome[t.manager] = decision
            outcome[t.messages] = v.value(t.messages) | {decision}
            yield outcome


@action("rm.prepare", writer="rm")
def rm_prepare(v: View, t: Transaction, rm: int) -> Iterator[Outcome]:
    """Says that it is prepared."""
    if v.value(t.rm[rm]) == "working":
        outcome = v.outcome("ok")
        outcome[t.rm[rm]] = "prepared"
        outcome[t.messages] = v.value(t.messages) | {rm}
        yield outcome


@action("rm.give_up", writer="rm", kind=Kind.FAULT)
def rm_give_up(v: View, t: Transaction, rm: int) -> Iterator[Outcome]:
    """Aborts by itself."""
    if v.value(t.rm[rm]) == "working":
        outcome = v.outcome("ok")
        outcome[t.rm[rm]] = "aborted"
        yield outcome


@action("rm.obey", writer="rm")
def rm_obey(v: View, t: Transaction, rm: int, decision: str) -> Iterator[Outcome]:
    """Does what the manager decided."""
    if v.project(t.messages, _holds, decision):
        outcome = v.outcome("ok")
        outcome[t.rm[rm]] = "committed" if decision == "commit" else "aborted"
        yield outcome


def two_phase_commit(count: int) -> Model:
    t = Transaction(
        [slot(f"rm{i}", "working") for i in range(count)], slot("tm", "init"), slot("prepared", frozenset()), slot("msgs", frozenset())
    )
    actions = [instance(decide, t)]
    for i in range(count):
        actions += [instance(kind, t, rm=i) for kind in (receive, rm_prepare, rm_give_up)]
        actions += [instance(rm_obey, t, rm=i, decision=d) for d in ("commit", "abort")]

    def consistent(i: int, j: int) -> Any:
        return lambda v: truth({v.value(t.rm[i]), v.value(t.rm[j])} != {"committed", "aborted"})

    pairs = [(i, j) for i in range(count) for j in range(i)]
    properties: list[Property] = [StateInvariant("consistent", consistent(i, j), {"rms": f"{i} {j}"}) for i, j in pairs]
    return Model("2pc", [*t.rm, t.manager, t.prepared, t.messages], actions, properties)
