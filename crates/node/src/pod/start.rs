//! From a container's spec to the command that the sandbox runs.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::Shared;
use crate::{
    access, downward,
    environment::{self, ConfigError, Variables, expand},
    node,
    sandbox::{
        Command, Wiring,
        view::{self, Mount, ThisMachine},
    },
    sources::Sources,
    volumes::{self, Prepared, VolumeError},
};

/// Of the agent's own environment, containers get these and no others: the rest
/// may hold secrets.
const INHERITED: [&str; 6] = ["HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"];
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why a container cannot be started as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum PlanError {
    /// A reference of its environment leads nowhere; it may later.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// No command, and images are not pulled.
    #[error(
        "image {image:?} is not pulled: this node runs commands of this machine; \
         give the container a command"
    )]
    NoCommand { image: String },
    /// Its files cannot be shown where it wants them.
    #[error("{0}")]
    View(String),
}

/// What a container's start needs beside its spec.
pub(super) struct Place<'a> {
    pub(super) shared: &'a Shared,
    pub(super) pod: &'a Pod,
    pub(super) container: &'a Container,
    pub(super) address: Ipv4Addr,
    pub(super) volumes: &'a BTreeMap<String, Prepared>,
    pub(super) sources: &'a Sources,
    pub(super) folder: &'a Path,
}

/// A pod's host name: `spec.hostname`, else its name.
pub(super) fn hostname(pod: &Pod) -> String {
    let named = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let mut name = named
        .filter(|name| !name.is_empty())
        .or_else(|| pod.metadata.name.clone())
        .unwrap_or_default();
    name.truncate(63);
    name.trim_end_matches(['-', '.']).to_owned()
}

/// What the downward API says of a pod here.
pub(super) fn facts(shared: &Shared, address: Ipv4Addr) -> downward::Facts {
    downward::Facts {
        pod_ip: address.to_string(),
        host_ip: node::ADDRESS.to_owned(),
        node_name: shared.node.clone(),
        cores: shared.machine.cores as f64,
        memory: shared.machine.memory as f64,
    }
}

