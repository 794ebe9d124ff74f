//! Volumes, claims, and the kinds of storage.k8s.io and storagemigration.k8s.io.

use crate::{
    Admission, Behaviour, Generation, KindRules, PLAIN, defaults,
    table::{policies, storage as table},
    validate::{immutable, storage, storage_migration, volume},
};
use Behaviour::{Acts, Stored};

const STORAGE: KindRules = KindRules {
    group: "storage.k8s.io",
    behaviour: Stored("no storage is managed"),
    unconditional_update: false,
    ..PLAIN
};

/// The finalizer of volumes that are bound.
const PROTECTED_VOLUME: &str = "kubernetes.io/pv-protection";
/// The finalizer of claims that pods use.
const PROTECTED_CLAIM: &str = "kubernetes.io/pvc-protection";

/// The finalizer of VolumeAttributesClasses that claims or volumes have.
const PROTECTED_ATTRIBUTES: &str = "kubernetes.io/vac-protection";

pub(super) static KINDS: &[KindRules] = &[
    KindRules {
        kind: "PersistentVolume",
        behaviour: Acts(
            "a controller binds claims to it and reclaims it; the class `standard` makes directories of the cluster",
        ),
        fill: defaults::volume::volume,
        on_create: |volume| defaults::volume::on_create(volume, PROTECTED_VOLUME),
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
        behaviour: Acts(
            "a controller binds it to a volume, which pods mount; the default class provisions one",
        ),
        fill: defaults::volume::claim,
        on_create: |claim| {
            defaults::volume::on_create(claim, PROTECTED_CLAIM);
            defaults::volume::claim_source(None, claim);
        },
        on_update: |before, claim| defaults::volume::claim_source(Some(before), claim),
        validate: volume::claim,
        validate_update: volume::claim_change,
        admission: Admission::ClaimClass,
        reads_all_of: &[("storage.k8s.io", "StorageClass")],
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
        behaviour: Acts(
            "decides how claims get volumes; a cluster with a node has the class `standard`",
        ),
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
        behaviour: Acts("claims name it; a controller keeps it while claims or volumes have it"),
        on_create: |class| defaults::volume::protect(class, PROTECTED_ATTRIBUTES),
        unconditional_update: true,
        validate: storage::attributes_class,
        validate_update: storage::attributes_class_change,
        returns_deleted: true,
        columns: table::ATTRIBUTES,
        cells: table::attributes,
        ..STORAGE
    },
    KindRules {
        group: "storagemigration.k8s.io",
        kind: "StorageVersionMigration",
        behaviour: Stored("no objects are migrated"),
        status_metadata: &[],
        validate: storage_migration::object,
        validate_update: |before, after, causes| {
            immutable::fixed(before, after, &["spec"], causes);
        },
        validate_status: storage_migration::status,
        columns: table::MIGRATION,
        cells: table::migration,
        ..STORAGE
    },
];
