//! Names in `/etc/hosts`. The containers of a pod share a file with the names of the Services and
//! of all pods with a subdomain, like in cluster DNS, for programs that do not use DNS. The file is
//! updated in place.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io,
    net::Ipv4Addr,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use longshore_services::{PodNames, ServiceName};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The data of a pod for hosts files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) namespace: String,
    pub(crate) hostname: String,
    pub(crate) subdomain: Option<String>,
    pub(crate) address: Ipv4Addr,
    /// True if the pod uses the machine's network (`hostNetwork`).
    pub(crate) of_machine: bool,
    /// Additional lines, from `hostAliases`.
    pub(crate) aliases: Vec<(String, Vec<String>)>,
}

impl Host {
    /// Returns the parts of the pod's name. Without a subdomain, the pod has no name for other
    /// pods.
    fn name(&self) -> (&str, &str, Option<&str>) {
        (&self.namespace, &self.hostname, self.subdomain.as_deref())
    }
}

/// Renders a pod's file: the lines of the machine, of the pod, of `others`, and of `services`.
fn render<'a>(
    machine: &str,
    own: &Host,
    others: impl IntoIterator<Item = &'a Host>,
    services: &[ServiceName],
) -> String {
    // The first line is the same as in the kubelet, because programs recognize the file by it.
    let network = if own.of_machine {
        " (host network)"
    } else {
        ""
    };
    let mut text = format!("# Kubernetes-managed hosts file{network}.\n{machine}");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str("# Pods and Services of the cluster; kept up to date by the node agent.\n");
    if own.subdomain.is_none() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}\t{}", own.address, own.hostname);
    }
    for host in others {
        let Some(subdomain) = &host.subdomain else {
            continue;
        };
        let Host {
            namespace,
            hostname,
            address,
            ..
        } = host;
        let _ = write!(text, "{address}\t");
        if *namespace == own.namespace {
            // As with DNS, a bare hostname resolves only to the pod itself.
            if host == own {
                let _ = write!(text, "{hostname} ");
            }
            let _ = write!(text, "{hostname}.{subdomain} ");
        }
        let long = format!("{hostname}.{subdomain}.{namespace}.svc");
        let _ = writeln!(
            text,
            "{hostname}.{subdomain}.{namespace} {long} {long}.cluster.local"
        );
    }
    for service in services {
        let ServiceName {
            namespace, name, ..
        } = service;
        for address in &service.addresses {
            let _ = write!(text, "{address}\t");
            if *namespace == own.namespace {
                let _ = write!(text, "{name} ");
            }
            let long = format!("{name}.{namespace}.svc");
            let _ = writeln!(text, "{name}.{namespace} {long} {long}.cluster.local");
        }
    }
    for (address, names) in &own.aliases {
        let _ = writeln!(text, "{address}\t{}", names.join("\t"));
    }
    text
}

/// A pod in the table, and its file while the file is in use.
type Entry = (Host, Option<PathBuf>);

/// The named pods and the files that list them.
#[derive(Debug)]
pub(crate) struct Hosts {
    machine: String,
    services: Mutex<Vec<ServiceName>>,
    table: Mutex<BTreeMap<String, Entry>>,
    changed: Notify,
}

/// Returns the pods with names to list. A completed pod keeps its name until another pod gets the
/// name, so that a slower peer can still resolve it.
fn listed_hosts(table: &BTreeMap<String, Entry>) -> Vec<&Host> {
    let named = || table.values().filter(|(host, _)| host.subdomain.is_some());
    let is_alive = |entry: &Entry| entry.1.is_some();
    let living: BTreeSet<_> = named()
        .filter(|entry| is_alive(entry))
        .map(|(host, _)| host.name())
        .collect();
    named()
        .filter(|entry| is_alive(entry) || !living.contains(&entry.0.name()))
        .map(|(host, _)| host)
        .collect()
}

