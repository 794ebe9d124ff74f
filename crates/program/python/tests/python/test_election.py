"""Leader election."""

import asyncio
import threading
import unittest
from typing import TypedDict

import longshore
from longshore import aio
from longshore.types import LeaseSpec

class Times(TypedDict):
    lease_duration: float
    renew_deadline: float
    retry_interval: float


TIMES: Times = {"lease_duration": 1, "renew_deadline": 0.7, "retry_interval": 0.05}


class Election(unittest.TestCase):
    def setUp(self) -> None:
        self.embedded = longshore.EmbeddedCluster(pods=False)
        self.addCleanup(self.embedded.stop)
        self.cluster = self.embedded.cluster

    def spec(self, name: str = "lead") -> LeaseSpec:
        return self.cluster.view("leases", "default").fetch(name).raw["spec"]

    def test_the_next_one_leads_after_the_first(self) -> None:
        order: list[str] = []

        def candidate(name: str) -> None:
            with self.cluster.lead("lead", "default", identity=name, **TIMES) as leadership:
                self.assertTrue(leadership.is_leading)
                order.append(f"{name} begins")
                self.assertFalse(leadership.lost(timeout=0.1))
                order.append(f"{name} ends")

        threads = [threading.Thread(target=candidate, args=[name]) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        turns = list(zip(order[::2], order[1::2]))
        self.assertEqual(sorted(turns), [(f"{name} begins", f"{name} ends") for name in "abc"])
        spec = self.spec()
        self.assertEqual((spec["holderIdentity"], spec["leaseTransitions"]), ("", 2))

    def test_a_lost_leadership(self) -> None:
        leadership = self.cluster.lead("lead", identity="a", **TIMES)
        self.assertEqual(repr(leadership), '<Leadership of "a", leading>')
        self.embedded.faults.add({"match": {"resource": "leases"}, "effect": {"answer": {"code": 500}}})
        self.assertTrue(leadership.lost(timeout=20))
        self.assertFalse(leadership.is_leading)
        self.embedded.faults.clear()
        leadership.resign()
        leadership.resign()
        self.assertTrue(leadership.lost())

    def test_the_default_identity_is_unique(self) -> None:
        with self.cluster.lead("one") as one, self.cluster.lead("two") as two:
            self.assertNotEqual(one.identity, two.identity)
            self.assertEqual(self.spec("one")["holderIdentity"], one.identity)

    def test_contradicting_times(self) -> None:
        with self.assertRaisesRegex(longshore.InvalidError, "longer than renew_deadline"):
            self.cluster.lead("lead", lease_duration=10)
        with self.assertRaisesRegex(ValueError, "0 or above"):
            self.cluster.lead("lead", retry_interval=-1)

    def test_asyncio(self) -> None:
        async def use() -> None:
            async with aio.Cluster(kubeconfig=self.embedded.kubeconfig) as cluster:
                async with await cluster.lead("lead", identity="a", **TIMES) as leadership:
                    second = asyncio.ensure_future(cluster.lead("lead", identity="b", **TIMES))
                    self.assertFalse(await leadership.lost(timeout=0.2))
                    self.assertFalse(second.done())
                async with await second as leadership:
                    self.assertTrue(leadership.is_leading)
                with self.assertRaisesRegex(TypeError, "async with"):
                    with leadership:  # type: ignore[attr-defined]
                        pass

        asyncio.run(use())


if __name__ == "__main__":
    unittest.main()
