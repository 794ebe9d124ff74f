"""What TensorFlow reads from TF_CONFIG.

stdin:  {"env": {"TF_CONFIG": "..."}, "expect": {...}, "strategy": "multiworker" | "ps" | null}
stdout: one line of JSON: cluster, task_type, task_id, master, rpc_layer, and what the
        strategies derive from it (replicas' worker count, chief, leaders) or {"error": "..."}.
Nothing is connected. Needs: tensorflow-cpu==2.21.0.
"""
import os

import common

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def read(request):
    import tensorflow as tf
    from tensorflow.python.distribute import multi_worker_util as util

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    spec, kind, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    found = {
        "cluster": spec.as_dict(),
        "task_type": kind,
        "task_id": index,
        "rpc_layer": resolver.rpc_layer,
        "environment": resolver.environment,
        "addresses": {f"{job}:{i}": spec.task_address(job, i) for job in spec.jobs for i in spec.task_indices(job)},
        "bool": bool(spec),
    }
    try:
        found["master"] = resolver.master()
    except ValueError as problem:  # e.g. an evaluator that is not in the cluster
        found["master_error"] = str(problem)
    which = request.get("strategy")
    if which == "multiworker" and spec:
        # The calls of MultiWorkerMirroredStrategy, in the same order.
        if kind is None or index is None:
            raise ValueError("task_type and task_id are needed")
        found["id_in_cluster"] = util.id_in_cluster(spec, kind, index)
        found["workers"] = util.worker_count(spec, kind)
        found["is_chief"] = util.is_chief(spec, kind, index)
        found["collective_leader"] = util.collective_leader(spec, kind, index)
        found["coordination_leader"] = util.coordination_leader(spec)
    elif which == "ps":
        util._validate_cluster_spec(spec, kind, index)
        found["ps"], found["workers"] = util.task_count(spec, "ps"), util.task_count(spec, "worker")
        if found["ps"] < 1 or found["workers"] < 1:
            raise ValueError("at least one ps and one worker are needed")
    return found


common.main(read)
