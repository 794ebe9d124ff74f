//! From a container's spec to the command that the sandbox runs.

use std::{
    cell::Cell,
    collections::BTreeMap,
    env,
    ffi::OsString,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::{Shared, WORK};
use crate::{
    access, downward,
    environment::{
        self, ConfigError, LARGEST_ENVIRONMENT, LONGEST_TEXT, TooLong, Variables, expand,
    },
    fields, node,
    sandbox::{
        Command, Wiring,
        view::{self, Mount, Restrictions, Source, ThisMachine},
    },
    security::{self, Accounts, Refusal},
    sources::Sources,
    volumes::{self, Prepared, VolumeError},
};

/// Of the agent's own environment, containers get these and no others: the rest
/// may hold secrets.
const INHERITED: [&str; 6] = ["HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"];
/// Where containers start that run as another user and name no `workingDir`.
const FOREIGN_WORKING_FOLDER: &str = "/tmp";
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
         give the container a command or args, or start the cluster with \
         `longshore up --image-entrypoint '{image}=COMMAND'`"
    )]
    NoCommand { image: String },
    /// It asks for what this node cannot enforce, or does not do.
    #[error("{0}")]
    Security(#[from] Refusal),
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
    /// Variables that name the devices allocated to the container.
    pub(super) devices: &'a [(String, String)],
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
        storage: shared.machine.storage as f64,
    }
}

impl Place<'_> {
    /// The command, complete.
    pub(super) fn command(&self) -> Result<Command, PlanError> {
        fields::check(self.pod, self.container)?;
        let enforced = security::enforce(
            self.pod,
            self.container,
            &self.shared.powers,
            &Accounts::of_this_machine(),
        )?;
        let variables = self.variables()?;
        let arguments = self.arguments(&variables)?;
        let restrictions = Restrictions {
            read_only_root: enforced.read_only_root,
            masks_proc: enforced.masks_proc,
        };
        let operations = self.operations(&variables, restrictions)?;
        Ok(Command {
            arguments,
            environment: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            working_folder: self.working_folder(enforced.privileges.user),
            hostname: hostname(self.pod),
            operations,
            privileges: enforced.privileges,
            wiring: self.wiring(),
        })
    }

    /// The container's command and args; without a command the entrypoint that
    /// the image was given, else the args alone.
    fn arguments(&self, variables: &Variables) -> Result<Vec<OsString>, PlanError> {
        let value = |name: &str| variables.get(name);
        let mut size = 0_usize;
        let mut words =
            |field: &str, list: &Option<Vec<String>>| -> Result<Vec<OsString>, ConfigError> {
                let mut words = Vec::new();
                for (at, word) in list.iter().flatten().enumerate() {
                    let what = format!("{field}[{at}]");
                    let word = expanded(&what, word, value)?;
                    size = size.saturating_add(word.len());
                    if size > LARGEST_ENVIRONMENT {
                        let limit = LARGEST_ENVIRONMENT;
                        let what = format!("the command up to {what}");
                        return Err(ConfigError::TooLarge { what, limit });
                    }
                    words.push(word.into());
                }
                Ok(words)
            };
        let mut arguments = words("command", &self.container.command)?;
        let args = words("args", &self.container.args)?;
        let image = self.container.image.as_deref().unwrap_or_default();
        if arguments.is_empty()
            && let Some(entrypoint) = self.shared.image_entrypoints.find(image)
        {
            arguments = entrypoint.iter().map(OsString::from).collect();
        }
        arguments.extend(args);
        if arguments.is_empty() && !only_waits(image) {
            return Err(PlanError::NoCommand {
                image: image.to_owned(),
            });
        }
        Ok(arguments)
    }

    /// Makes the folder where the container starts, if it is the container's own.
    pub(super) fn make_working_folder(&self, folder: &Path) -> std::io::Result<()> {
        match folder.starts_with(self.folder) {
            true => std::fs::create_dir_all(folder),
            false => Ok(()),
        }
    }

    /// Where the container starts: its `workingDir`, else an empty folder of its
    /// own that goes with the pod, as an image's would. Another user than the
    /// agent's cannot come to that one, and starts in `/tmp`.
    fn working_folder(&self, user: Option<u32>) -> PathBuf {
        let own = self.container.working_dir.as_deref();
        if let Some(path) = own.filter(|path| !path.is_empty()) {
            return PathBuf::from(path);
        }
        // Only root can change users; else every user is the agent's own.
        let is_root = rustix::process::geteuid().is_root();
        if is_root && user.is_some_and(|user| user != 0) {
            return PathBuf::from(FOREIGN_WORKING_FOLDER);
        }
        self.folder.join(WORK).join(&self.container.name)
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
        for (name, value) in self.devices {
            base.set(name, value.clone());
        }
        let mut all = environment::variables(&environment::Inputs {
            pod: self.pod,
            container: self.container,
            base,
            lookup: self.sources,
            facts: &facts(self.shared, self.address),
        })?;
        // Whatever the pod says: another container may have the other devices.
        for (name, value) in self.devices {
            all.set(name, value.clone());
        }
        Ok(all)
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

    fn operations(
        &self,
        variables: &Variables,
        restrictions: Restrictions,
    ) -> Result<Vec<view::Operation>, PlanError> {
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
                (_, Some(text)) if !text.is_empty() => sub_path_of(&mount.name, text, variables)?,
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
                source: Source::whole(source),
                target: hosts.to_owned(),
                read_only: false,
            });
        }
        let account = Path::new(access::FOLDER);
        if access::is_published(self.folder) && !mounts.iter().any(|mount| mount.target == account)
        {
            mounts.push(Mount {
                source: Source::whole(access::place(self.folder)),
                target: account.to_owned(),
                read_only: true,
            });
        }
        let base = self.folder.join("base");
        view::plan(&mounts, restrictions, &ThisMachine, &base).map_err(|error| refuse(&error))
    }
}

/// A `subPathExpr`, expanded. One that names no part of the volume is refused:
/// it would show another container's part, or all of them.
fn sub_path_of(mount: &str, text: &str, variables: &Variables) -> Result<String, PlanError> {
    let what = format!("subPathExpr of volumeMount {mount}");
    let missing = Cell::new(None);
    let path = expanded(&what, text, |name| {
        let value = variables.get(name);
        if value.is_none() {
            missing.set(Some(name.to_owned()));
        }
        value
    })?;
    if let Some(name) = missing.take() {
        let text = format!("{what}: {text:?} names the variable {name:?}, which is not set");
        return Err(PlanError::View(text));
    }
    if path.is_empty() {
        let text = format!("{what}: {text:?} expands to an empty path; set its variables");
        return Err(PlanError::View(text));
    }
    Ok(path)
}

/// A text with its references expanded.
fn expanded<'v>(
    what: &str,
    text: &str,
    value: impl Fn(&str) -> Option<&'v str>,
) -> Result<String, ConfigError> {
    expand(text, value).map_err(|TooLong| ConfigError::TooLarge {
        what: what.to_owned(),
        limit: LONGEST_TEXT,
    })
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
