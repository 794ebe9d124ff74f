//! The kinds of resource.k8s.io: devices that drivers offer and pods claim.

use crate::{
    Behaviour::Stored,
    Generation, KindRules, PLAIN, defaults,
    table::{columns, devices as table, plain},
    validate::devices,
};

const DEVICES: KindRules = KindRules {
    group: "resource.k8s.io",
    behaviour: Stored("no devices are allocated"),
    returns_deleted: true,
    ..PLAIN
};

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        kind: "DeviceClass",
        generation: Generation::Spec,
        validate: devices::class,
        columns: columns::ANY,
        cells: plain::any,
        ..DEVICES
    },
    KindRules {
        kind: "DeviceTaintRule",
        generation: Generation::Spec,
        unconditional_update: false,
        on_insert: defaults::devices::taint_rule_time,
        validate: devices::taint_rule,
        columns: table::TAINT_RULE,
        cells: table::taint_rule,
        ..DEVICES
    },
    KindRules {
        kind: "ResourceClaim",
        fill: defaults::devices::claim,
        on_status: defaults::devices::claim_status,
        validate_new: devices::claim,
        validate_update: devices::fixed_spec,
        validate_status: devices::claim_status,
        columns: table::CLAIM,
        cells: table::claim,
        ..DEVICES
    },
    KindRules {
        kind: "ResourceClaimTemplate",
        fill: defaults::devices::template,
        validate: devices::template,
        validate_update: devices::fixed_spec,
        columns: columns::ANY,
        cells: plain::any,
        ..DEVICES
    },
    KindRules {
        kind: "ResourceSlice",
        fields: &["spec.nodeName", "spec.driver", "spec.pool.name"],
        generation: Generation::Spec,
        on_insert: defaults::devices::slice_times,
        validate: devices::slice,
        validate_update: devices::slice_change,
        columns: table::SLICE,
        cells: table::slice,
        ..DEVICES
    },
];
