"""What the compiled kernels and their Python sides have in common: codes, counters, and the tuples of arrays that are passed.

The codes are part of the machine code: kernel_cache.py looks at this file too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# codes in trees: >= 0 an inner node, or never seen, or leaf n as LEAF - n
UNKNOWN, LEAF = -1, -3  # leaf n has the code LEAF - n
# statuses
DONE, GROW, FULL, LIMIT, CONFLICT = 0, 1, 2, 3, 4
# counters
STATES, POS, END, FAULTY, RETRIES, REQUESTS, RENAMES, BUFFERED, EDGES, MAX_STATES, LISTED, EXPAND_ALL, STAMP, WIDEST, APART, TOUCHED = (
    range(16)
)
COUNTERS = 16
# flags of a state
VIOLATING, ALIVE, ESCAPING = 1, 2, 4
ACTION_BITS = 20  # in pairs (state, action) on the list of retries
OUTCOME_BITS = 12  # in `via`, below the action
NO_PARENT = 0xFFFFFFFF
NODE, CHUNK = 8, 6  # numbers per node and per chunk of the merged forest


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


class Merged(NamedTuple):
    """The trees of all actions as one forest (kernels_merge.py). Flat arrays, since a row of a matrix costs a multiplication.

    An entry is what is left to do, two numbers. (action, leaf): its tree leads there. (action, -1 - cell): walk the tree from that cell
    of `child`, where no path was known. (-1, node): look at that node. Entries of a node for what is seen there are those from first[base +
    seen] to first[base + seen + 1]; where it has no number yet, `capacity` takes the place of `seen`. Those from first[0] to first[1]
    are for every state.

    A chunk is a field of a row, some slots side by side. What is left to do when those slots are known, beginning with the nodes of the
    root that look at one of them, is remembered in `memo`: from and to in `entries`; to = 0: not worked out yet.
    """

    nodes: Any  # NODE numbers each: word, shift, mask, base in seen, base in first, capacity, chunk, position
    first: Any
    entries: Any
    stack: Any  # ranges of entries: from, to
    chunks: Any  # CHUNK numbers each: word, shift, mask, base in memo, root entries: from, to
    memo: Any
    pool: Any  # how many entries are used, from where on they are remembered ones


class Packed(NamedTuple):
    """What outcomes do to a packed row: row & keep | put."""

    keep: Any
    put: Any
    plain: Any  # per outcome: whether that is all it does
    plain_leaf: Any  # per leaf: whether all its outcomes are plain


class Effects(NamedTuple):
    """What outcomes that are more than masks did before (kernels_effects.py)."""

    need: Any  # per outcome: the bits of a packed row that it depends on, or changes
    memory: Any  # per line: outcome + 1, those bits before, and after; no lines: nothing is remembered


class Layout(NamedTuple):
    """Where each slot is in a row: word, shift, mask; and in which chunk, see Merged."""

    word: Any
    shift: Any
    mask: Any
    chunk: Any


class Moves(NamedTuple):
    """How rows get another layout: word w of the new row is made of the moves from first[w] to first[w + 1]."""

    first: Any
    word: Any  # of the old row
    mask: Any  # bits in that word
    turn: Any  # how far they move, modulo the length of a word


class Store(NamedTuple):
    """The states. table: tag (32 bits), number + 1 (32 bits); 0 is empty."""

    rows: Any
    kept: Any  # what the table compares: the rows, or their fingerprints (then old rows are gone)
    keys: Any  # of fingerprints; none: not in use
    key_first: Any  # per slot, in keys
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
    kept: Any  # the rows or their fingerprints, like Store.kept
    source: Any
    via: Any
    hashes: Any
    retries: Any  # state << ACTION_BITS | action
    again: Any  # the same, being worked off
    ready: Any  # of the state at hand: action, leaf
    requests: Any  # state, tree, place in the trees
    request_after: Any  # values of the state after, for step invariants
    asked: Any  # the places in trees that are on the list of requests, as a table
    taken: Any  # per action
    enabled: Any
    beyond: Any  # per reason
    action_class: Any  # per action: class of its edges, -1: none
    step_bad: Any  # per property: state, via
    saw: Any  # per property: truths seen, as bits
    tree_property: Any  # per tree: index of its property


class Pile(NamedTuple):
    """The successors that several workers made (kernels_share.py); each worker has a part of it as the buffer of its `Work`."""

    rows: Any
    kept: Any
    source: Any
    via: Any
    hashes: Any
    became: Any
    pieces: Any  # from, to; in the order of the states that the successors come from


class Share(NamedTuple):
    """What a worker looks after in the table."""

    bounds: Any  # first and last place; how many searches are left over; (nothing); how many states there are
    fresh: Any  # per piece: how many new states were found
    late: Any  # searches that are left over: place in the pile, piece
    mine: Any  # scratch: places in the pile, or states and their hashes


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
    requests: Any  # names that are not known yet: name, mask
