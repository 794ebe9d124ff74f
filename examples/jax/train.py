"""jax.distributed with several CPU processes.

JAX reads JAX_COORDINATOR_ADDRESS itself. It detects the number of processes and the
process ID only with Slurm, Open MPI, Kubernetes and TPU, so this program passes
JAX_NUM_PROCESSES and JAX_PROCESS_ID.
"""
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS, ROWS, RATE = 30, 32, 0.2


def main():
    count, number = int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])

    def say(text):
        print(f"[process {number}] {text}", flush=True)

    say(f"coordinator {os.environ.get('JAX_COORDINATOR_ADDRESS')}")
    jax.distributed.initialize(num_processes=count, process_id=number, initialization_timeout=120)
    bad = 0
    say(f"process {jax.process_index()} of {jax.process_count()}, devices {jax.local_device_count()} here, {jax.device_count()} in all")
    if (jax.process_count(), jax.process_index()) != (count, number):
        say("WRONG process count or index")
        bad = 1

    gathered = multihost_utils.process_allgather(jnp.array([number + 1.0]))
    total, wanted = float(np.sum(gathered)), count * (count + 1) / 2
    say(f"sum of process + 1 over all processes: {total:g} (expected {wanted:g})")
    if total != wanted:
        say("WRONG sum")
        bad = 1

    # Linear regression. The rows are distributed over the devices of all processes,
    # so each gradient is a sum over processes.
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    spread, same = NamedSharding(mesh, PartitionSpec("rows")), NamedSharding(mesh, PartitionSpec())
    truth = jnp.array([1.0, -2.0, 3.0, 0.5])

    def loss_of(w, x):
        return jnp.mean((x @ w - x @ truth) ** 2)

    @jax.jit
    def step(w, x):
        loss, gradient = jax.value_and_grad(loss_of)(w, x)
        return w - RATE * gradient, loss

    random = np.random.default_rng(100 + number)
    w = jax.device_put(np.zeros(4, np.float32), same)
    first = last = 0.0
    for index in range(STEPS):
        mine = random.normal(size=(ROWS * jax.local_device_count(), 4)).astype(np.float32)
        w, loss = step(w, jax.make_array_from_process_local_data(spread, mine))
        last = float(loss)
        first = first if index else last
    error = float(jnp.max(jnp.abs(w - truth)))
    say(f"loss {first:.4f} -> {last:.2e}, error of the weights {error:.1e}")
    if not (last < 1e-3 and error < 1e-2):
        say("WRONG result of the training")
        bad = 1
    jax.distributed.shutdown()
    say("ok" if not bad else "failed")
    return bad


if __name__ == "__main__":
    sys.exit(main())
