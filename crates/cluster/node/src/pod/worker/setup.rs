//! Prepares an address, names and volumes before a pod's containers start.

use std::{
    collections::BTreeMap, fs, net::Ipv4Addr, path::Path, pin::pin, sync::Arc, time::Duration,
};

use longshore_client::{Error, k8s_openapi::api::core::v1::Pod};
use longshore_services::ResolverConfig;

use super::{super::VOLUMES_DIR, SubtaskMessage, Worker, start};
use crate::{
    NewVolume,
    access::{self, AccountFiles},
    claims,
    dns::{self, DnsSettings},
    fill,
    hosts::Host,
    memory, pod_threads,
    sandbox::PodPorts,
    security,
    sources::{self, References, Sources},
    tokens::{Issued, TokenError, TokenSpec},
    volumes::{self, Prepared},
};

/// The time after which an event reports that volumes are not ready.
const SLOW: Duration = Duration::from_secs(5);

fn slow(pod: &Pod) -> String {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    let names: Vec<_> = volumes.map(|volume| volume.name.as_str()).collect();
    format!(
        "volumes are not ready after {} s: {}; the pod waits for them. A host path whose file \
         system does not answer, such as a lost NFS server, can be the cause",
        SLOW.as_secs(),
        names.join(", ")
    )
}

impl Worker {
    /// Prepares the address, hosts file and volumes. Returns true if all are ready.
    pub(super) async fn set_up(&mut self) -> bool {
        if self.volumes.is_some() {
            return true;
        }
        if !self.setup_retry.is_due() {
            return false;
        }
        self.started.get_or_insert_with(|| self.shared.clock.now());
        match self.try_set_up().await {
            Ok(prepared) => {
                self.volumes = Some(prepared);
                true
            }
            Err((reason, message)) => {
                self.note(true, reason, message, None);
                self.setup_retry.back_off();
                false
            }
        }
    }

