"""The kubelet's way back: termination, unprepare, phase and final delete (K13 to K25), the reconcile loop (R1 to R3), and its side of a
call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dra_spec.reference.apiserver import POD, ApiServer
from dra_spec.reference.claiminfo import ClaimInfoCache
from dra_spec.reference.kubelet_task import GONE, LOOP, SYNCING, TERMINATED, TERMINATING, UNKNOWN, WORKER, Task, Want
from dra_spec.reference.machine import EXITED, UNPREPARE, Call, Machine, Sandbox
from dra_spec.reference.shapes import Object, deleting, node_name, terminal, uid_of
from dra_spec.reference.steps import Body, Move, Moves, Step, Thread, Turn

if TYPE_CHECKING:
    from dra_spec.reference.world import World


class Stopping:
    """What a kubelet does to end a pod. The attributes belong to `Kubelet`."""

    world: World
    machine: Machine
    api: ApiServer
    cache: ClaimInfoCache
    uids: dict[str, str]
    running: bool
    lock: str | None
    lives: dict[str, str]
    workers: dict[str, tuple[Task, Thread]]
    loops: dict[str, tuple[Task, Thread]]

    def move(self, verb: str, pod: str, **params: str | int) -> Move:
        """The name of a move of this kubelet."""
        raise NotImplementedError

    def _begin(self, pod: str, task: Task, body: Body, turn: Turn) -> None:
        raise NotImplementedError

    def _advance(self, threads: dict[str, tuple[Task, Thread]], turn: Turn) -> None:
        raise NotImplementedError

    def step(self, verb: str, pod: str, *, needs: Callable[[], bool] | None = None, **params: str | int) -> Step:
        """The announcement of a step of a worker or of the loop."""
        return Step(f"kubelet.{verb}", needs, node=self.machine.name, pod=pod, **params)

    def unlocked(self) -> bool:
        """Whether the cache lock is free."""
        return self.lock is None

    # -- calls

    def send(self, turn: Turn, pod: str, task: Task, driver: str, method: str) -> bool:
        """K6, K19: puts a call on its way. "no-plugin": nobody serves; "failed": the request never arrives."""
        if not self.machine.serving[driver]:
            turn.took("no-plugin")
            return False
        if turn.inject("failed", "rpc-failed"):
            turn.took("failed")
            return False
        claims = [(want.claim, want.uid) for want in task.batch if driver in want.drivers]
        task.waiting, task.lane = driver, self.machine.send(driver, pod, Call(method, claims))
        turn.took("ok")
        return True

    def call(self, pod: str, task: Task) -> Call:
        """The call that a task waits for."""
        assert task.waiting is not None
        found = self.machine.lanes[task.waiting, pod][task.lane]
        assert found is not None
        return found

    def answer_is(self, pod: str, task: Task, failed: bool) -> bool:
        """Whether the answer is there, and an error or not."""
        call = self.call(pod, task)
        return call.answered and call.failed == failed

    def end_call(self, pod: str, task: Task) -> None:
        """The answer has been read."""
        assert task.waiting is not None
        self.machine.finish(task.waiting, pod, task.lane)

    @staticmethod
    def answered(task: Task, driver: str) -> None:
        """On to the next driver."""
        task.done.add(driver)
        task.waiting, task.lane = None, 0
        task.stored.clear()

    def time_out_step(self, pod: str, task: Task, driver: str, kind: str) -> Step:
        """No answer within 45 s."""

        def late() -> bool:
            return not self.call(pod, task).answered and self.world.left("rpc-timeout")

        return self.step("call_times_out", pod, needs=late, driver=driver, kind=kind)

    def give_up(self, turn: Turn, pod: str, task: Task) -> None:
        """The answer was an error, or the time is over; in the latter case the handler goes on."""
        if turn.move.action == "kubelet.call_times_out":
            turn.spend("rpc-timeout")
            self.call(pod, task).client = False
            turn.took("timeout")
        else:
            self.end_call(pod, task)
            turn.took("failed")

    # -- moves

    def stopping_moves(self, pod: str, obj: Object | None, sandbox: Sandbox | None) -> Moves:
        """Moves on the way back, for one pod."""
        found: Moves = {}
        if self.next_life(pod, obj, sandbox)[1] != self.lives[pod]:
            found[self.move("begin_termination", pod)] = self._begin_termination
        if self.lives[pod] in (TERMINATING, GONE) and pod not in self.workers:
            found[self.move("kill_containers", pod)] = self._kill
        if sandbox is not None and self.lives[pod] == UNKNOWN and obj is None:
            found[self.move("kill_orphan", pod)] = self._kill_orphan
        if self.lives[pod] == TERMINATED and obj is not None:
            if not terminal(obj) and not self.cache.of_pod(uid_of(obj)):
                found[self.move("patch_phase", pod)] = self._patch_phase
            if terminal(obj) and deleting(obj):
                found[self.move("delete_pod", pod)] = self._delete_pod
        if pod in self.loops:
            found.update(dict.fromkeys(self.loops[pod][1].moves(), self._loop_on))
        elif not self.loops and self.lock is None and self.inactive(pod, obj) and self.names_in_cache(pod):
            found[self.move("loop_scan", pod)] = self._begin_loop
        return found

    def next_life(self, pod: str, obj: Object | None, sandbox: Sandbox | None) -> tuple[str, str]:
        """The label and the state that the kubelet's next look at the pod leads to; the same state: nothing to see."""
        life = self.lives[pod]
        if life == GONE:
            return "", life
        if obj is None:
            if life == UNKNOWN:
                return "", life
            return ("forgotten", UNKNOWN) if life == TERMINATED else ("gone", GONE)
        if life in (TERMINATING, TERMINATED) or node_name(obj) != self.machine.name:
            return "", life
        stopped = sandbox is None or sandbox.state == EXITED
        if terminal(obj) and life == UNKNOWN and stopped:
            return "terminated", TERMINATED
        exited = sandbox is not None and sandbox.state == EXITED
        return ("ok", TERMINATING) if deleting(obj) or terminal(obj) or exited else ("", life)

    def _begin_termination(self, turn: Turn) -> None:
        pod = str(turn.params["pod"])
        obj = self.api.find(POD, pod)
        label, self.lives[pod] = self.next_life(pod, obj, self.machine.sandboxes.get(pod))
        if obj is not None:
            self.uids[pod] = uid_of(obj)
        if label == "forgotten":
            self.machine.sandboxes.pop(pod, None)
        turn.took(label)

    def _kill(self, turn: Turn) -> None:
        pod, task = str(turn.params["pod"]), Task()
        self._begin(pod, task, self._terminate(pod, task), turn)

    def _kill_orphan(self, turn: Turn) -> None:
        """SyncTerminatingRuntimePod: no DRA call here."""
        self.machine.sandboxes.pop(str(turn.params["pod"]))
        turn.took("ok")

    def inactive(self, pod: str, obj: Object | None) -> bool:
        """Whether the pod is not among the active ones: gone from the configuration, or finished."""
        life = self.lives[pod]
        return life in (GONE, TERMINATED) or (life == UNKNOWN and obj is None)

    def names_in_cache(self, pod: str) -> list[str]:
        """The claims whose entries refer to the pod, in the instance's order."""
        held = set(self.cache.of_pod(self.uid(pod)))
        return [claim for claim in self.machine.claims if claim in held]

    def uid(self, pod: str) -> str:
        """The pod's UID: of the pod that the kubelet knows, or of a reference in the cache to one that it knows no more."""
        if pod in self.uids:
            return self.uids[pod]
        known = {uid for info in self.cache.entries.values() for uid in info.pods}
        return next((uid for uid in known if uid.rpartition(".")[0] == pod), "")

    # -- the pod worker

    def _terminate(self, pod: str, task: Task) -> Body:
        """K14 to K22: stops the containers, then unprepares until it succeeds."""
        turn = yield self.step("kill_containers", pod)
        sandbox = self.machine.sandboxes.get(pod)
        if self.lives[pod] == GONE or sandbox is None or sandbox.state != EXITED:
            self.machine.sandboxes.pop(pod, None)
        turn.took("ok")
        while True:
            turn = yield self.step("list_names", pod, needs=self.unlocked)
            task.names = self.names_to_drop(pod)
            turn.took("ok")
            if (yield from self.unprepare(pod, task, WORKER)):
                break
            task.batch.clear()
            task.done.clear()
            task.waiting, task.lane = None, 0
        if self.lives[pod] == GONE:
            self.lives[pod] = UNKNOWN
            self.machine.sandboxes.pop(pod, None)
        else:
            self.lives[pod] = TERMINATED

    def names_to_drop(self, pod: str) -> list[str]:
        """K16: from the cache; if it has none, from the pod's spec and status."""
        return self.names_in_cache(pod) or list(dict.fromkeys(claim for _, claim in self.machine.entries[pod]))

    # -- the loop

    def _begin_loop(self, turn: Turn) -> None:
        pod, task = str(turn.params["pod"]), Task()
        self.loops[pod] = (task, Thread(self._loop(pod, task)))
        self._loop_on(turn)

    def _loop_on(self, turn: Turn) -> None:
        self._advance(self.loops, turn)

    def _loop(self, pod: str, task: Task) -> Body:
        """R2 and R3. Whether the containers have stopped is not looked at."""
        turn = yield self.step("loop_scan", pod)
        task.names = self.names_in_cache(pod)
        turn.took("ok")
        yield from self.unprepare(pod, task, LOOP)

    # -- unprepare

    def unprepare(self, pod: str, task: Task, kind: str) -> Any:
        """K17 to K21; false if a call failed."""
        for index, claim in enumerate(task.names):
            task.index = index
            turn: Turn = yield self.step("drop_reference", pod, needs=self.unlocked, kind=kind)
            turn.took(self.drop(pod, task, claim))
        task.index = 0
        task.names = []
        while task.drivers - task.done:
            turn = yield [self.step("unprepare_send", pod, driver=d, kind=kind) for d in sorted(task.drivers - task.done)]
            driver = str(turn.params["driver"])
            if not self.send(turn, pod, task, driver, UNPREPARE):
                return False
            if not (yield from self.unprepare_answer(pod, task, driver, kind)):
                return False
        task.done.clear()
        turn = yield self.step("delete_entries", pod, needs=self.unlocked, kind=kind)
        self.delete_entries(task)
        turn.took("ok")
        return True

    def drop(self, pod: str, task: Task, claim: str) -> str:
        """K17, K18: "skip", "shared" (removed in memory only), or "last" (marked, to be unprepared)."""
        info = self.cache.get(claim)
        if info is None or not self.is_holder(pod, claim):
            return "skip"
        if len(info.pods) > 1:
            info.pods.discard(self.uid(pod))
            return "shared"
        self.mark(claim)
        task.batch.append(Want(claim, info.uid, sorted(info.drivers)))
        return "last"

    def is_holder(self, pod: str, claim: str) -> bool:
        """Whether the pod is in the entry."""
        info = self.cache.get(claim)
        return info is not None and self.uid(pod) in info.pods

    def mark(self, claim: str) -> None:
        """The entry is being unprepared: nobody may join it."""
        info = self.cache.get(claim)
        if info is not None:
            info.unpreparing = True

    def unprepare_answer(self, pod: str, task: Task, driver: str, kind: str) -> Any:
        """K20."""

        def arrived() -> bool:
            return self.call(pod, task).answered and self.may_read(self.call(pod, task))

        turn: Turn = yield [
            self.step("unprepare_answer", pod, needs=arrived, driver=driver, kind=kind),
            self.time_out_step(pod, task, driver, kind),
        ]
        if turn.move.action == "kubelet.call_times_out" or self.call(pod, task).failed:
            self.give_up(turn, pod, task)
            return False
        self.end_call(pod, task)
        self.driver_done(task, driver)
        self.answered(task, driver)
        turn.took("ok")
        return True

    def may_read(self, call: Call) -> bool:
        """Whether what follows the answer of an unprepare call can be done now."""
        return True

    def driver_done(self, task: Task, driver: str) -> None:
        """A driver has unprepared its claims; nothing is done before all have."""

    def delete_entries(self, task: Task) -> None:
        """K21, one critical section: by name, whatever the UID; then the checkpoint."""
        for want in task.batch:
            self.cache.entries.pop(want.claim, None)
        self.cache.save()

    # -- reports

    def _patch_phase(self, turn: Turn) -> None:
        pod = str(turn.params["pod"])
        turn.request(lambda: self.api.patch_status(POD, pod, lambda status: status.update(phase="Succeeded")))

    def _delete_pod(self, turn: Turn) -> None:
        """K25; the UID is the precondition."""
        pod = str(turn.params["pod"])
        turn.request(lambda: self.api.delete(POD, pod, uid=self.uid(pod), grace=0))
        if turn.label == "ok":
            self.lives[pod] = UNKNOWN
            self.machine.sandboxes.pop(pod, None)


__all__ = ["SYNCING", "Stopping"]
