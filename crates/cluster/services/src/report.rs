//! Events about ports that cannot be opened.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    io,
};

use jiff::Timestamp;
use longshore_client::Cluster;
use longshore_model::time;
use serde_json::{Value, json};

use crate::{
    forward::Failed,
    table::{Key, Listener},
};

/// The component that the events name.
const COMPONENT: &str = "longshore-services";

/// The listeners of each Service that cannot be opened.
#[derive(Debug, Default)]
pub(crate) struct Reported(HashMap<Key, BTreeSet<Listener>>);

impl Reported {
    /// Records the listeners of a Service that cannot be opened. Returns the new ones.
    pub(crate) fn replace(&mut self, service: &Key, failed: Vec<Failed>) -> Vec<Failed> {
        let now: BTreeSet<Listener> = failed.iter().map(|failed| failed.listener).collect();
        let before = match now.is_empty() {
            true => self.0.remove(service),
            false => self.0.insert(service.clone(), now),
        };
        let is_new = |failed: &Failed| {
            before
                .as_ref()
                .is_none_or(|before| !before.contains(&failed.listener))
        };
        failed.into_iter().filter(is_new).collect()
    }

    /// The Services with listeners that cannot be opened.
    pub(crate) fn services(&self) -> Vec<Key> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes an event about a listener that cannot be opened.
pub(crate) async fn write(
    cluster: &Cluster,
    service: &Key,
    uid: &str,
    failed: &Failed,
    now: Timestamp,
) {
    let message = message(failed, &SERVICE_REMEDIES);
    let Key { namespace, name } = service;
    tracing::warn!(namespace, service = name, "{message}");
    let event = event(service, uid, failed.listener, &message, now);
    let written = match cluster.events().in_namespace(namespace) {
        Ok(events) => events.create(&event).await.map(drop),
        Err(error) => Err(error),
    };
    // A conflict means that an earlier agent has written the event.
    if let Err(error) = written
        && error.code() != Some(409)
    {
        tracing::debug!(%error, "cannot write an event");
    }
}

/// The remedies for a port that cannot be opened.
pub(crate) struct Remedies {
    /// The way to use a port that does not need privileges.
    larger: &'static str,
    /// The field to change if another program uses the port.
    field: &'static str,
    /// The remedy if the address does not belong to this machine.
    address: &'static str,
}

const SERVICE_REMEDIES: Remedies = Remedies {
    larger: "give the Service a larger port",
    field: "port",
    address: "create the Service again without clusterIP",
};

pub(crate) const HOST_PORT_REMEDIES: Remedies = Remedies {
    larger: "use a larger hostPort",
    field: "hostPort",
    address: "change hostIP, or omit it",
};

/// Returns a message with the listener, the error and the remedy.
pub(crate) fn message(failed: &Failed, remedies: &Remedies) -> String {
    let Listener { protocol, address } = failed.listener;
    let port = address.port();
    let Remedies {
        larger,
        field,
        address: other_address,
    } = remedies;
    let remedy = match failed.error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "only root may use ports below 1024 of this machine: {larger}, start the cluster \
             as root, or allow the port with \
             `sysctl net.ipv4.ip_unprivileged_port_start={port}`"
        ),
        io::ErrorKind::AddrInUse => {
            format!("another program uses it: end the program, or change {field} {port}")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("it is not an address of this machine: {other_address}")
        }
        _ => "the port is tried again every few seconds".to_owned(),
    };
    let error = &failed.error;
    format!("cannot forward {protocol} {address}: {error}; {remedy}")
}

fn event(service: &Key, uid: &str, listener: Listener, message: &str, at: Timestamp) -> Value {
    let mut hasher = DefaultHasher::new();
    (uid, listener, message).hash(&mut hasher);
    let Key { namespace, name } = service;
    let at = time::seconds(at);
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{name}.{:016x}", hasher.finish()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Service",
            "namespace": namespace, "name": name, "uid": uid,
        },
        "reason": "PortNotForwarded",
        "message": message,
        "type": "Warning",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;
    use crate::objects::Protocol;

    fn failed(port: u16, code: i32) -> Failed {
        Failed {
            listener: Listener {
                protocol: Protocol::Tcp,
                address: SocketAddr::from((Ipv4Addr::new(127, 8, 0, 1), port)),
            },
            error: io::Error::from_raw_os_error(code),
        }
    }

    #[test]
    fn a_failure_is_reported_once_until_it_ends() {
        let key = Key::new(Some("n"), "s");
        let mut reported = Reported::default();
        assert_eq!(reported.replace(&key, vec![failed(80, 13)]).len(), 1);
        assert_eq!(reported.replace(&key, vec![failed(80, 13)]).len(), 0);
        let both = vec![failed(80, 13), failed(81, 13)];
        assert_eq!(reported.replace(&key, both).len(), 1);
        assert_eq!(reported.services().len(), 1);
        assert!(reported.replace(&key, Vec::new()).is_empty());
        assert!(reported.is_empty());
        assert_eq!(reported.replace(&key, vec![failed(80, 13)]).len(), 1);
    }

    #[test]
    fn messages_name_the_remedy() {
        let denied = message(&failed(80, 13), &SERVICE_REMEDIES);
        assert!(
            denied.starts_with("cannot forward TCP 127.8.0.1:80: Permission denied"),
            "{denied}"
        );
        assert!(
            denied.ends_with("`sysctl net.ipv4.ip_unprivileged_port_start=80`"),
            "{denied}"
        );
        assert!(message(&failed(80, 98), &SERVICE_REMEDIES).contains("another program uses it"));
        assert!(message(&failed(80, 99), &SERVICE_REMEDIES).contains("create the Service again"));
        let of_pod = message(&failed(80, 99), &HOST_PORT_REMEDIES);
        assert!(of_pod.ends_with("change hostIP, or omit it"), "{of_pod}");
    }
}
