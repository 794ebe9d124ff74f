//! Computes the kernel's limits from the requests and limits of a pod, like the kubelet. Pure.

use longshore_model::{
    quantity::Amount,
    resources::{PodResources, Requirements},
};

/// The period of CPU quotas in microseconds.
pub(super) const PERIOD: u64 = 100_000;
/// The smallest quota that the kernel accepts, in microseconds.
const MIN_QUOTA: u64 = 1000;
/// The largest quota that the kernel accepts, in microseconds: 44 bits.
const MAX_QUOTA: u64 = (1 << 44) - 1;
/// The range of CPU shares that the kernel accepts.
const SHARES: std::ops::RangeInclusive<u64> = 2..=262_144;
const SHARES_PER_CORE: u64 = 1024;

/// The limits that the kernel enforces for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The memory in bytes.
    pub(crate) memory: Option<u64>,
    /// The CPU time in microseconds per period.
    pub(crate) quota: Option<u64>,
    /// The relative share of CPU time, in the unit of cgroup version 1.
    pub(crate) shares: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: None,
            quota: None,
            shares: *SHARES.start(),
        }
    }
}

impl Limits {
    /// Returns the limits of a container, or no limits if the pod lacks it. A container without a
    /// limit has the limit of its pod.
    pub(crate) fn of_container(pod: &PodResources, name: &str) -> Self {
        let found = pod
            .all_containers()
            .find(|container| container.name == name);
        let Some(container) = found else {
            return Self::default();
        };
        let own = &container.resources;
        let limit = |resource: &str| {
            let of_pod = pod.resources.as_ref();
            let of_pod = of_pod.and_then(|resources| limit_of(resources, resource));
            limit_of(own, resource).or(of_pod)
        };
        let cpu = limit("cpu");
        let request = own.requests.get("cpu").copied().or(cpu);
        Self {
            memory: limit("memory").map(bytes),
            quota: cpu.map(quota),
            shares: request.map_or(*SHARES.start(), shares),
        }
    }

    /// Returns the limits of a pod: the sums of its containers' limits if all have limits, and the
    /// pod's own limits.
    pub(crate) fn of_pod(pod: &PodResources) -> Self {
        let total = Requirements {
            requests: pod.requests(),
            limits: pod.limits(),
        };
        let is_declared = |resource: &str| {
            let of_pod = pod.resources.as_ref();
            of_pod.is_some_and(|own| limit_of(own, resource).is_some())
                || pod
                    .all_containers()
                    .all(|container| limit_of(&container.resources, resource).is_some())
        };
        let limit = |resource: &str| limit_of(&total, resource).filter(|_| is_declared(resource));
        let request = total.requests.get("cpu").copied();
        Self {
            memory: limit("memory").map(bytes),
            quota: limit("cpu").map(quota),
            shares: request.map_or(*SHARES.start(), shares),
        }
    }

    /// Returns the larger limit for each resource.
    pub(crate) fn max(self, other: Self) -> Self {
        let larger = |one: Option<u64>, other: Option<u64>| Some(one?.max(other?));
        Self {
            memory: larger(self.memory, other.memory),
            quota: larger(self.quota, other.quota),
            shares: self.shares.max(other.shares),
        }
    }

    /// Returns true if a resource is limited.
    pub(crate) fn is_limiting(&self) -> bool {
        self.memory.is_some() || self.quota.is_some()
    }

    /// Returns the weight of a container in cgroup version 2, computed like in container runtimes.
    pub(super) fn weight(&self) -> u64 {
        let shares = self.shares.clamp(*SHARES.start(), *SHARES.end());
        if shares == *SHARES.start() {
            return 1;
        }
        // This function has the same minimum, default and maximum on both scales.
        let power = (shares as f64).log2();
        let exponent = (power * power + 125.0 * power) / 612.0 - 7.0 / 34.0;
        (10_f64.powf(exponent).ceil() as u64).clamp(1, 10_000)
    }
}

fn limit_of(resources: &Requirements, resource: &str) -> Option<Amount> {
    let limit = resources.limits.get(resource).copied();
    limit.filter(|limit| !limit.is_zero() && !limit.is_negative())
}

fn bytes(amount: Amount) -> u64 {
    u64::try_from(amount.whole()).unwrap_or(0)
}

fn thousandths(amount: Amount) -> u64 {
    u64::try_from(amount.thousandths()).unwrap_or(0)
}

fn quota(cores: Amount) -> u64 {
    let quota = thousandths(cores).saturating_mul(PERIOD / 1000);
    quota.clamp(MIN_QUOTA, MAX_QUOTA)
}

