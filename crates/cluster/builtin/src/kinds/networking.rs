//! The kinds of networking and discovery.

use crate::{
    Behaviour, Generation, KindRules, NameRule, PLAIN, defaults,
    table::network,
    validate::{endpoints, immutable, ingress, network_policy},
};
use Behaviour::{Acts, Stored};

const NO_ROUTES: Behaviour = Stored("no requests are routed");

const NETWORKING: KindRules = KindRules {
    group: "networking.k8s.io",
    ..PLAIN
};

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        behaviour: Acts("a controller writes the addresses of the pods that a Service selects"),
        generation: Generation::Content,
        fill: defaults::network::slice,
        validate: endpoints::slice,
        validate_update: |before, after, causes| {
            immutable::fixed_without_value(before, after, &["addressType"], causes);
        },
        columns: network::SLICE,
        cells: network::slice,
        ..PLAIN
    },
    KindRules {
        kind: "IPAddress",
        behaviour: Stored("it reserves no address"),
        name: NameRule::Address,
        validate: network_policy::ip_address,
        validate_update: |before, after, causes| {
            immutable::fixed_without_value(before, after, &["spec.parentRef"], causes);
        },
        columns: network::ADDRESS,
        cells: network::address,
        ..NETWORKING
    },
    KindRules {
        kind: "Ingress",
        behaviour: NO_ROUTES,
        generation: Generation::Spec,
        validate: ingress::object,
        validate_new: ingress::new_object,
        columns: network::INGRESS,
        cells: network::ingress,
        ..NETWORKING
    },
    KindRules {
        kind: "IngressClass",
        behaviour: NO_ROUTES,
        generation: Generation::Spec,
        fill: defaults::network::ingress_class,
        validate: ingress::class,
        validate_update: |before, after, causes| {
            immutable::fixed(before, after, &["spec.controller"], causes);
        },
        columns: network::CLASS,
        cells: network::class,
        ..NETWORKING
    },
    KindRules {
        kind: "NetworkPolicy",
        behaviour: Stored("it is not enforced"),
        generation: Generation::Spec,
        fill: defaults::network::policy,
        validate: network_policy::policy,
        columns: network::POLICY,
        cells: network::policy,
        ..NETWORKING
    },
    KindRules {
        kind: "ServiceCIDR",
        behaviour: Stored("Services get no addresses from it"),
        status_metadata: &[],
        validate: network_policy::service_cidr,
        validate_update: network_policy::service_cidr_change,
        columns: network::CIDR,
        cells: network::cidr,
        ..NETWORKING
    },
];
