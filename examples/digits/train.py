"""Distributed training with a parameter server, with only the standard library.

Each process finds its role and its peers in TF_CONFIG. A worker computes
gradients on its share of the training images; the parameter server averages
them. Worker 0 tests the resulting weights.
"""

import random
import sys
import time

import cluster
import digits
import server
import wire

EPOCHS, BATCH = 20, 25
GOAL = 0.90


def work(task):
    """Trains on this worker's share of the images."""
    training, test = digits.load()
    share = training[task.index :: task.workers]
    # All workers take the same number of steps, because each round needs all of them.
    steps = len(training) // task.workers // BATCH
    order = random.Random(task.index)
    started = time.monotonic()
    with wire.connect(task.address("ps", 0)) as connection:
        wire.send(connection, wire.PULL, [task.index])
        _, weights = wire.receive(connection)
        for epoch in range(1, EPOCHS + 1):
            order.shuffle(share)
            for step in range(steps):
                batch = share[step * BATCH : (step + 1) * BATCH]
                wire.send(connection, wire.PUSH, digits.gradient(weights, batch))
                _, weights = wire.receive(connection)
            if task.index == 0:
                print(f"epoch {epoch:2}: accuracy {digits.accuracy(weights, test):.4f}", flush=True)
        wire.send(connection, wire.DONE)
    print(f"trained on {len(share)} images in {time.monotonic() - started:.1f} s", flush=True)
    if task.index == 0:
        result = digits.accuracy(weights, test)
        print(f"test accuracy: {result:.4f} on {len(test)} images", flush=True)
        if result < GOAL:
            sys.exit(f"below the goal of {GOAL:.2f}")


def main():
    """Runs the role of this process."""
    task = cluster.from_environment()
    if task.role == "ps":
        server.serve(task)
    elif task.role == "worker":
        work(task)
    else:
        sys.exit(f"unknown role {task.role!r}: this example has workers and one ps")


if __name__ == "__main__":
    main()