fn shares(cores: Amount) -> u64 {
    let shares = thousandths(cores).saturating_mul(SHARES_PER_CORE) / 1000;
    shares.clamp(*SHARES.start(), *SHARES.end())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn known_values() {
        for (cores, expected_quota, expected_shares) in [
            ("100m", 10_000, 102),
            ("1", 100_000, 1024),
            ("1m", 1000, 2),
            ("0.1m", 1000, 2),
            ("5m", 1000, 5),
            ("2500m", 250_000, 2560),
            ("1000", 100_000_000, 262_144),
            ("1e18", MAX_QUOTA, 262_144),
        ] {
            assert_eq!(quota(amount(cores)), expected_quota, "{cores}");
            assert_eq!(shares(amount(cores)), expected_shares, "{cores}");
        }
        assert_eq!(bytes(amount("32Mi")), 32 << 20);
        assert_eq!(bytes(amount("100m")), 1);
        assert_eq!(bytes(amount("100E")), i64::MAX.unsigned_abs());
        let weight = |shares| {
            Limits {
                shares,
                ..Limits::default()
            }
            .weight()
        };
        let known = [2, 3, 102, 512, 1024, 262_144, u64::MAX].map(weight);
        assert_eq!(known, [1, 2, 17, 59, 100, 10_000, 10_000]);
    }

    fn pod(spec: serde_json::Value) -> PodResources {
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_pod_is_limited_if_all_its_containers_are() {
        let a = json!({"name": "a", "resources": {
            "requests": {"cpu": "100m"}, "limits": {"cpu": "200m", "memory": "1Mi"}}});
        let b = json!({"name": "b", "resources": {"limits": {"cpu": "300m"}}});
        let both = pod(json!({"containers": [a, b]}));
        let limits = Limits::of_pod(&both);
        assert_eq!(limits.quota, Some(50_000));
        assert_eq!(limits.memory, None);
        let limits = Limits::of_container(&both, "a");
        let expected = Limits {
            memory: Some(1 << 20),
            quota: Some(20_000),
            shares: 102,
        };
        assert_eq!(limits, expected);
        // A limit without a request is also the request.
        assert_eq!(Limits::of_container(&both, "b").shares, 307);
        assert_eq!(Limits::of_container(&both, "other"), Limits::default());
    }

    #[test]
    fn limits_of_the_pod_apply_to_containers_without_limits() {
        let found = pod(json!({
            "containers": [
                {"name": "a", "resources": {"limits": {"memory": "1Mi"}}}, {"name": "b"}],
            "resources": {"limits": {"cpu": "1", "memory": "3Mi"}, "requests": {"cpu": "500m"}},
        }));
        let limits = Limits::of_pod(&found);
        assert_eq!(
            (limits.memory, limits.quota),
            (Some(3 << 20), Some(100_000))
        );
        assert_eq!(limits.shares, 512);
        assert_eq!(Limits::of_container(&found, "a").memory, Some(1 << 20));
        assert_eq!(Limits::of_container(&found, "b").memory, Some(3 << 20));
        assert_eq!(Limits::of_container(&found, "b").quota, Some(100_000));
    }

    #[test]
    fn the_larger_limit_is_none_if_either_is() {
        let limits = |memory, shares| Limits {
            memory,
            quota: None,
            shares,
        };
        let larger = limits(Some(1), 9).max(limits(Some(2), 8));
        assert_eq!(larger, limits(Some(2), 9));
        assert_eq!(limits(Some(1), 2).max(limits(None, 2)).memory, None);
        assert!(limits(Some(1), 2).is_limiting() && !limits(None, 5).is_limiting());
    }

    fn any_quantity() -> impl Strategy<Value = String> {
        let suffix = prop::sample::select(vec!["", "m", "u", "n", "k", "Ki", "Mi", "Gi", "E"]);
        (0_u64..=u64::MAX, suffix).prop_map(|(number, suffix)| format!("{number}{suffix}"))
    }

    proptest! {
        /// All quantities result in values that the kernel accepts, and more cores never result in
        /// less time.
        #[test]
        fn values_are_in_range_and_monotonic(one in any_quantity(), other in any_quantity()) {
            let (one, other) = (amount(&one), amount(&other));
            for cores in [one, other] {
                prop_assert!((MIN_QUOTA..=MAX_QUOTA).contains(&quota(cores)));
                prop_assert!(SHARES.contains(&shares(cores)));
                let limits = Limits { shares: shares(cores), ..Limits::default() };
                prop_assert!((1..=10_000).contains(&limits.weight()));
            }
            let (less, more) = if one <= other { (one, other) } else { (other, one) };
            prop_assert!(quota(less) <= quota(more));
            prop_assert!(shares(less) <= shares(more));
            prop_assert!(bytes(less) <= bytes(more));
        }

        /// The quota of a pod is at least the quota of each container, as version 1 requires.
        #[test]
        fn a_pods_quota_is_at_least_its_containers(
            cores in prop::collection::vec(1_u64..1_000_000, 1..6),
        ) {
            let containers = cores.iter().enumerate().map(|(index, milli)| json!({
                "name": format!("c{index}"),
                "resources": {"limits": {"cpu": format!("{milli}m")}},
            }));
            let found = pod(json!({"containers": containers.collect::<Vec<_>>()}));
            let total = Limits::of_pod(&found).quota.unwrap();
            for container in &found.containers {
                prop_assert!(Limits::of_container(&found, &container.name).quota.unwrap() <= total);
            }
        }
    }
}
