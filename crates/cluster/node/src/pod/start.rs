//! Builds the sandbox command from a container's spec.

use std::{
    cell::Cell,
    collections::BTreeMap,
    env,
    ffi::OsString,
    net::Ipv4Addr,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::{Shared, WORK_DIR, messages};
use crate::{
    access,
    cgroups::Group,
    dns, downward,
    environment::{
        self, ConfigError, LARGEST_ENVIRONMENT, LONGEST_TEXT, TooLong, Variables, expand,
    },
    fields,
    sandbox::{
        Command, PodPorts, Wiring,
        view::{self, Mount, Restrictions, Source, ThisMachine},
    },
    security::{self, Accounts, Refusal},
    sources::Sources,
    volumes::{self, Prepared, VolumeError},
};

/// Variables of the agent's environment that containers inherit. The others may
/// contain secrets.
const INHERITED_VARIABLES: [&str; 6] =
    ["HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"];
/// Default working directory of containers that run as another user.
const OTHER_USER_WORKING_DIR: &str = "/tmp";
/// Images of distributions, whose command is a shell.
const SHELL_IMAGES: [&str; 6] = [
    "alpine",
    "busybox",
    "debian",
    "fedora",
    "rockylinux",
    "ubuntu",
];
const SHELL: &str = "sh";
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The reason why a container cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum PlanError {
    /// The environment has an unresolved reference, which may be resolved
    /// later.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The container has no command, and images are not pulled.
    #[error(
        "image {image:?} is not pulled: this node runs commands of this machine; \
         give the container a command or args, or start the cluster with \
         `longshore up --image-entrypoint '{image}=COMMAND'`"
    )]
    NoCommand { image: String },
    /// The container requires something that this node cannot enforce or does
    /// not support.
    #[error("{0}")]
    Security(#[from] Refusal),
    /// A part of a volume cannot be mounted. The pod's annotations or another container may change
    /// this.
    #[error("{0}")]
    SubPath(String),
    /// The volumes cannot be mounted at their mount paths.
    #[error("{0}")]
    View(String),
    /// The default working directory cannot be created.
    #[error("{0}")]
    WorkingFolder(std::io::Error),
}

/// The inputs for the start of a container, in addition to its spec.
pub(super) struct StartContext {
    pub(super) shared: Arc<Shared>,
    pub(super) pod: Pod,
    pub(super) container: Container,
    pub(super) address: Ipv4Addr,
    pub(super) volumes: BTreeMap<String, Prepared>,
    pub(super) sources: Sources,
    pub(super) folder: PathBuf,
    /// The pod's own ports, unless it uses the machine's network.
    pub(super) ports: Option<Arc<PodPorts>>,
    /// Variables that name the Services of the pod's namespace.
    pub(super) links: Arc<[(String, String)]>,
    /// Variables that name the devices allocated to the container.
    pub(super) devices: Vec<(String, String)>,
    /// The cgroup of the container's processes.
    pub(super) cgroup: Option<Arc<Group>>,
}

/// Returns a pod's host name, which is `spec.hostname` or the pod's name.
pub(super) fn hostname(pod: &Pod) -> String {
    let named = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let mut name = named
        .filter(|name| !name.is_empty())
        .or_else(|| pod.metadata.name.clone())
        .unwrap_or_default();
    name.truncate(63);
    name.trim_end_matches(['-', '.']).to_owned()
}

/// Returns the downward API values of a pod.
pub(super) fn pod_values(shared: &Shared, address: Ipv4Addr) -> downward::PodValues {
    downward::PodValues {
        pod_ip: address.to_string(),
        host_ip: shared.address.to_string(),
        node_name: shared.node.clone(),
        cores: shared.machine.cores as f64,
        memory: shared.machine.memory as f64,
        storage: shared.machine.storage as f64,
    }
}

impl StartContext {
    /// Returns the complete command, and creates the working directory if it is the container's
    /// default one. Blocks the thread while a file system does not answer.
    pub(super) fn prepare(&self) -> Result<Command, PlanError> {
        let command = self.command()?;
        if command.working_folder.starts_with(&self.folder) {
            std::fs::create_dir_all(&command.working_folder).map_err(PlanError::WorkingFolder)?;
        }
        Ok(command)
    }