impl Hosts {
    /// Starts from the machine's own `/etc/hosts`.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            machine: std::fs::read_to_string("/etc/hosts").unwrap_or_default(),
            services: Mutex::default(),
            table: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Adds a pod and writes its complete file.
    pub(crate) fn add(&self, uid: &str, host: Host, file: &Path) -> io::Result<()> {
        let named = host.subdomain.is_some();
        let text = {
            let mut table = self.table.lock();
            table.insert(uid.to_owned(), (host.clone(), Some(file.to_owned())));
            let services = self.services.lock();
            render(&self.machine, &host, listed_hosts(&table), &services)
        };
        std::fs::write(file, text)?;
        if named {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Adds the name of a pod that was complete when the agent started.
    pub(crate) fn add_retired(&self, uid: &str, host: Host) {
        let named = host.subdomain.is_some();
        self.table.lock().insert(uid.to_owned(), (host, None));
        if named {
            self.changed.notify_one();
        }
    }

    /// Stops updating the file of a completed pod; its name remains.
    pub(crate) fn retire(&self, uid: &str) {
        if let Some((_, file)) = self.table.lock().get_mut(uid) {
            *file = None;
        }
    }

    /// Removes a pod.
    pub(crate) fn remove(&self, uid: &str) {
        let removed = self.table.lock().remove(uid);
        if removed.is_some_and(|(host, _)| host.subdomain.is_some()) {
            self.changed.notify_one();
        }
    }

    /// Replaces the names of the Services.
    pub(crate) fn set_services(&self, names: Vec<ServiceName>) {
        *self.services.lock() = names;
        self.changed.notify_one();
    }

    /// Keeps the files up to date, forever. Simultaneous changes are written together.
    pub(crate) async fn maintain(&self) {
        loop {
            self.changed.notified().await;
            let texts: Vec<(PathBuf, String)> = {
                let table = self.table.lock();
                let hosts = listed_hosts(&table);
                let services = self.services.lock();
                let text =
                    |own: &Host| render(&self.machine, own, hosts.iter().copied(), &services);
                table
                    .values()
                    .filter_map(|(own, file)| Some((file.clone()?, text(own))))
                    .collect()
            };
            for (file, text) in texts {
                if let Err(error) = overwrite(&file, &text) {
                    tracing::debug!(?file, %error, "hosts file not updated");
                }
            }
        }
    }
}

impl PodNames for Hosts {
    fn addresses(&self, namespace: &str, subdomain: &str, hostname: &str) -> Vec<Ipv4Addr> {
        let table = self.table.lock();
        let named = |(host, _): &&Entry| {
            host.namespace == namespace
                && host.hostname == hostname
                && host.subdomain.as_deref() == Some(subdomain)
        };
        let (alive, ended): (Vec<&Entry>, Vec<&Entry>) = table
            .values()
            .filter(named)
            .partition(|(_, file)| file.is_some());
        let listed = if alive.is_empty() { ended } else { alive };
        listed.iter().map(|(host, _)| host.address).collect()
    }

    fn has_address(&self, namespace: &str, address: Ipv4Addr) -> bool {
        let table = self.table.lock();
        table.values().any(|(host, file)| {
            file.is_some() && host.namespace == namespace && host.address == address
        })
    }
}

/// Writes in place, because the file is bind-mounted into containers, and with a single write, so
/// that readers see no partial content.
fn overwrite(file: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::File::options();
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = options.write(true).custom_flags(flags).open(file)?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn host(namespace: &str, hostname: &str, subdomain: Option<&str>, last: u8) -> Host {
        Host {
            namespace: namespace.to_owned(),
            hostname: hostname.to_owned(),
            subdomain: subdomain.map(str::to_owned),
            address: Ipv4Addr::new(127, 16, 0, last),
            of_machine: false,
            aliases: Vec::new(),
        }
    }

    #[test]
    fn short_names_in_the_namespace_long_names_everywhere() {
        let own = host("a", "w-0", Some("w"), 1);
        let peers = [
            own.clone(),
            host("a", "w-1", Some("w"), 2),
            host("b", "w-0", Some("w"), 3),
        ];
        let text = render("127.0.0.1 localhost", &own, &peers, &[]);
        assert_eq!(
            text,
            "# Kubernetes-managed hosts file.\n\
             127.0.0.1 localhost\n\
             # Pods and Services of the cluster; kept up to date by the node agent.\n\
             127.16.0.1\tw-0 w-0.w w-0.w.a w-0.w.a.svc w-0.w.a.svc.cluster.local\n\
             127.16.0.2\tw-1.w w-1.w.a w-1.w.a.svc w-1.w.a.svc.cluster.local\n\
             127.16.0.3\tw-0.w.b w-0.w.b.svc w-0.w.b.svc.cluster.local\n"
        );
    }

    #[test]
    fn a_pod_without_subdomain_lists_itself_and_its_aliases() {
        let mut own = host("a", "alone", None, 1);
        own.aliases
            .push(("10.0.0.1".to_owned(), vec!["x".to_owned(), "y".to_owned()]));
        let text = render("", &own, [&own], &[]);
        assert!(text.ends_with("127.16.0.1\talone\n10.0.0.1\tx\ty\n"));
    }

    #[test]
    fn services_have_short_names_in_their_namespace() {
        let own = host("a", "w-0", Some("w"), 1);
        let peers = [own.clone(), host("a", "web", Some("w"), 2)];
        let service = |namespace: &str, name: &str, last: &[u8]| ServiceName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            addresses: last
                .iter()
                .map(|last| Ipv4Addr::new(127, 8, 0, *last).into())
                .collect(),
        };
        let services = [
            service("a", "web", &[1]),
            service("a", "w", &[2, 3]),
            service("b", "web", &[4]),
        ];
        let text = render("", &own, &peers, &services);
        assert!(
            text.ends_with(
                "127.16.0.2\tweb.w web.w.a web.w.a.svc web.w.a.svc.cluster.local\n\
                 127.8.0.1\tweb web.a web.a.svc web.a.svc.cluster.local\n\
                 127.8.0.2\tw w.a w.a.svc w.a.svc.cluster.local\n\
                 127.8.0.3\tw w.a w.a.svc w.a.svc.cluster.local\n\
                 127.8.0.4\tweb.b web.b.svc web.b.svc.cluster.local\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_completed_pod_keeps_its_name_until_another_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = Hosts::new();
        let file = |name: &str| folder.path().join(name);
        let add = |uid: &str, hostname: &str, last: u8| {
            let host = host("a", hostname, Some("w"), last);
            hosts.add(uid, host, &file(uid)).unwrap();
            std::fs::read_to_string(file(uid)).unwrap()
        };
        add("first", "w-0", 1);
        hosts.retire("first");
        assert!(add("peer", "w-1", 2).contains("127.16.0.1\tw-0.w "));
        let addresses = || hosts.addresses("a", "w", "w-0");
        assert_eq!(addresses(), [Ipv4Addr::new(127, 16, 0, 1)]);
        assert!(!hosts.has_address("a", Ipv4Addr::new(127, 16, 0, 1)));
        let again = add("second", "w-0", 3);
        assert_eq!(addresses(), [Ipv4Addr::new(127, 16, 0, 3)]);
        assert_eq!(hosts.addresses("b", "w", "w-0"), [] as [Ipv4Addr; 0]);
        assert!(hosts.has_address("a", Ipv4Addr::new(127, 16, 0, 3)));
        assert!(!hosts.has_address("b", Ipv4Addr::new(127, 16, 0, 3)));
        assert!(again.contains("127.16.0.3\tw-0 "), "{again}");
        assert!(!again.contains("127.16.0.1\t"), "{again}");
    }

    #[tokio::test]
    async fn files_are_updated_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = Hosts::new();
        let (one, two) = (folder.path().join("1"), folder.path().join("2"));
        hosts
            .add("1", host("a", "w-0", Some("w"), 1), &one)
            .unwrap();
        let opened = std::fs::File::open(&one).unwrap();
        hosts
            .add("2", host("a", "w-1", Some("w"), 2), &two)
            .unwrap();
        let maintainer = {
            let hosts = hosts.clone();
            tokio::spawn(async move { hosts.maintain().await })
        };
        let read = || {
            let mut bytes = vec![0; opened.metadata().unwrap().len() as usize];
            opened.read_exact_at(&mut bytes, 0).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        while !read().contains("w-1.w") {
            tokio::task::yield_now().await;
        }
        hosts.remove("2");
        while read().contains("w-1.w") {
            tokio::task::yield_now().await;
        }
        assert!(read().contains("w-0.w"));
        maintainer.abort();
    }
}
