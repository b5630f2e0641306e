"""The concrete implementation of the protocol: an in-memory API server, the writers as coroutines, real files on disk.

A second encoding, written from the protocol's documents and not from the model: every counterexample is replayed on it, slot by slot.

- `world`: `World(instance, variants, directory)`, `enabled()`, `step(action, params, outcome)`, `snapshot()`, `budgets`
- `steps`: coroutines that announce their next atomic step; `errors`: `Divergence`, API errors
- `apiserver`, `validation`, `shapes`: objects as JSON, requests, watches
- `scheduler`, `binding`, `cycle`, `assume`: the scheduler; `controller`, `controller_pods`: the ResourceClaim controller
- `machine`, `kubelet`, `kubelet_stop`, `kubelet_task`, `claiminfo`, `plugin`, `disk`, `cdi`: a node and its files
- `drivers`: devices and their controller; `users`: users and garbage collection
- `placement`: stands for the control plane in worlds about nodes
- `variants`: defects and repairs, as overridden methods
"""
