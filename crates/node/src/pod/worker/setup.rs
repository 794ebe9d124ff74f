//! What a pod needs before its containers: an address, names, volumes.

use std::{collections::BTreeMap, fs, net::Ipv4Addr};

use jiff::Timestamp;
use longshore_client::Error;

use super::{Inner, Worker, start};
use crate::{
    access,
    hosts::Host,
    sources::{self, References, Sources},
    volumes::{self, Prepared},
};

impl Worker {
    /// Address, hosts file and volumes; whether all are there.
    pub(super) async fn set_up(&mut self) -> bool {
        if self.volumes.is_some() {
            return true;
        }
        if !self.setup_retry.is_due() {
            return false;
        }
        self.started.get_or_insert_with(Timestamp::now);
        match self.try_set_up().await {
            Ok(prepared) => {
                self.volumes = Some(prepared);
                true
            }
            Err((reason, message)) => {
                self.note(true, reason, message, None);
                self.setup_retry.again();
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
        self.shared.live.set_address(&self.uid, address);
        let folder = self.shared.pod_folder(&self.uid);
        let failed = |error: std::io::Error| {
            let text = format!(
                "the pod's folder {} cannot be made: {error}",
                folder.display()
            );
            ("FailedCreatePodSandBox", text)
        };
        fs::create_dir_all(folder.join("base")).map_err(failed)?;
        self.shared
            .hosts
            .add(&self.uid, self.host(address), &folder.join("hosts"))
            .map_err(failed)?;
        let prepared = self.prepare_volumes().await?;
        let references = References::of_volumes(&self.pod);
        if !references.is_empty() && self.refresher.is_empty() {
            let cluster = self.shared.cluster.clone();
            let inner = self.inner.clone();
            let changed = move || inner.try_send(Inner::SourcesChanged).is_ok();
            self.refresher.spawn(sources::follow(
                cluster,
                self.namespace.clone(),
                references,
                changed,
            ));
        }
        Ok(prepared)
    }

    pub(super) async fn prepare_volumes(
        &self,
    ) -> Result<BTreeMap<String, Prepared>, (&'static str, String)> {
        let failed = |error: &dyn std::fmt::Display| ("FailedMount", error.to_string());
        let Some(address) = self.address else {
            return Ok(BTreeMap::new());
        };
        let references = References::of_volumes(&self.pod);
        let sources = self
            .fetch(&references)
            .await
            .map_err(|error| failed(&error))?;
        let facts = start::facts(&self.shared, address);
        let folder = self.shared.pod_folder(&self.uid);
        if let Some(access) = &self.shared.access
            && access::is_wanted(&self.pod)
        {
            let published = access.publish(&folder, &self.namespace);
            published.map_err(|error| failed(&error))?;
        }
        let folder = folder.join("volumes");
        volumes::prepare(&self.pod, &folder, &sources, &facts).map_err(|error| failed(&error))
    }

    pub(super) async fn fetch(&self, references: &References) -> Result<Sources, Error> {
        if references.is_empty() {
            return Ok(Sources::default());
        }
        sources::fetch(&self.shared.cluster, &self.namespace, references).await
    }

    fn take_address(&mut self) -> Option<Ipv4Addr> {
        if self.address.is_none() {
            let spec = self.pod.spec.as_ref();
            let status = self.pod.status.as_ref();
            let earlier = status.and_then(|status| status.pod_ip.as_deref()?.parse().ok());
            let shared = &self.shared;
            self.address = if spec.is_some_and(|spec| spec.host_network == Some(true)) {
                Some(Ipv4Addr::LOCALHOST)
            } else {
                earlier
                    .filter(|address| shared.addresses.reserve(*address))
                    .or_else(|| shared.addresses.take())
            };
        }
        self.address
    }

    fn host(&self, address: Ipv4Addr) -> Host {
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
