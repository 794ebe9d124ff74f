"""How TensorFlow's own KubernetesClusterResolver resolves a cluster.

stdin:  {"kubeconfig": "path", "mapping": {"worker": ["job-name=x"]}, "port": 8470, "times": 1}
stdout: one line of JSON: spec, masters ("none": without arguments, "worker:2", ...), seconds (each time
        that cluster_spec() was called) or {"error": "..."}.
Needs: tensorflow-cpu==2.21.0 kubernetes==36.0.2 or newer.
"""
import os
import time

import common

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def read(request):
    os.environ["KUBECONFIG"] = request["kubeconfig"]
    import tensorflow as tf

    of = tf.distribute.cluster_resolver
    resolver = of.KubernetesClusterResolver(
        request["mapping"],
        tf_server_port=request.get("port", 8470),
        executable_location=of.KubernetesExecutableLocation.OFF_CLUSTER,
    )
    seconds = []
    for _ in range(request.get("times", 1)):
        begin = time.perf_counter()
        spec = resolver.cluster_spec()
        seconds.append(time.perf_counter() - begin)
    masters = {"none": resolver.master()}
    if request.get("times", 1) == 1:
        for job in spec.jobs:
            for index in spec.task_indices(job):
                masters[f"{job}:{index}"] = resolver.master(job, index)
    return {"spec": spec.as_dict(), "masters": masters, "seconds": seconds}


common.main(read)
