//! The objects that every cluster has from its first start.

use serde_json::{Value, json};

use super::{Machine, api_services, create, ownership::Author};
use crate::Error;

/// The namespaces that every cluster has.
const INITIAL: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Initializes an empty store.
pub(crate) fn bootstrap(machine: &mut Machine) -> Result<(), Error> {
    let Some(id) = machine.state.kinds.builtin_id("", "Namespace") else {
        return Ok(());
    };
    if !machine.state.table(id).objects.is_empty() {
        return Ok(());
    }
    let info = machine.state.kinds.entry(id).info.clone();
    machine.execute(false, |tx| {
        for name in INITIAL {
            let namespace = json!({"metadata": {"name": name}});
            create::create_in_transaction(tx, &info, None, namespace, Author::server())?;
        }
        let services = api_services::initial().into_iter();
        let services =
            services.map(|object| ("apiregistration.k8s.io", "APIService", None, object));
        for (group, kind, namespace, object) in initial().into_iter().chain(services) {
            let Some(id) = tx.kinds().builtin_id(group, kind) else {
                continue;
            };
            let info = tx.kinds().entry(id).info.clone();
            create::create_in_transaction(tx, &info, namespace, object, Author::server())?;
        }
        Ok(())
    })
}

/// The other initial objects: group, kind, namespace, object.
fn initial() -> Vec<(&'static str, &'static str, Option<&'static str>, Value)> {
    let class = |name: &str, value: i64, word: &str| {
        let description = format!("Used for system critical pods that must {word}.");
        let object = json!({
            "metadata": {"name": name}, "value": value, "description": description,
        });
        ("scheduling.k8s.io", "PriorityClass", None, object)
    };
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
        },
    });
    vec![
        class(
            "system-cluster-critical",
            2_000_000_000,
            "run in the cluster, but can be moved to another node if necessary",
        ),
        class(
            "system-node-critical",
            2_000_001_000,
            "not be moved from their current node",
        ),
        ("", "Service", Some("default"), service),
    ]
}