impl Place<'_> {
    /// The command, complete.
    pub(super) fn command(&self) -> Result<Command, PlanError> {
        let variables = self.variables()?;
        let value = |name: &str| variables.get(name);
        let words = |list: &Option<Vec<String>>| -> Vec<OsString> {
            list.iter()
                .flatten()
                .map(|word| expand(word, value).into())
                .collect()
        };
        let mut arguments = words(&self.container.command);
        if arguments.is_empty() {
            let image = self.container.image.as_deref().unwrap_or_default();
            if !only_waits(image) {
                return Err(PlanError::NoCommand {
                    image: image.to_owned(),
                });
            }
        } else {
            arguments.extend(words(&self.container.args));
        }
        let folder = self
            .container
            .working_dir
            .as_deref()
            .filter(|path| !path.is_empty());
        let operations = self.operations(&variables)?;
        Ok(Command {
            arguments,
            environment: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            working_folder: PathBuf::from(folder.unwrap_or("/")),
            hostname: hostname(self.pod),
            operations,
            user: self.user(),
            wiring: self.wiring(),
        })
    }

    fn variables(&self) -> Result<Variables, ConfigError> {
        let mut base = Variables::default();
        base.set("PATH", self.path());
        for name in INHERITED {
            if let Ok(value) = env::var(name) {
                base.set(name, value);
            }
        }
        base.set("HOSTNAME", hostname(self.pod));
        if self.container.tty == Some(true) {
            base.set("TERM", "xterm".to_owned());
        }
        base.set("POD_IP", self.address.to_string());
        // Without mounts nobody finds the token: better not to promise it.
        if let Some(access) = &self.shared.access
            && self.shared.spawner.features().has_mounts()
        {
            for (name, value) in access.variables() {
                base.set(name, value);
            }
        }
        environment::variables(&environment::Inputs {
            pod: self.pod,
            container: self.container,
            base,
            lookup: self.sources,
            facts: &facts(self.shared, self.address),
        })
    }

    fn path(&self) -> String {
        let path = env::var("PATH").ok().filter(|path| !path.is_empty());
        let path = path.unwrap_or_else(|| DEFAULT_PATH.to_owned());
        match &self.shared.path_prepend {
            Some(first) => format!("{}:{path}", first.display()),
            None => path,
        }
    }

    fn wiring(&self) -> Wiring {
        if self.container.tty == Some(true) {
            return Wiring::Terminal;
        }
        Wiring::Pipes {
            input: self.container.stdin == Some(true),
            output: true,
            errors: true,
        }
    }

    fn user(&self) -> Option<(Option<u32>, Option<u32>)> {
        let own = self.container.security_context.as_ref();
        let pod = self
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.security_context.as_ref());
        let user = own
            .and_then(|context| context.run_as_user)
            .or_else(|| pod.and_then(|context| context.run_as_user));
        let group = own
            .and_then(|context| context.run_as_group)
            .or_else(|| pod.and_then(|context| context.run_as_group));
        let number = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
        (user.is_some() || group.is_some()).then(|| (number(user), number(group)))
    }

    fn operations(&self, variables: &Variables) -> Result<Vec<view::Operation>, PlanError> {
        let refuse = |error: &dyn std::fmt::Display| PlanError::View(error.to_string());
        let mut mounts = Vec::new();
        for mount in self.container.volume_mounts.iter().flatten() {
            let prepared = self.volumes.get(&mount.name).ok_or_else(|| {
                PlanError::View(format!(
                    "volumeMount {:?} names no volume of the pod",
                    mount.name
                ))
            })?;
            let below = match (&mount.sub_path, &mount.sub_path_expr) {
                (_, Some(text)) if !text.is_empty() => expand(text, |name| variables.get(name)),
                (Some(path), _) => path.clone(),
                _ => String::new(),
            };
            let source: Result<_, VolumeError> = volumes::sub_path(&mount.name, prepared, &below);
            mounts.push(Mount {
                source: source.map_err(|error| refuse(&error))?,
                target: PathBuf::from(&mount.mount_path),
                read_only: prepared.read_only || mount.read_only == Some(true),
            });
        }
        let features = self.shared.spawner.features();
        if !features.has_mounts() {
            let Some(mount) = mounts.first() else {
                return Ok(Vec::new());
            };
            return Err(PlanError::View(format!(
                "the volume at {} cannot be mounted: the kernel forbids mount namespaces here ({}); \
                 run as root or allow unprivileged user namespaces",
                mount.target.display(),
                features.refusal.as_deref().unwrap_or_default()
            )));
        }
        let hosts = Path::new("/etc/hosts");
        if hosts.exists() && !mounts.iter().any(|mount| mount.target == hosts) {
            let source = self.folder.join("hosts");
            mounts.push(Mount {
                source,
                target: hosts.to_owned(),
                read_only: false,
            });
        }
        let account = Path::new(access::FOLDER);
        if self.shared.access.is_some()
            && access::is_wanted(self.pod)
            && !mounts.iter().any(|mount| mount.target == account)
        {
            mounts.push(Mount {
                source: access::place(self.folder),
                target: account.to_owned(),
                read_only: true,
            });
        }
        view::plan(&mounts, &ThisMachine, &self.folder.join("base")).map_err(|error| refuse(&error))
    }
}

/// Images that need no command: they only wait.
fn only_waits(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split([':', '@']).next() == Some("pause")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_wait() {
        assert!(only_waits("pause"));
        assert!(only_waits("registry.k8s.io/pause:3.9"));
        assert!(only_waits("localhost:5000/pause@sha256:00"));
        assert!(!only_waits("nginx"));
        assert!(!only_waits("pause/nginx"));
    }

    #[test]
    fn host_names() {
        let mut pod = Pod::default();
        pod.metadata.name = Some(format!("{}-{}", "a".repeat(62), "b".repeat(9)));
        assert_eq!(hostname(&pod), "a".repeat(62));
        pod.spec = Some(k8s_openapi::api::core::v1::PodSpec {
            hostname: Some("w-0".to_owned()),
            ..Default::default()
        });
        assert_eq!(hostname(&pod), "w-0");
    }
}
