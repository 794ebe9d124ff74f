"""The parameter server: keeps the weights, averages what the workers push."""

import socket
import threading

import digits
import wire

LEARNING_RATE = 0.5


class Parameters:
    """The weights, changed once a round: when every worker has pushed."""

    def __init__(self, workers):
        self.weights = [0.0] * digits.SIZE
        self.pushed = {}
        self.round = 0
        self.workers = workers
        self.changed = threading.Condition()
        self.broken = None

    def push(self, worker, gradient):
        """Adds a gradient; returns the weights after the round."""
        with self.changed:
            self.pushed[worker] = gradient
            mine = self.round
            if len(self.pushed) == self.workers:
                self._step()
            while self.round == mine and not self.broken:
                self.changed.wait()
            if self.broken:
                raise ConnectionError(self.broken)
            return self.weights

    def _step(self):
        # In the workers' order, so that a run gives the same weights each time.
        gradients = [self.pushed[worker] for worker in sorted(self.pushed)]
        rate = LEARNING_RATE / self.workers
        self.weights = [
            weight - rate * sum(parts) for weight, *parts in zip(self.weights, *gradients)
        ]
        self.pushed.clear()
        self.round += 1
        self.changed.notify_all()

    def fail(self, why):
        """Lets nobody wait for a worker that has gone."""
        with self.changed:
            self.broken = self.broken or why
            self.changed.notify_all()


def serve(cluster):
    """Serves until every worker has said that it is done."""
    parameters = Parameters(cluster.workers)
    address = cluster.address(cluster.role, cluster.index)
    with socket.create_server(address) as listener:
        print(f"parameter server at {address[0]}:{address[1]}", flush=True)
        threads = []
        for _ in range(cluster.workers):
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threads.append(threading.Thread(target=_converse, args=(connection, parameters)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    if parameters.broken:
        raise SystemExit(parameters.broken)
    print(f"served {parameters.round} rounds", flush=True)


def _converse(connection, parameters):
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
