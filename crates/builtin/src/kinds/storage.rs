//! Volumes, claims, and the kinds of storage.k8s.io.

use crate::{
    Behaviour, Generation, KindRules, PLAIN, defaults,
    table::{policies, storage as table},
    validate::{immutable, storage, volume},
};
use Behaviour::Stored;

const STORAGE: KindRules = KindRules {
    group: "storage.k8s.io",
    behaviour: Stored("no storage is managed"),
    unconditional_update: false,
    ..PLAIN
};

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        kind: "PersistentVolume",
        behaviour: Stored("no claims are bound to it"),
        fill: defaults::volume::volume,
        on_create: defaults::volume::on_create,
        on_insert: defaults::volume::on_insert,
        on_status: defaults::volume::on_status,
        validate: volume::volume,
        validate_update: volume::volume_change,
        returns_deleted: true,
        columns: table::VOLUME,
        cells: table::volume,
        ..PLAIN
    },
    KindRules {
        kind: "PersistentVolumeClaim",
        behaviour: Stored("it is never bound, and pods that mount it do not start"),
        fill: defaults::volume::claim,
        on_create: |claim| {
            defaults::volume::on_create(claim);
            defaults::volume::claim_source(None, claim);
        },
        on_update: |before, claim| defaults::volume::claim_source(Some(before), claim),
        validate: volume::claim,
        validate_update: volume::claim_change,
        returns_deleted: true,
        columns: table::CLAIM,
        cells: table::claim,
        ..PLAIN
    },
    KindRules {
        kind: "CSIDriver",
        generation: Generation::SpecFromNone,
        fill: defaults::volume::csi_driver,
        validate: storage::driver,
        validate_update: storage::driver_change,
        returns_deleted: true,
        columns: table::DRIVER,
        cells: table::driver,
        ..STORAGE
    },
    KindRules {
        kind: "CSINode",
        validate: storage::node,
        validate_update: storage::node_change,
        returns_deleted: true,
        columns: table::NODE,
        cells: table::node,
        ..STORAGE
    },
    KindRules {
        kind: "CSIStorageCapacity",
        validate: storage::capacity,
        validate_update: |before, after, causes| {
            let fixed = ["nodeTopology", "storageClassName"];
            immutable::fixed(before, after, &fixed, causes);
        },
        columns: policies::CREATED,
        cells: policies::created,
        ..STORAGE
    },
    KindRules {
        kind: "StorageClass",
        unconditional_update: true,
        fill: defaults::volume::storage_class,
        validate: storage::class,
        validate_update: storage::class_change,
        returns_deleted: true,
        columns: table::CLASS,
        cells: table::class,
        ..STORAGE
    },
    KindRules {
        kind: "VolumeAttachment",
        status_metadata: &[],
        validate: storage::attachment,
        validate_update: |before, after, causes| {
            immutable::fixed_without_value(before, after, &["spec"], causes);
        },
        returns_deleted: true,
        columns: table::ATTACHMENT,
        cells: table::attachment,
        ..STORAGE
    },
    KindRules {
        kind: "VolumeAttributesClass",
        unconditional_update: true,
        validate: storage::attributes_class,
        validate_update: storage::attributes_class_change,
        returns_deleted: true,
        columns: table::ATTRIBUTES,
        cells: table::attributes,
        ..STORAGE
    },
];
