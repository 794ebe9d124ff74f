"""kr8s: the asynchronous API and custom kinds."""

import asyncio
import contextlib
import itertools

import every_kind
import kr8s
from kr8s.asyncio.objects import ConfigMap, CustomResourceDefinition, Namespace, new_class

NAMESPACE = "kr8s-async"


async def main():
    api = await kr8s.asyncio.api()
    await (await Namespace({"metadata": {"name": NAMESPACE}})).create()

    async def config_map(name, **data):
        metadata = {"name": name, "namespace": NAMESPACE}
        made = await ConfigMap({"metadata": metadata, "data": data})
        await made.create()
        return made

    # Concurrent requests.
    await asyncio.gather(*(config_map(f"n{number:02}") for number in range(30)))
    names = [item.name async for item in api.get("configmaps", namespace=NAMESPACE)]
    assert names == [f"n{number:02}" for number in range(30)], names

    # A watch concurrent with writes.
    async def seen():
        events = api.watch("configmaps", namespace=NAMESPACE)
        async with contextlib.aclosing(events):
            async for kind, item in events:
                if kind == "MODIFIED" and item.name == "n07":
                    return item.raw["data"]["a"]

    watching = asyncio.create_task(seen())
    one = await ConfigMap.get("n07", namespace=NAMESPACE)
    for turn in itertools.count():
        await one.patch({"metadata": {"annotations": {"turn": str(turn)}}, "data": {"a": "x"}})
        await asyncio.sleep(0.05)
        if watching.done():
            break
    assert await watching == "x"

    # Custom kinds.
    definition = await CustomResourceDefinition(every_kind.custom("foxes", "Fox"))
    await definition.create()
    await definition.wait("condition=Established", timeout=20)
    Fox = new_class(kind="Fox", version="every.example.org/v1", namespaced=True, plural="foxes")
    fox = await Fox({"metadata": {"name": "red", "namespace": NAMESPACE}, "spec": {}})
    await fox.create()
    await fox.refresh()
    assert fox.spec.size == 1
    await fox.patch({"spec": {"size": 4}})
    assert fox.metadata.generation == 2
    await fox.patch({"status": {"size": 4}}, subresource="status")
    assert fox.status.size == 4 and fox.metadata.generation == 2
    assert [item.name async for item in Fox.list(namespace=NAMESPACE)] == ["red"]
    try:
        await fox.patch({"spec": {"size": -1}})
        raise AssertionError("a negative size was accepted")
    except kr8s.ServerError as error:
        assert error.response.status_code == 422
    await fox.delete()
    await fox.wait("delete", timeout=20)
    await definition.delete()


asyncio.run(main())
