"""What the compiled kernels and their Python sides have in common: codes, counters, and the tuples of arrays that are passed.

Machine code is cached per file: after a change here, `touch kernels.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# codes in trees: >= 0 an inner node, or never seen, or on the list of requests, or leaf n as LEAF - n
UNKNOWN, REQUESTED, LEAF = -1, -2, -3  # leaf n has the code LEAF - n
# statuses
DONE, GROW, FULL, LIMIT, CONFLICT = 0, 1, 2, 3, 4
# counters
STATES, POS, END, FAULTY, RETRIES, REQUESTS, RENAMES, BUFFERED, EDGES, MAX_STATES, LISTED, EXPAND_ALL, STAMP, WIDEST, RENAMED, TOUCHED = (
    range(16)
)
COUNTERS = 16
# flags of a state
VIOLATING, ALIVE, ESCAPING = 1, 2, 4
ACTION_BITS = 20  # in pairs (state, action) on the list of retries
OUTCOME_BITS = 12  # in `via`, below the action
NO_PARENT = 0xFFFFFFFF


class Forest(NamedTuple):
    """The decision trees. nodes: position, base in seen, base in child. outcomes: constants, parts, steps (from, to each), beyond."""

    nodes: Any
    seen: Any
    child: Any
    roots: Any  # per tree: its cell in child
    leaves: Any  # first, count in outcome_list
    outcome_list: Any
    outcomes: Any
    constants: Any  # slot, value
    trees: Any  # of parts and of step invariants


class Dispatch(NamedTuple):
    """Which actions are worth a walk, by what is seen at the roots. Actions whose trees begin with one observer make a group.

    The entries of group g for what is seen are those from first[base + seen] to first[base + seen + 1]; where that is not known yet,
    those from unknown[g] to unknown[g + 1]. Entries before unknown[0] are for every state.
    """

    groups: Any  # position, base in seen, base in first
    first: Any
    unknown: Any
    entries: Any  # action, cell in child where the walk begins


class Layout(NamedTuple):
    """Where each slot is in a row: word, shift, mask."""

    word: Any
    shift: Any
    mask: Any


class Store(NamedTuple):
    """The states. table: tag (32 bits), number + 1 (32 bits); 0 is empty."""

    rows: Any
    parent: Any
    via: Any
    flags: Any
    table: Any
    edges: Any  # from, to
    edge_class: Any


class Work(NamedTuple):
    """Scratch space, lists and statistics."""

    values: Any  # of the state before, then of the state after
    written: Any  # slots written by an outcome
    stamps: Any  # per slot, per object
    rows: Any  # successors that are not yet in the table
    source: Any
    via: Any
    hashes: Any
    retries: Any  # state << ACTION_BITS | action
    again: Any  # the same, being worked off
    requests: Any  # state, tree
    request_after: Any  # values of the state after, for step invariants
    taken: Any  # per action
    enabled: Any
    beyond: Any  # per reason
    action_class: Any  # per action: class of its edges, -1: none
    step_bad: Any  # per property: state, via
    saw: Any  # per property: truths seen, as bits
    tree_property: Any  # per tree: index of its property


class Versions(NamedTuple):
    """Which versions are in which values. A bearer is a pair (slot, object)."""

    slot_first: Any  # per slot: its bearers, in slot_bearers
    slot_bearers: Any
    bearers: Any  # slot, object, base in masks
    masks: Any
    object_first: Any
    object_bearers: Any  # slot, number of the bearer, base in masks
    names: Any  # rename table: bearer << 32 | value, + 1
    name_masks: Any
    name_values: Any
    requests: Any  # places in the rename table