    fn command(&self) -> Result<Command, PlanError> {
        fields::check(&self.pod, &self.container)?;
        let accounts = Accounts::of_this_machine();
        let enforced = security::enforce(
            &self.pod,
            &self.container,
            &self.shared.agent_privileges,
            &accounts,
            &self.shared.image_users,
        )?;
        let user = enforced.privileges.user;
        let home = user
            .filter(|user| self.is_other_user(*user))
            .map(|user| accounts.home(user));
        let variables = self.variables(home)?;
        let arguments = self.arguments(&variables)?;
        let shown = self.cgroup.as_ref().map(|group| group.shown());
        let restrictions = Restrictions {
            read_only_root: enforced.read_only_root,
            masks_proc: enforced.masks_proc,
            cgroups: shown.as_deref().unwrap_or_default(),
            writable_cgroups: self.is_privileged(),
        };
        let operations = self.operations(&variables, restrictions)?;
        Ok(Command {
            arguments,
            environment: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            working_folder: self.working_folder(user),
            makes_working_folder: self.is_in_own_volume(),
            hostname: hostname(&self.pod),
            operations,
            privileges: enforced.privileges,
            wiring: self.wiring(),
            ports: self.ports.clone(),
            cgroup: self.cgroup.clone(),
        })
    }

    fn is_privileged(&self) -> bool {
        let context = self.container.security_context.as_ref();
        context.is_some_and(|context| context.privileged == Some(true))
    }