    async fn try_set_up(&mut self) -> Result<BTreeMap<String, Prepared>, (&'static str, String)> {
        let address = self.take_address().ok_or_else(|| {
            (
                "FailedCreatePodSandBox",
                "the node has no address left for the pod".to_owned(),
            )
        })?;
        self.shared
            .running_containers
            .set_address(&self.uid, address);
        if self.ports.is_none() {
            let own = Some(address).filter(|address| *address != self.shared.address);
            let server = self
                .shared
                .dns
                .filter(|_| dns::uses_cluster_server(&self.pod));
            let redirect = server.and_then(|dns| dns.redirect());
            let ports = PodPorts::new(own, redirect);
            self.ports = (own.is_some() || redirect.is_some()).then(|| Arc::new(ports));
        }
        self.create_cgroup().await;
        self.forward_host_ports();
        self.request_certificates();
        let folder = self.shared.pod_folder(&self.uid);
        let failed = |error: std::io::Error| {
            let text = format!(
                "the pod's folder {} cannot be made: {error}",
                folder.display()
            );
            ("FailedCreatePodSandBox", text)
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        self.shared
            .hosts
            .add(&self.uid, self.host(address), &folder.join("hosts"))
            .map_err(failed)?;
        self.write_resolver_settings(&folder).map_err(failed)?;
        let volumes = folder.join(VOLUMES_DIR);
        let is_new = |name: &&str| !volumes.join(name).exists();
        let new: Vec<String> = fill::empty_volumes(&self.pod)
            .filter(is_new)
            .map(str::to_owned)
            .collect();
        let claims = claims::fetch(&self.shared.cluster, &self.pod).await;
        self.claims = claims.map_err(|error| ("FailedMount", error.to_string()))?;
        let prepared = self.prepare_volumes().await?;
        self.hold_memory(&volumes).await?;
        self.fill_volumes(new, &volumes).await;
        let references = References::of_volumes(&self.pod);
        if self.refresher.is_empty() {
            let (tokens, inner) = (self.tokens.clone(), self.inner.clone());
            self.refresher.spawn(async move {
                let due = async || inner.send(SubtaskMessage::SourcesChanged).await.is_ok();
                tokens.follow(due).await;
            });
        }
        if !references.is_empty() && self.refresher.len() < 2 {
            let cluster = self.shared.cluster.clone();
            let inner = self.inner.clone();
            let changed = move || inner.try_send(SubtaskMessage::SourcesChanged).is_ok();
            self.refresher.spawn(sources::follow(
                cluster,
                self.namespace.clone(),
                references,
                changed,
            ));
        }
        Ok(prepared)
    }

    /// Writes the file that is the containers' `/etc/resolv.conf`.
    fn write_resolver_settings(&self, folder: &Path) -> std::io::Result<()> {
        let machine = ResolverConfig::read(dns::machine_settings());
        let settings = DnsSettings::of(&self.pod, self.shared.dns, machine);
        fs::write(folder.join("resolv.conf"), settings.render())?;
        for (reason, message) in settings.events {
            self.note(true, reason, message, None);
        }
        Ok(())
    }

    /// Starts to request the certificates of the volumes.
    fn request_certificates(&mut self) {
        let Some(certificates) = self.certificates.clone() else {
            return;
        };
        if !self.certifier.is_empty() {
            return;
        }
        let (shared, pod, inner) = (self.shared.clone(), self.pod.clone(), self.inner.clone());
        self.certifier.spawn(async move {
            let note = |note| shared.events.note(&pod, note);
            let changed = async || {
                inner
                    .send(SubtaskMessage::CertificatesChanged)
                    .await
                    .is_ok()
            };
            certificates.follow(note, changed).await;
        });
    }

    pub(super) async fn prepare_volumes(
        &self,
    ) -> Result<BTreeMap<String, Prepared>, (&'static str, String)> {
        let failed = |error: &dyn std::fmt::Display| ("FailedMount", error.to_string());
        let Some(address) = self.address else {
            return Ok(BTreeMap::new());
        };
        let references = References::of_volumes(&self.pod);
        let mut sources = self
            .fetch(&references)
            .await
            .map_err(|error| failed(&error))?;
        let pod_values = start::pod_values(&self.shared, address);
        let folder = self.shared.pod_folder(&self.uid);
        let owner = self.owner();
        let tokens = self.tokens.issue(TokenSpec::of_pod(&self.pod)).await;
        let mut tokens = tokens.map_err(|error| failed(&error))?;
        let account = self.account_files(&mut sources, &mut tokens).await;
        let account = account.map_err(|error| failed(&error))?;
        let certificates = self.certificates.as_ref();
        let certificates = certificates.map(|all| all.current()).unwrap_or_default();
        let (pod, claims) = (self.pod.clone(), self.claims.clone());
        // A file system that does not answer must block only this pod.
        let mut preparing = pin!(pod_threads::run(move || {
            let inputs = volumes::Inputs {
                pod: &pod,
                lookup: &sources,
                pod_values: &pod_values,
                tokens: &tokens,
                account,
                certificates: &certificates,
                claims: &claims,
                owner,
            };
            volumes::prepare(&inputs, &folder.join(VOLUMES_DIR))
        }));
        let prepared = match tokio::time::timeout(SLOW, &mut preparing).await {
            Ok(prepared) => prepared,
            Err(_) => {
                self.note(true, "FailedMount", slow(&self.pod), None);
                preparing.await
            }
        };
        let prepared = prepared.map_err(|error| failed(&error))?;
        prepared.map_err(|error| failed(&error))
    }

    /// Returns the owner of the files that the node creates for the pod.
    fn owner(&self) -> security::Owner {
        let shared = &self.shared;
        security::owner(&self.pod, &shared.agent_privileges, &shared.image_users)
    }

    /// Returns true if this owner is the agent's own user.
    fn owns_files(&self) -> bool {
        let shared = &self.shared;
        fill::is_agents_own(&self.pod, &shared.agent_privileges, &shared.image_users)
    }

    /// Mounts the volumes in memory if this is possible.
    async fn hold_memory(&mut self, volumes: &Path) -> Result<(), (&'static str, String)> {
        let features = self.shared.spawner.features();
        if self.memory.is_some() || !features.has_mounts() || features.has_user_namespace() {
            return Ok(());
        }
        let owner = self.owner();
        let Some(command) = memory::holder(&self.pod, volumes, owner.group) else {
            return Ok(());
        };
        let started = self.shared.spawner.run(&command).await;
        let started = started.map_err(|error| ("FailedMount", error.to_string()))?;
        self.memory = Some(started.process);
        Ok(())
    }

    /// Populates new volumes through the hook if file ownership makes no difference to the
    /// containers.
    async fn fill_volumes(&self, names: Vec<String>, folder: &Path) {
        let Some(fill) = self.shared.fill_volumes.clone() else {
            return;
        };
        if names.is_empty() || !self.owns_files() {
            return;
        }
        let annotations = self.pod.metadata.annotations.clone().unwrap_or_default();
        let folder = folder.to_owned();
        let filled = pod_threads::run(move || {
            for name in names {
                let volume = NewVolume {
                    name: &name,
                    annotations: &annotations,
                    path: &folder.join(&name),
                };
                fill.fill(&volume);
            }
        });
        if let Err(error) = filled.await {
            tracing::warn!(pod = self.name, %error, "cannot populate the pod's volumes");
        }
    }

    /// Adds the certificate and the token of the volume through which clients find the API. Without
    /// token support in the API server, the volume has no token.
    async fn account_files(
        &self,
        sources: &mut Sources,
        tokens: &mut Issued,
    ) -> Result<AccountFiles, TokenError> {
        // Without mounts, containers would not find the files.
        let has_mounts = self.shared.agent_privileges.namespaces;
        let Some(access) = self.shared.access.as_ref().filter(|_| has_mounts) else {
            return Ok(AccountFiles::Absent);
        };
        let Some(volume) = access::account_volume(&self.pod) else {
            return Ok(AccountFiles::Complete);
        };
        sources.add_config_map(access::ROOT_CA, access.root_ca());
        match self.tokens.issue(TokenSpec::of_volumes([volume])).await {
            Ok(issued) => {
                tokens.extend(issued);
                Ok(AccountFiles::Complete)
            }
            Err(error @ TokenError::NotOffered) => {
                let text = format!("{error}; containers find none");
                tracing::warn!(pod = self.name, "{text}");
                self.note(true, "NoServiceAccountToken", text, None);
                Ok(AccountFiles::WithoutToken)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn fetch(&self, references: &References) -> Result<Sources, Error> {
        if references.is_empty() {
            return Ok(Sources::default());
        }
        sources::fetch(&self.shared.cluster, &self.namespace, references).await
    }

    pub(super) fn take_address(&mut self) -> Option<Ipv4Addr> {
        if self.address.is_none() {
            let spec = self.pod.spec.as_ref();
            let status = self.pod.status.as_ref();
            let earlier = status.and_then(|status| status.pod_ip.as_deref()?.parse().ok());
            let shared = &self.shared;
            self.address = if spec.is_some_and(|spec| spec.host_network == Some(true)) {
                Some(shared.address)
            } else {
                earlier
                    .filter(|address| shared.addresses.reserve(*address))
                    .or_else(|| shared.addresses.take())
            };
        }
        self.address
    }

    pub(super) fn host(&self, address: Ipv4Addr) -> Host {
        let spec = self.pod.spec.as_ref();
        let aliases = spec
            .into_iter()
            .flat_map(|spec| spec.host_aliases.iter().flatten());
        Host {
            namespace: self.namespace.clone(),
            hostname: start::hostname(&self.pod),
            subdomain: spec
                .and_then(|spec| spec.subdomain.clone())
                .filter(|subdomain| !subdomain.is_empty()),
            address,
            of_machine: spec.is_some_and(|spec| spec.host_network == Some(true)),
            aliases: aliases
                .map(|alias| {
                    (
                        alias.ip.clone(),
                        alias.hostnames.clone().unwrap_or_default(),
                    )
                })
                .collect(),
        }
    }
}
