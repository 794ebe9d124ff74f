"""Data-parallel training on the workers in TF_CONFIG.

Every worker runs this file with its own TF_CONFIG. The strategy reads TF_CONFIG,
starts a gRPC server on this task's port, waits for the other workers, and averages
the gradients of all workers in each step.
"""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf

STEPS, BATCH, RATE = 60, 32, 0.1
WEIGHTS = [[1.0], [-2.0], [3.0], [0.5]]


def main():
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = config["cluster"], config["task"]
    expected = len(cluster.get("chief", [])) + len(cluster.get("worker", []))
    me = f"{task['type']}:{task['index']}"

    def say(text):
        print(f"[{me}] {text}", flush=True)

    say(f"cluster {json.dumps(cluster)}")
    # The strategy starts the server, so it must precede all other TensorFlow operations.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    say(f"replicas in sync: {replicas} (expected {expected})")
    if replicas != expected:
        say("WRONG number of replicas")
        return 1

    # y = x . WEIGHTS. Each worker draws different rows, so the weights of the workers are
    # equal only if the workers exchange gradients.
    random = tf.random.Generator.from_seed(100 + task["index"] + 50 * (task["type"] == "chief"))
    with strategy.scope():
        weights = tf.Variable(tf.zeros([4, 1]), name="weights")

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - x @ WEIGHTS))
        gradient = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        gradient, loss = context.all_reduce(tf.distribute.ReduceOp.MEAN, [gradient, loss])
        weights.assign_sub(RATE * gradient)
        return loss

    @tf.function
    def train(x):
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(step, args=(x,)), axis=None)

    @tf.function
    def spread_of_weights():
        def replica():
            mean = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, weights * 1.0)
            return tf.reduce_max(tf.abs(weights - mean))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica), axis=None)

    for number in range(STEPS):
        loss = float(train(random.normal([BATCH, 4])))
        if number % 20 == 0:
            say(f"step {number} loss {loss:.6f}")
    spread = float(spread_of_weights())
    error = float(tf.reduce_max(tf.abs(weights - WEIGHTS)))
    say(f"final loss {loss:.3e}, spread between workers {spread:.1e}, error of the weights {error:.1e}")
    if not (loss < 1e-3 and spread < 1e-5 and error < 1e-2):
        say("WRONG result")
        return 1
    say("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
