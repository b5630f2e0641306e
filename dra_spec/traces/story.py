"""A trace as a story in plain text: who did what, why it could, what changed, what the writer wrongly believed, what broke."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs
from rich.text import Text

from dra_spec.traces.choices import choice
from dra_spec.traces.plain import Plain, is_version, short
from dra_spec.traces.trace import Belief, Change, Step, Trace

_EVENTS = re.compile(r"watch/[^/]+/(claim|pod)/")  # contents of undelivered events: the list of their names is told
_MOST_READS = 6  # the rest is in the trace file


def text(trace: Trace) -> str:
    """The story as plain text."""
    return story(trace).plain


def story(trace: Trace) -> Text:
    """The story with styles for a terminal."""
    out = Text()
    out.append(f"{trace.promise} is broken in {trace.model.name} {_how(trace)}\n", "bold red")
    if trace.statement:
        out.append(f"  promise: {trace.statement}\n")
    width = max((len(step.who) for step in trace.steps), default=0)
    after = [*(step.believed for step in trace.steps), trace.believed][1:]
    for step, believed in zip(trace.steps, after, strict=True):
        _marks(out, trace, step.number - 1)
        _append(out, step, width)
        for belief in believed:
            if belief not in step.believed:
                out.append(f"{' ' * (8 + width)}now out of date: {_belief(belief)}\n", "magenta")
    _marks(out, trace, len(trace.steps))
    for line in trace.broken:
        out.append(f"  => {line}\n", "bold")
    return out


def _how(trace: Trace) -> str:
    count = len(trace.steps)
    steps = f"{count} step{'s' if count != 1 else ''}"
    if trace.loop is None:
        return f"after {steps}"
    if trace.loop == count:
        return f"by a run that may end after {steps}"
    return f"by a run of {steps}, {'the last' if count - trace.loop == 1 else f'the last {count - trace.loop}'} of them for ever"


def _marks(out: Text, trace: Trace, done: int) -> None:
    """What is to be said after so many steps of a run of a leads-to promise."""
    if trace.due == done:
        out.append("      from here on the goal is owed\n", "yellow")
    if trace.loop == done:
        out.append(f"      {'the run may end here' if done == len(trace.steps) else 'from here on the steps repeat for ever'}\n", "yellow")


def _append(out: Text, step: Step, width: int) -> None:
    chosen = choice(step)
    fault = step.outcome not in ("ok", "") and chosen is None
    out.append(f"{step.number:4}. ", "dim")
    out.append(f"{step.who:<{width}}  ", "cyan")
    out.append(step.what.rstrip(".") or step.action)
    if fault:
        out.append(f" -> {step.outcome}", "yellow")
    out.append(f"   [{' '.join(part for part in (step.step, step.title) if part)}]\n", "dim")
    margin = " " * (8 + width)
    why = _why(step)
    if why:
        out.append(f"{margin}because {why}\n", "dim")
    if chosen is not None:
        out.append(f"{margin}allocation: {attrs.evolve(chosen, instead='')}\n")
    if chosen is not None and chosen.instead:
        out.append(f"{margin}upstream's allocator would have answered otherwise: {chosen.instead}\n", "yellow")
    for belief in used_beliefs(step):
        out.append(f"{margin}acts on what is out of date: {_belief(belief)}\n", "magenta")
    for change in step.changes:
        told = _change(change)
        if told:
            out.append(f"{margin}{told}\n")


def used_beliefs(step: Step) -> Iterator[Belief]:
    """The outdated copies that the step itself looked at."""
    read = [name for name, _ in step.because]
    for belief in step.believed:
        if any(name == belief.slot or name.startswith((belief.slot + ".", belief.slot + ":")) for name in read):
            yield belief


def _why(step: Step) -> str:
    parts = [f"{_read(name)} is {short(found)}" for name, found in step.because if _telling(step, name, found)]
    shown = ", ".join(parts[:_MOST_READS])
    return f"{shown}, and {len(parts) - _MOST_READS} more" if len(parts) > _MOST_READS else shown


def _telling(step: Step, name: str, found: Plain) -> bool:
    """Whether a read helps to understand the step: no budgets, no whole objects, versions only where they decided the outcome."""
    if name.startswith("budget/") or isinstance(found, dict) or (isinstance(found, list) and found):
        return False
    return not is_version(found) or step.outcome in ("conflict", "invalid")


def _read(name: str) -> str:
    """`slot:_function(args)` as `slot function(args)`."""
    slot, colon, function = name.partition(":")
    return f"{slot} {function.strip('_').replace('_', ' ').removesuffix('()')}" if colon else name


def _belief(belief: Belief) -> str:
    if isinstance(belief.believed, dict) and isinstance(belief.actual, dict):
        told = ", ".join(f"{name} {short(old)} (API: {short(belief.actual.get(name))})" for name, old in belief.believed.items())
        return f"{belief.slot} has {belief.object} with {told}"
    return f"{belief.slot} has {belief.object} as {short(belief.believed)} (API: {short(belief.actual)})"


def _change(change: Change) -> str:
    before, after = change.before, change.after
    if _EVENTS.match(change.slot):
        return ""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        told = [_field(name, before[name], after[name]) for name in before if not _only_version(before[name], after[name])]
        return f"{change.slot}: {', '.join(told)}" if told else ""
    if _only_version(before, after):
        return ""
    return f"{change.slot}: {short(before)} -> {short(after)}"


def _field(name: str, before: Plain, after: Plain) -> str:
    if isinstance(before, list) and isinstance(after, list):
        gained = [item for item in after if item not in before]
        lost = [item for item in before if item not in after]
        signs = [f"+{short(item)}" for item in gained] + [f"-{short(item)}" for item in lost]
        if signs:
            return f"{name} {' '.join(signs)}"
    return f"{name} {short(before)} -> {short(after)}"


def _only_version(before: Plain, after: Plain) -> bool:
    return is_version(before) and is_version(after)
