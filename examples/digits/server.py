"""The parameter server: keeps the weights and averages the gradients of the workers."""

import socket
import threading

import digits
import wire

LEARNING_RATE = 0.5


class Parameters:
    """The weights. They change once per round, when every worker has pushed a gradient."""

    def __init__(self, workers):
        self.weights = [0.0] * digits.SIZE
        self.pushed = {}
        self.round = 0
        self.workers = workers
        self.changed = threading.Condition()
        self.failure = None

    def push(self, worker, gradient):
        """Adds a gradient and returns the weights after the round."""
        with self.changed:
            self.pushed[worker] = gradient
            current = self.round
            if len(self.pushed) == self.workers:
                self._step()
            while self.round == current and not self.failure:
                self.changed.wait()
            if self.failure:
                raise ConnectionError(self.failure)
            return self.weights

    def _step(self):
        # In the order of the workers, so that each run computes the same weights.
        gradients = [self.pushed[worker] for worker in sorted(self.pushed)]
        rate = LEARNING_RATE / self.workers
        self.weights = [
            weight - rate * sum(parts) for weight, *parts in zip(self.weights, *gradients)
        ]
        self.pushed.clear()
        self.round += 1
        self.changed.notify_all()

    def fail(self, reason):
        """Stops all workers from waiting for a worker that has failed."""
        with self.changed:
            self.failure = self.failure or reason
            self.changed.notify_all()


def serve(cluster):
    """Serves until every worker has sent DONE."""
    parameters = Parameters(cluster.workers)
    address = cluster.address(cluster.role, cluster.index)
    with socket.create_server(address) as listener:
        print(f"parameter server at {address[0]}:{address[1]}", flush=True)
        threads = []
        for _ in range(cluster.workers):
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threads.append(threading.Thread(target=_serve_worker, args=(connection, parameters)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    if parameters.failure:
        raise SystemExit(parameters.failure)
    print(f"served {parameters.round} rounds", flush=True)


def _serve_worker(connection, parameters):
    worker = None
    try:
        with connection:
            while True:
                tag, vector = wire.receive(connection)
                if tag == wire.PULL:
                    worker = int(vector[0])
                    wire.send(connection, wire.WEIGHTS, parameters.weights)
                elif tag == wire.PUSH:
                    wire.send(connection, wire.WEIGHTS, parameters.push(worker, vector))
                else:
                    return
    except OSError as error:
        parameters.fail(f"lost worker {worker}: {error}")
