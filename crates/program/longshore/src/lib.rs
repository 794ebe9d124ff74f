//! Longshore for Rust: a Kubernetes client. Features add the other parts:
//! `resolver` the resolver for cluster specs, `launcher` the launcher of jobs, `zenml` the
//! launcher of ZenML's pipelines, `recording` recorded requests for tests, and `embedded` an
//! embedded cluster.
//!
//! This crate only re-exports the other crates.

pub use longshore_client as client;
pub use longshore_client::blocking;
#[cfg(feature = "embedded")]
pub use longshore_embedded as embedded;
#[cfg(feature = "launcher")]
pub use longshore_launcher as launcher;
pub use longshore_model as model;
#[cfg(feature = "recording")]
pub use longshore_recording as recording;
#[cfg(feature = "resolver")]
pub use longshore_resolver as resolver;
#[cfg(feature = "zenml")]
pub use longshore_zenml as zenml;

pub use longshore_client::{
    Cache, Cluster, Custom, Error, FieldSelector, Item, Kind, KindRef, LabelSelector, List, Object,
    Patch, Result, View, Watch, WatchEvent, k8s_openapi, kinds, manifest, typed, until,
};

/// Runs the examples in the documents as doctests.
#[cfg(all(
    doctest,
    feature = "embedded",
    feature = "launcher",
    feature = "recording",
    feature = "resolver",
    feature = "zenml"
))]
mod documents {
    #[doc = include_str!("../../../../docs/client.md")]
    struct Client;

    #[doc = include_str!("../../../../docs/clock.md")]
    struct Clock;

    #[doc = include_str!("../../../../docs/faults.md")]
    struct Faults;

    #[doc = include_str!("../../../../docs/recording.md")]
    struct Recording;

    #[doc = include_str!("../../../../docs/resolver.md")]
    struct Resolver;

    #[doc = include_str!("../../../../docs/rust-launcher.md")]
    struct RustLauncher;

    #[doc = include_str!("../../../../docs/snapshots.md")]
    struct Snapshots;

    #[doc = include_str!("../../../../docs/zenml.md")]
    struct Zenml;
}
