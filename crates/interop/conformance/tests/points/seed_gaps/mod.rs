//! Guarantees of `kube` that the other modules do not cover: connection pooling, paths
//! by components, conversions of items, empty selectors, and logs of all containers.

mod counting;
mod kinds;
mod logs;
mod proxy;
mod views;
