"""What jax.distributed.initialize() reads from the environment.

stdin:  {"env": {"JAX_COORDINATOR_ADDRESS": ..., ...}, "pass": true, "arguments": {...}, "expect": {...}}
stdout: one line of JSON: coordinator_address, bind_address, num_processes, process_id, local_device_ids,
        cluster (the detected environment) or {"error": "..."}.
With "pass" (default true) num_processes and process_id are handed over as int() of JAX_NUM_PROCESSES
and JAX_PROCESS_ID, as a program has to do itself: jax 0.10.2 does not read these two. With "pass": false
initialize() is called with "arguments" only. The real State.initialize() runs, with the service and
the client replaced by recorders, so nothing is bound or connected.
Needs: jax==0.10.2 jaxlib==0.10.2.
"""
import os

import common

os.environ["JAX_PLATFORMS"] = "cpu"


def read(request):
    import jax
    from jax._src import clusters, distributed, xla_bridge

    seen = {"bind_address": None}

    class Client:
        def connect(self):
            pass

    class Runtime:
        def get_distributed_runtime_service(self, address, count, **rest):
            seen["bind_address"] = address
            return object()

        def get_distributed_runtime_client(self, address, number, **rest):
            seen["connects_to"] = address
            return Client()

    distributed._jax = Runtime()
    distributed.State.initialize_preemption_sync_manager = lambda self: None
    arguments = dict(request.get("arguments", {}))
    if request.get("pass", True):
        for argument, name in (("num_processes", "JAX_NUM_PROCESSES"), ("process_id", "JAX_PROCESS_ID")):
            if argument not in arguments and name in os.environ:
                arguments[argument] = int(os.environ[name])
    kinds = [c for c in clusters.ClusterEnv._cluster_types if not c.opt_in_only_method]
    try:
        detected = next((c.__name__ for c in kinds if c.is_env_present()), None)
    except Exception as problem:  # initialize() fails with it too, unless it need not detect
        detected = f"{type(problem).__name__}: {problem}"
    jax.distributed.initialize(**arguments)
    state = distributed.global_state
    ids = xla_bridge.CUDA_VISIBLE_DEVICES.value
    return {
        "coordinator_address": state.coordinator_address,
        "num_processes": state.num_processes,
        "process_id": state.process_id,
        "local_device_ids": None if ids == "all" else ids,
        "partition_index": state.partition_index,
        "cluster": detected,
        **seen,
    }


common.main(read)
