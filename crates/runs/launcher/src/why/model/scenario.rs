//! The events of a generated run: its tasks, the other containers in their pods, and its clients.

use proptest::{collection::vec, option, prelude::*, sample::select};

/// An additional container in the pod of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    None,
    /// A container that does not end by itself, such as an injected proxy.
    Endless,
    /// A container that ends by itself.
    Ends {
        after: i64,
        code: i32,
    },
    /// A sidecar in the notation of Kubernetes, which is restarted repeatedly.
    Crashing,
}

impl Side {
    /// Returns true for a container that affects the phase of the pod.
    pub(super) fn is_beside(self) -> bool {
        matches!(self, Self::Endless | Self::Ends { .. })
    }
}

/// The policy of a Job for failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// The first failure ends the run.
    Once,
    /// Each task is restarted up to this number of times.
    Retries(u32),
    /// The tasks are independent, and each is restarted up to this number of times.
    Sweep(u32),
}

/// An attempt of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) takes: i64,
    pub(super) code: i32,
}

#[derive(Debug, Clone)]
pub(super) struct Role {
    pub(super) name: &'static str,
    pub(super) is_service: bool,
    pub(super) side: Side,
    /// The attempts of each task. The last one is repeated.
    pub(super) tasks: Vec<Vec<Attempt>>,
}

/// A disturbance by another client of a pod whose command is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    Deleted,
    Disrupted,
}

/// The clients that follow the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clients {
    /// The time when the client that started the run is lost, and the time when another client
    /// attaches.
    pub(super) lost: Option<(i64, Option<i64>)>,
    /// True if a client follows the run.
    pub(super) follows: bool,
    /// True if the client may change the status of pods.
    pub(super) may_end: bool,
    /// The delays of the client's watches of pods and Jobs, in seconds.
    pub(super) lag: (i64, i64),
    /// True if the cluster stops the remaining Jobs of runs, like the embedded cluster.
    pub(super) cluster_stops: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) policy: Policy,
    pub(super) roles: Vec<Role>,
    pub(super) parallel: usize,
    pub(super) cancelled: Option<i64>,
    pub(super) deadline: Option<i64>,
    pub(super) admitted: Option<i64>,
    pub(super) harm: Option<(i64, usize, Harm)>,
    pub(super) clients: Clients,
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![
        Just(Side::None),
        Just(Side::Endless),
        (0..8_i64, select(vec![0, 9])).prop_map(|(after, code)| Side::Ends { after, code }),
        Just(Side::Crashing),
    ]
}

fn tasks() -> impl Strategy<Value = Vec<Vec<Attempt>>> {
    let attempt = (1..7_i64, select(vec![0, 0, 0, 3, 7, 137]));
    let attempt = attempt.prop_map(|(takes, code)| Attempt { takes, code });
    vec(vec(attempt, 1..4), 1..4)
}

fn roles() -> impl Strategy<Value = Vec<Role>> {
    let role = |name, is_service| {
        (side(), tasks()).prop_map(move |(side, tasks)| Role {
            name,
            is_service,
            side,
            tasks,
        })
    };
    let more = (
        option::of(role("eval", false)),
        option::of(role("ps", true)),
    );
    (role("worker", false), more).prop_map(|(first, (second, third))| {
        let mut roles = vec![first];
        roles.extend(second);
        roles.extend(third);
        roles
    })
}

fn clients() -> impl Strategy<Value = Clients> {
    let lost = option::weighted(0.4, (1..9_i64, option::of(9..25_i64)));
    let lag = (0..3_i64, 0..3_i64);
    let parts = (lost, any::<bool>(), any::<bool>(), lag, any::<bool>());
    parts.prop_map(|(lost, follows, may_end, lag, cluster_stops)| Clients {
        lost,
        follows,
        may_end,
        lag,
        cluster_stops,
    })
}

pub(super) fn scenarios() -> impl Strategy<Value = Scenario> {
    let policy = prop_oneof![
        Just(Policy::Once),
        (1..3_u32).prop_map(Policy::Retries),
        (0..2_u32).prop_map(Policy::Sweep),
    ];
    let harm = (
        1..6_i64,
        0..3_usize,
        select(vec![Harm::Deleted, Harm::Disrupted]),
    );
    let events = (
        option::weighted(0.2, 1..12_i64),
        option::weighted(0.2, 2..12_i64),
        option::weighted(0.2, 1..4_i64),
        option::weighted(0.2, harm),
    );
    (policy, roles(), 1..4_usize, events, clients()).prop_map(
        |(policy, mut roles, parallel, (cancelled, deadline, admitted, harm), clients)| {
            let is_sweep = matches!(policy, Policy::Sweep(_));
            if is_sweep {
                roles.truncate(1);
            }
            Scenario {
                policy,
                roles,
                parallel: if is_sweep { parallel } else { usize::MAX },
                cancelled,
                deadline,
                admitted,
                harm,
                clients,
            }
        },
    )
}
