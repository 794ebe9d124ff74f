//! Chooses the endpoint for each client. Pure.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::time::Instant;

use crate::table::Target;

/// The maximum number of clients whose endpoint is remembered.
const MAX_CLIENTS: usize = 10_000;

/// Chooses endpoints in turn, or the same endpoint for a client as before.
#[derive(Debug, Default)]
pub(super) struct Chooser {
    next: usize,
    clients: HashMap<IpAddr, (SocketAddr, Instant)>,
}

impl Chooser {
    /// Returns the endpoints in the order in which to try them.
    pub(super) fn order(
        &mut self,
        target: &Target,
        client: IpAddr,
        now: Instant,
    ) -> Vec<SocketAddr> {
        let endpoints = &target.endpoints;
        if endpoints.is_empty() {
            return Vec::new();
        }
        let earlier = target
            .affinity
            .and_then(|lasts| self.earlier(client, lasts, now))
            .and_then(|earlier| endpoints.iter().position(|endpoint| *endpoint == earlier));
        let first = earlier.unwrap_or_else(|| {
            self.next = self.next.wrapping_add(1);
            self.next % endpoints.len()
        });
        let (before, after) = endpoints.split_at(first);
        after.iter().chain(before).copied().collect()
    }

    fn earlier(&self, client: IpAddr, lasts: Duration, now: Instant) -> Option<SocketAddr> {
        let (endpoint, at) = self.clients.get(&client)?;
        (now.saturating_duration_since(*at) < lasts).then_some(*endpoint)
    }

    /// Remembers the endpoint of a client.
    pub(super) fn connected(
        &mut self,
        target: &Target,
        client: IpAddr,
        endpoint: SocketAddr,
        now: Instant,
    ) {
        let Some(lasts) = target.affinity else {
            self.clients.clear();
            return;
        };
        if self.clients.len() >= MAX_CLIENTS {
            self.clients
                .retain(|_, (_, at)| now.saturating_duration_since(*at) < lasts);
            if self.clients.len() >= MAX_CLIENTS {
                self.clients.clear();
            }
        }
        self.clients.insert(client, (endpoint, now));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn target(count: u8, affinity: Option<u64>) -> Target {
        Target {
            endpoints: (0..count).map(endpoint).collect(),
            affinity: affinity.map(Duration::from_secs),
        }
    }

    fn endpoint(last: u8) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 16, 0, last)), 80)
    }

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    proptest! {
        #[test]
        fn every_endpoint_has_its_turn(count in 1_u8..20, rounds in 1_usize..5) {
            let target = target(count, None);
            let mut chooser = Chooser::default();
            let mut seen: HashMap<SocketAddr, usize> = HashMap::new();
            for _ in 0..usize::from(count) * rounds {
                let order = chooser.order(&target, CLIENT, Instant::now());
                prop_assert_eq!(order.len(), usize::from(count));
                let mut all = order.clone();
                all.sort();
                prop_assert_eq!(&all[..], &target.endpoints[..]);
                *seen.entry(order[0]).or_default() += 1;
            }
            prop_assert!(seen.values().all(|times| *times == rounds));
        }
    }

    #[test]
    fn a_client_stays_at_its_endpoint_until_the_time_is_over() {
        let mut target = target(5, Some(10));
        let mut chooser = Chooser::default();
        let start = Instant::now();
        let first = chooser.order(&target, CLIENT, start)[0];
        chooser.connected(&target, CLIENT, first, start);
        for second in 1..10 {
            let now = start + Duration::from_secs(second);
            assert_eq!(chooser.order(&target, CLIENT, now)[0], first);
        }
        let later = start + Duration::from_secs(10);
        assert_ne!(chooser.order(&target, CLIENT, later)[0], first);
        // An endpoint that no longer exists is not chosen.
        target.endpoints = target
            .endpoints
            .iter()
            .copied()
            .filter(|endpoint| *endpoint != first)
            .collect();
        assert!(!chooser.order(&target, CLIENT, start).contains(&first));
    }

    #[test]
    fn the_memory_of_clients_is_bounded() {
        let target = target(2, Some(60));
        let mut chooser = Chooser::default();
        let now = Instant::now();
        for number in 0..30_000_u32 {
            let client = IpAddr::V4(Ipv4Addr::from(number));
            chooser.connected(&target, client, endpoint(0), now);
        }
        assert!(chooser.clients.len() <= MAX_CLIENTS);
    }
}
