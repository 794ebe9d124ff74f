"""Measures one Python client on a server with pods; prints the figures as JSON.

Usage: measure.py CLIENT KUBECONFIG COUNT RUNS
"""

import asyncio
import json
import os
import statistics
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

CLIENT, KUBECONFIG, COUNT, RUNS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
NAMESPACE, NAME = "default", "worker-00000"
GETS, IN_FLIGHT = 1_000, 64
#: After this many seconds, lists are not repeated.
ENOUGH = 60

warnings.simplefilter("ignore")


def maximum_rss():
    """The maximum memory of this program, in bytes. That of `getrusage` includes its parent's."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


INTERPRETER = maximum_rss()


def check(names):
    assert len(names) == COUNT, f"{CLIENT}: {len(names)} pods"


class Blocking:
    """A client with blocking calls: `list`, `watch` (an iterator of names) and `get`."""

    def run(self):
        times = []
        self.get()
        for _ in range(RUNS):
            begin = time.perf_counter()
            check(self.list())
            times.append(time.perf_counter() - begin)
            if sum(times) > ENOUGH:
                break
        memory = maximum_rss() - INTERPRETER
        begin = time.perf_counter()
        events = self.watch()
        check([next(events) for _ in range(COUNT)])
        watched = time.perf_counter() - begin
        begin = time.perf_counter()
        for _ in range(GETS):
            self.get()
        one = time.perf_counter() - begin
        begin = time.perf_counter()
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            list(pool.map(lambda _: self.get(), range(GETS)))
        return figures(times, memory, watched, one, time.perf_counter() - begin)


class Asyncio:
    """As `Blocking`, for asyncio."""

    async def start(self):
        pass

    async def stop(self):
        pass

    async def measure(self):
        await self.start()
        times = []
        await self.get()
        for _ in range(RUNS):
            begin = time.perf_counter()
            check(await self.list())
            times.append(time.perf_counter() - begin)
            if sum(times) > ENOUGH:
                break
        memory = maximum_rss() - INTERPRETER
        begin = time.perf_counter()
        names = []
        async for name in self.watch():
            names.append(name)
            if len(names) == COUNT:
                break
        check(names)
        watched = time.perf_counter() - begin
        begin = time.perf_counter()
        for _ in range(GETS):
            await self.get()
        one = time.perf_counter() - begin
        limit = asyncio.Semaphore(IN_FLIGHT)

        async def limited():
            async with limit:
                await self.get()

        begin = time.perf_counter()
        await asyncio.gather(*[limited() for _ in range(GETS)])
        many = time.perf_counter() - begin
        await self.stop()
        return figures(times, memory, watched, one, many)

    def run(self):
        return asyncio.run(self.measure())


def figures(times, memory, watched, one, many):
    return {
        "list": statistics.median(times),
        "memory": memory,
        "watch": COUNT / watched,
        "get": GETS / one,
        "get64": GETS / many,
    }


class Longshore(Blocking):
    def __init__(self):
        import longshore

        self.pods = longshore.Cluster(kubeconfig=KUBECONFIG).view("pods", NAMESPACE)

    def list(self):
        return [pod.name for pod in self.pods]

    def watch(self):
        return (event.item.name for event in self.pods.watch(since="0"))

    def get(self):
        return self.pods.fetch(NAME)


class LongshoreAio(Asyncio):
    async def start(self):
        from longshore import aio

        self.pods = await aio.Cluster(kubeconfig=KUBECONFIG).view("pods", NAMESPACE)

    async def list(self):
        return [pod.name async for pod in self.pods]

    async def watch(self):
        async for event in await self.pods.watch(since="0"):
            yield event.item.name

    async def get(self):
        return await self.pods.fetch(NAME)


class Official(Blocking):
    def __init__(self):
        import kubernetes

        config = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(KUBECONFIG, client_configuration=config)
        config.connection_pool_maxsize = IN_FLIGHT
        self.kubernetes = kubernetes
        self.core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(config))

    def list(self):
        return [pod.metadata.name for pod in self.core.list_namespaced_pod(NAMESPACE).items]

    def watch(self):
        events = self.kubernetes.watch.Watch().stream(self.core.list_namespaced_pod, NAMESPACE, resource_version="0")
        return (event["object"].metadata.name for event in events)

    def get(self):
        return self.core.read_namespaced_pod(NAME, NAMESPACE)


class KubernetesAsyncio(Asyncio):
    async def start(self):
        import kubernetes_asyncio

        self.kubernetes = kubernetes_asyncio
        config = kubernetes_asyncio.client.Configuration()
        await kubernetes_asyncio.config.load_kube_config(KUBECONFIG, client_configuration=config)
        self.api = kubernetes_asyncio.client.ApiClient(config)
        self.core = kubernetes_asyncio.client.CoreV1Api(self.api)

    async def stop(self):
        await self.api.close()

    async def list(self):
        return [pod.metadata.name for pod in (await self.core.list_namespaced_pod(NAMESPACE)).items]

    async def watch(self):
        watch = self.kubernetes.watch.Watch()
        async with watch.stream(self.core.list_namespaced_pod, NAMESPACE, resource_version="0") as events:
            async for event in events:
                yield event["object"].metadata.name

    async def get(self):
        return await self.core.read_namespaced_pod(NAME, NAMESPACE)


class Lightkube(Blocking):
    def __init__(self):
        import lightkube
        from lightkube.config.kubeconfig import KubeConfig
        from lightkube.resources.core_v1 import Pod

        self.pod, self.client = Pod, lightkube.Client(config=KubeConfig.from_file(KUBECONFIG))

    def list(self):
        return [pod.metadata.name for pod in self.client.list(self.pod, namespace=NAMESPACE)]

    def watch(self):
        events = self.client.watch(self.pod, namespace=NAMESPACE, resource_version="0")
        return (pod.metadata.name for _, pod in events)

    def get(self):
        return self.client.get(self.pod, NAME, namespace=NAMESPACE)


class Kr8s(Asyncio):
    async def start(self):
        import kr8s.asyncio

        self.api = await kr8s.asyncio.api(kubeconfig=KUBECONFIG)

    async def list(self):
        return [pod.name async for pod in self.api.get("pods", namespace=NAMESPACE)]

    async def watch(self):
        async for _, pod in self.api.watch("pods", namespace=NAMESPACE):
            yield pod.name

    async def get(self):
        return [pod async for pod in self.api.get("pods", NAME, namespace=NAMESPACE)]


class Kubesdk(Asyncio):
    async def start(self):
        os.environ["KUBECONFIG"] = KUBECONFIG
        import kubesdk
        from kube_models.api_v1.io.k8s.api.core.v1 import Pod

        self.sdk, self.pod = kubesdk, Pod
        await kubesdk.login()

    async def list(self):
        listed = await self.sdk.get_k8s_resource(self.pod, namespace=NAMESPACE)
        return [pod.metadata.name for pod in listed.items]

    async def watch(self):
        async for event in self.sdk.watch_k8s_resources(self.pod, namespace=NAMESPACE):
            yield event.object.metadata.name

    async def get(self):
        return await self.sdk.get_k8s_resource(self.pod, NAME, NAMESPACE)


CLIENTS = {
    "longshore": Longshore,
    "longshore.aio": LongshoreAio,
    "kubernetes": Official,
    "kubernetes_asyncio": KubernetesAsyncio,
    "lightkube": Lightkube,
    "kr8s": Kr8s,
    "kubesdk": Kubesdk,
}

print(json.dumps(CLIENTS[CLIENT]().run()))
