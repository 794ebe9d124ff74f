//! Tests how a process in a pod finds its own task.
#![allow(clippy::unwrap_used)]

use longshore_model::facts::PodFacts;
use serde_json::json;

use super::*;
use crate::tasks::{Assembly, Selected, assemble};

fn tasks() -> Tasks {
    let pod = |namespace: &str, name: &str, hostname: &str, ip: &str| -> PodFacts {
        serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": name, "uid": format!("{namespace}-{name}")},
            "spec": {"hostname": hostname},
            "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}, {"ip": format!("fd00::{}", ip.len())}]},
        }))
        .unwrap()
    };
    let pods = [
        pod("a", "train-0-x7k2p", "train-0", "10.0.0.1"),
        pod("a", "train-1-9b2fc", "train-1", "10.0.0.22"),
        pod("b", "train-0-x7k2p", "train-0", "10.0.0.333"),
    ];
    let selected = Selected {
        role: "worker",
        pods: vec![pods.iter().collect()],
    };
    assemble(&[selected], &Assembly::default()).unwrap()
}

fn find(variables: &[(&str, &str)]) -> Result<u32, String> {
    let set = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let identity = Identity::from_variables(set);
    let tasks = tasks();
    let found = identity.find(&tasks).map_err(|error| error.to_string())?;
    Ok(found.index)
}

#[test]
fn a_task_matches_by_uid_name_host_name_or_address() {
    assert_eq!(find(&[("POD_UID", "b-train-0-x7k2p")]), Ok(1));
    let in_a = ("POD_NAMESPACE", "a");
    assert_eq!(find(&[in_a, ("POD_NAME", "train-0-x7k2p")]), Ok(0));
    assert_eq!(find(&[in_a, ("HOSTNAME", "train-1-9b2fc")]), Ok(2));
    assert_eq!(find(&[in_a, ("HOSTNAME", "train-0")]), Ok(0));
    // With host networking, the host name is the node's.
    assert_eq!(
        find(&[("HOSTNAME", "node-7"), ("POD_IP", "10.0.0.22")]),
        Ok(2)
    );
    assert_eq!(find(&[("POD_IPS", "10.9.9.9,fd00::8")]), Ok(0));
}

#[test]
fn no_match_and_ambiguous_matches_are_errors() {
    // The name exists in two namespaces, and the process does not know its own
    // namespace.
    assert_eq!(
        find(&[("POD_NAME", "train-0-x7k2p")]).unwrap_err(),
        "the pod \"train-0-x7k2p\" is not one of the 3 tasks; check the selectors and the namespace"
    );
    assert!(find(&[("POD_NAMESPACE", "c"), ("HOSTNAME", "train-0")]).is_err());
    assert_eq!(
        find(&[]).unwrap_err(),
        "this process is not one of the 3 tasks; check the selectors and the namespace"
    );
}

#[test]
fn the_identity_of_this_process_has_a_host_name() {
    assert!(Identity::here().hostname.is_some());
}
