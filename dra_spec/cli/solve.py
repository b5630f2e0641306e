"""Answers to `allocate`: one pod after the other as kube-scheduler does, or all together by the solver."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dra_spec.allocation import AllocatedState, Allocator, FatalAllocation, Inventory, Result, Settings, UnsupportedFeature
from dra_spec.allocation.explain import on_node
from dra_spec.allocation.explain_upstream import Upstream
from dra_spec.allocation.extended_answer import placed
from dra_spec.allocation.extended_nodes import wanted_on
from dra_spec.allocation.gates import DEFAULT_VERSION
from dra_spec.allocation.in_turn import User, charged, place_call
from dra_spec.allocation.ledger import Charge, Ledger
from dra_spec.allocation.z3_manifests import Waiting
from dra_spec.allocation.z3_place import place
from dra_spec.allocation.z3_problem import Pick, Problem
from dra_spec.allocation.z3_solve import best, every, one
from dra_spec.allocation.z3_verdict import Kind, verdict
from dra_spec.resources import Loaded, Quantity
from dra_spec.resources.claims import AllocatedDevice

MAX_TRIED = 200  # allocations of several pods, in search of one that the nodes can afford


@attrs.frozen(eq=False)
class Answer:
    """One way to place the calls. `nodes` and `picks` as in a Solution; a call without node does not fit: `reasons` by call says why, and
    `kinds` whether that is a fatal error. `charges`: by call what the devices cost the node; `remarks`: what else is to be said."""

    nodes: tuple[str | None, ...]
    picks: tuple[Pick, ...]
    reasons: dict[int, str] = attrs.field(factory=dict)
    kinds: dict[int, Kind] = attrs.field(factory=dict)
    charges: dict[int, tuple[Charge, ...]] = attrs.field(factory=dict)
    remarks: tuple[str, ...] = ()

    def kind(self, call: int) -> Kind:
        """fits, no-fit or fatal."""
        return "fits" if self.nodes[call] is not None else self.kinds.get(call, "no-fit")


@attrs.frozen(eq=False)
class Solving:
    """What `allocate` has been asked."""

    loaded: Loaded
    todo: Waiting
    settings: Settings

    @property
    def problem(self) -> Problem:
        return self.todo.problem

    def users(self, call: int) -> list[User]:
        """The pods of a call."""
        pods = self.todo.pods[call] if self.todo.pods else ()
        return [User.of(self.loaded, self.problem.calls[call], pod) for pod in pods]

    def ledger(self) -> Ledger:
        """Raises UnsupportedFeature."""
        return Ledger.of(self.loaded, Inventory.of_loaded(self.loaded))

    def reference(self) -> Answer:
        """One pod after the other, each on the first node where it fits. Raises FatalAllocation and UnsupportedFeature."""
        ledger = self.ledger()
        allocator = Allocator(ledger.inventory, self.settings)
        problem = self.problem
        held = [c.status.allocation for c in self.loaded.claims if c.status.allocation]
        nodes: list[str | None] = []
        picks: list[Pick] = []
        answer = Answer((), ())
        start = 0
        for i, call in enumerate(problem.calls):
            found = place_call(allocator, problem, call, AllocatedState.of(held), ledger, self.users(i))
            nodes.append(found.node)
            if found.node is None:
                answer.reasons[i], answer.kinds[i] = found.reason, found.kind
            else:
                answer.charges[i] = found.charges
                problem = attrs.evolve(problem, running=(*problem.running, *placed(call, found.node)))
                held += [r.allocation for r in found.results.values()]
                picks += [p for j, result in found.results.items() for p in _picks(start + j, result.results)]
                self._booked(ledger, i, found.node, found.charges)
            start += len(call.claims)
        return attrs.evolve(answer, nodes=tuple(nodes), picks=tuple(picks), remarks=self._any_order())

    def _any_order(self) -> tuple[str, ...]:
        if not self.settings.stable or len({s.pool_id for s in self.problem.slices}) < 2:
            return ()
        text = "with these feature gates kube-scheduler tries pools in any order: other devices are possible, and other errors"
        return (text,)

    def _booked(self, ledger: Ledger, call: int, node: str, charges: Sequence[Charge]) -> None:
        for user, charge in zip(self.users(call), charges, strict=False):
            ledger.add(node, user.pod, charge.cost)

    def z3(self) -> Answer:
        """All pods together; a single one on its first node, with the devices that come first. Raises FatalAllocation and
        UnsupportedFeature."""
        return self._alone() if len(self.problem.calls) == 1 else self._together()

    def _alone(self) -> Answer:
        problem = self.problem
        upstream = Upstream.of(problem)
        given_up = upstream.gives_up(problem)
        if given_up is not None:
            found = verdict(problem, given_up, upstream)
            return Answer((None,), (), {0: found.words}, {0: found.kind}, remarks=(*self._any_order(), *_told(found.remark)))
        why: list[str] = []
        unknown = ""
        for name in problem.calls[0].nodes:
            found = verdict(problem, name, upstream)
            if found.solution is None:
                unknown = unknown or (found.words if found.kind == "unknown" else "")
                if found.kind == "fatal":
                    return Answer((None,), (), {0: found.words}, {0: found.kind})
                why += [found.words, *_told(found.remark)]
                continue
            answer = Answer(found.solution.nodes, found.solution.picks, remarks=(*self._any_order(), *_told(found.remark)))
            refused = self._bill(answer)
            if not refused:
                return answer
            why.append(refused)
        if unknown:
            raise UnsupportedFeature(unknown)
        reason = why[0] if len(set(why)) == 1 else f"no node has room: {'; '.join(dict.fromkeys(why))}"
        return Answer((None,), (), {0: reason}, {0: "no-fit"})

    def _together(self) -> Answer:
        problem = self.problem
        remarks = (*self._older(), *self._errors())
        solution = place(problem)
        if solution is not None:
            answer = Answer(solution.nodes, solution.picks, remarks=remarks)
            refused = self._bill(answer)
            return self._affordable(refused, remarks) if refused else answer
        reasons = {}
        for i, call in enumerate(problem.calls):
            alone = any(one(on_node(attrs.evolve(problem, calls=(call,)), name)) is not None for name in call.nodes)
            reasons[i] = "fits alone, but not together with the others" if alone else "fits on no node, even alone"
        return Answer((None,) * len(problem.calls), (), reasons, remarks=remarks)

    def _affordable(self, refused: str, remarks: tuple[str, ...]) -> Answer:
        """An allocation whose devices cost no node more than it has, when the first one does: all are tried, if they are not too many."""
        tried = every(self.problem, MAX_TRIED)
        for solution in tried:
            answer = Answer(solution.nodes, solution.picks, remarks=remarks)
            if not self._bill(answer):
                return answer
        if len(tried) == MAX_TRIED:
            raise UnsupportedFeature(f"ordinary resources that devices cost, with several pods at once: {refused}")
        reason = f"no allocation of all pods leaves the nodes enough: {refused}"
        number = len(self.problem.calls)
        return Answer((None,) * number, (), dict.fromkeys(range(number), reason), remarks=remarks)

    def best(self) -> Answer:
        """The only pod on the node where it gets the most of its first alternatives. Raises FatalAllocation and UnsupportedFeature."""
        (call,) = self.problem.calls
        found = best(self.problem, call.nodes)
        if found is None:
            return self._alone()
        answer = Answer(
            found.solution.nodes, found.solution.picks, remarks=(f"score {found.score}: 8 for a first alternative, 7 for a second",)
        )
        if self._bill(answer):
            raise UnsupportedFeature("the best node beside ordinary resources that devices cost")
        return answer

    def _older(self) -> tuple[str, ...]:
        version = self.settings.version
        text = f"the rules are those of Kubernetes {DEFAULT_VERSION}; what kube-scheduler {version} gets wrong is not among them"
        return () if version == DEFAULT_VERSION else (text,)

    def _errors(self) -> tuple[str, ...]:
        """Upstream meets errors depending on what earlier pods took, so for several pods the solver says only whether there is a way."""
        upstream = Upstream.of(self.problem)
        found = []
        for call in self.problem.calls:
            alone = attrs.evolve(self.problem, calls=(call,))
            node = upstream.gives_up(alone)
            if node is not None:
                words = upstream.says(alone, node)[1]
                found.append(f"this is whether an allocation exists; kube-scheduler gives up {call.label} if it comes first: {words}")
        return tuple(found)

    def all(self, limit: int) -> list[Answer]:
        """Up to so many different allocations; none that costs a node more than it has. Raises FatalAllocation and UnsupportedFeature."""
        answers = [Answer(s.nodes, s.picks) for s in every(self.problem, limit)]
        found = [a for a in answers if not self._bill(a)]
        if len(found) < len(answers) == limit:
            raise UnsupportedFeature("all allocations beside ordinary resources that devices cost")
        return found

    def short(self, call: int, node: str, upstream: Upstream) -> str:
        """Why a node on which the claims of the call fit has not the ordinary resources that their devices cost; "" if it has.

        Raises FatalAllocation and UnsupportedFeature.
        """
        ledger = self.ledger()
        if not ledger.matters:
            return ""
        labels = [c.label for c in self.problem.calls[call].claims if wanted_on(self.problem, c, node)]
        results = upstream.results(attrs.evolve(self.problem, calls=(self.problem.calls[call],)), node)
        chosen = {label: r.results for label, r in zip(labels, results, strict=True)}
        return next((c.refused for c in charged(ledger, node, self.users(call), chosen) if c.refused), "")

    def _bill(self, answer: Answer) -> str:
        """Adds to the answer what its devices cost; why a node does not do, "" if all do."""
        ledger = self.ledger()
        start = 0
        for i, (call, node) in enumerate(zip(self.problem.calls, answer.nodes, strict=True)):
            assert node is not None
            mine = {c.label: [_device(p) for p in answer.picks if p.claim == start + j] for j, c in enumerate(call.claims)}
            answer.charges[i] = charged(ledger, node, self.users(i), {k: v for k, v in mine.items() if v})
            refused = next((c.refused for c in answer.charges[i] if c.refused), "")
            if refused:
                return refused
            self._booked(ledger, i, node, answer.charges[i])
            start += len(call.claims)
        return ""


def failed(problem: Problem, error: FatalAllocation) -> Answer:
    """Nothing is allocated, because upstream would abort before it looks at any node."""
    return Answer((None,) * len(problem.calls), (), {0: str(error)}, {0: "fatal"})


def _told(remark: str) -> tuple[str, ...]:
    return (remark,) if remark else ()


def _picks(claim: int, results: Sequence[Result]) -> list[Pick]:
    return [Pick(claim, r.request, r.name, r.admin, tuple(sorted((k, q.value) for k, q in r.consumed_capacity.items()))) for r in results]


def _device(pick: Pick) -> AllocatedDevice:
    driver, _, rest = pick.device.partition("/")
    pool, _, device = rest.rpartition("/")
    consumed = {k: Quantity(v, "binary") for k, v in pick.consumed}
    return AllocatedDevice(request=pick.request, driver=driver, pool=pool, device=device, consumed_capacity=consumed)