    /// Returns the container's command and args. Without a command, returns the configured
    /// entrypoint of the image with the args, or the args alone.
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
        if arguments.is_empty() && has_shell(image) {
            arguments.push(SHELL.into());
        }
        if arguments.is_empty() && !only_waits(image) {
            return Err(PlanError::NoCommand {
                image: image.to_owned(),
            });
        }
        Ok(arguments)
    }

    /// Returns the working directory: `workingDir`, or an empty directory that is removed with the
    /// pod, like the working directory of an image. Users other than the agent's cannot access it
    /// and start in `/tmp`.
    fn working_folder(&self, user: Option<u32>) -> PathBuf {
        let own = self.container.working_dir.as_deref();
        if let Some(path) = own.filter(|path| !path.is_empty()) {
            return PathBuf::from(path);
        }
        if user.is_some_and(|user| self.is_other_user(user)) {
            return PathBuf::from(OTHER_USER_WORKING_DIR);
        }
        self.folder.join(WORK_DIR).join(&self.container.name)
    }

    /// Returns true if `workingDir` is in an `emptyDir`. Container runtimes create a missing
    /// directory; in other places, it would remain on the machine or in a claim.
    fn is_in_own_volume(&self) -> bool {
        let folder = Path::new(self.container.working_dir.as_deref().unwrap_or_default());
        if folder.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        let mounts = self.container.volume_mounts.iter().flatten();
        let around = mounts.filter(|mount| folder.starts_with(&mount.mount_path));
        let innermost = around.max_by_key(|mount| mount.mount_path.len());
        let volumes = self.pod.spec.iter().flat_map(|spec| &spec.volumes);
        let mut own = volumes
            .flatten()
            .filter(|volume| volume.empty_dir.is_some());
        innermost.is_some_and(|mount| own.any(|volume| volume.name == mount.name))
    }

    /// Returns true if a user of a container is not the agent's. Only root can change users;
    /// otherwise every user is the agent's own.
    fn is_other_user(&self, user: u32) -> bool {
        self.shared.agent_privileges.is_root() && user != 0
    }

    /// Returns the environment variables, with the home directory of a user other than the
    /// agent's.
    fn variables(&self, home: Option<String>) -> Result<Variables, ConfigError> {
        let mut base = Variables::default();
        base.set("PATH", self.path());
        for name in INHERITED_VARIABLES {
            if let Ok(value) = env::var(name) {
                base.set(name, value);
            }
        }
        if let Some(home) = home {
            base.set("HOME", home);
        }
        base.set("HOSTNAME", hostname(&self.pod));
        if self.container.tty == Some(true) {
            base.set("TERM", "xterm".to_owned());
        }
        base.set("POD_IP", self.address.to_string());
        for (name, value) in self.links.iter() {
            base.set(name, value.clone());
        }
        // Without mounts, the token file would not be visible to the container.
        if let Some(access) = &self.shared.access
            && self.shared.spawner.features().has_mounts()
        {
            for (name, value) in access.variables() {
                base.set(name, value);
            }
        }
        for (name, value) in &self.devices {
            base.set(name, value.clone());
        }
        let mut all = environment::variables(&environment::Inputs {
            pod: &self.pod,
            container: &self.container,
            base,
            lookup: &self.sources,
            pod_values: &pod_values(&self.shared, self.address),
        })?;
        // Overrides the pod's values, because another container may hold the other devices.
        for (name, value) in &self.devices {
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
        restrictions: Restrictions<'_>,
    ) -> Result<Vec<view::Operation>, PlanError> {
        let refuse = |error: &dyn std::fmt::Display| PlanError::View(error.to_string());
        let mut mounts = Vec::new();
        let account = access::account_volume(&self.pod);
        for mount in self.container.volume_mounts.iter().flatten() {
            let is_account = account.is_some_and(|volume| volume.name == mount.name);
            if is_account && !self.volumes.contains_key(&mount.name) {
                continue;
            }
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
                source: source.map_err(|error| PlanError::SubPath(error.to_string()))?,
                target: PathBuf::from(&mount.mount_path),
                read_only: prepared.read_only || mount.read_only == Some(true),
            });
        }
        let features = self.shared.spawner.features();
        if let Some(target) = messages::path(&self.pod, &self.container)
            && !mounts.iter().any(|mount| mount.target == target)
        {
            let source = messages::create(&self.folder, &self.container.name);
            mounts.push(Mount {
                source: Source::whole(source.map_err(|error| refuse(&error))?),
                target,
                read_only: false,
            });
        }
        if !features.has_mounts() {
            if dns::has_own_settings(&self.pod) {
                return Err(PlanError::View(format!(
                    "dnsPolicy None and dnsConfig need a mount at {}, and the kernel forbids mount \
                     namespaces here ({}); run as root or allow unprivileged user namespaces",
                    dns::RESOLV_CONF,
                    features.refusal.as_deref().unwrap_or_default()
                )));
            }
            let Some(mount) = mounts.first() else {
                return Ok(Vec::new());
            };
            return Err(PlanError::View(format!(
                "the volume or file at {} cannot be mounted: the kernel forbids mount namespaces here ({}); \
                 run as root or allow unprivileged user namespaces",
                mount.target.display(),
                features.refusal.as_deref().unwrap_or_default()
            )));
        }
        for (path, file) in [("/etc/hosts", "hosts"), (dns::RESOLV_CONF, "resolv.conf")] {
            let path = Path::new(path);
            if path.exists() && !mounts.iter().any(|mount| mount.target == path) {
                mounts.push(Mount {
                    source: Source::whole(self.folder.join(file)),
                    target: path.to_owned(),
                    read_only: false,
                });
            }
        }
        let base = self.shared.mount_base();
        view::plan(&mounts, restrictions, &ThisMachine, &base).map_err(|error| refuse(&error))
    }
}

/// Expands a `subPathExpr`. An expression with an empty result is rejected, because it would expose
/// another container's part of the volume, or the whole volume.
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
        return Err(PlanError::SubPath(text));
    }
    if path.is_empty() {
        let text = format!("{what}: {text:?} expands to an empty path; set its variables");
        return Err(PlanError::SubPath(text));
    }
    Ok(path)
}

/// Expands the references in a text.
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

/// Returns true if an image needs no command because its container only waits.
fn only_waits(image: &str) -> bool {
    name_of(image) == "pause"
}

/// Returns true if an image's own command is a shell.
fn has_shell(image: &str) -> bool {
    SHELL_IMAGES.contains(&name_of(image))
}

/// Returns the last part of an image's name, without tag and digest.
fn name_of(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split([':', '@']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_images_need_no_command() {
        assert!(only_waits("pause"));
        assert!(only_waits("registry.k8s.io/pause:3.9"));
        assert!(only_waits("localhost:5000/pause@sha256:00"));
        assert!(!only_waits("nginx"));
        assert!(!only_waits("pause/nginx"));
    }

    #[test]
    fn images_of_distributions_run_a_shell() {
        assert!(has_shell("busybox"));
        assert!(has_shell("docker.io/library/alpine:3.22"));
        assert!(!has_shell("busybox/tool"));
        assert!(!has_shell("nginx"));
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
