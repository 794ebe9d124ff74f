//! Decides in which cgroups the agent can create groups, and creates the agent's group.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use longshore_model::resources::PodResources;
use parking_lot::Mutex;

use super::{
    group::{Folders, Group, lock, write},
    hierarchy::{Folder, OwnCgroups, Version},
    leftovers::{self, AGENT, PREFIX},
    limits::Limits,
};

/// The maximum length of the names of groups.
const MAX_NAME: usize = 255;
/// The number of attempts to create the agent's group, which another agent may remove as a
/// leftover.
const ATTEMPTS: u32 = 3;

/// Distinguishes the groups that this process creates.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// The reason why limits are not enforced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Unavailable {
    text: String,
    /// True if the limit of the pod leaves no memory for another group.
    pub(crate) is_out_of_memory: bool,
}

impl Unavailable {
    /// Returns the error for a process that did not join its cgroup.
    pub(crate) fn not_joined() -> Self {
        Self::because("the kernel did not let a container join its cgroup".to_owned())
    }

    /// Returns the reason and the remedy.
    pub(crate) fn with_remedy(&self) -> String {
        format!(
            "{self}; run the cluster as root, or in a cgroup of its own: \
             systemd-run --user --scope --property=Delegate=yes longshore up"
        )
    }

    fn because(text: String) -> Self {
        Self {
            text,
            is_out_of_memory: false,
        }
    }
}

/// The agent's group, or the reason why it does not exist.
type AgentsGroup = Result<Arc<Group>, Unavailable>;

/// The cgroups of an agent. Clones share them. They are created when the first pod needs one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cgroups {
    own: Arc<OwnCgroups>,
    agents: Arc<Mutex<Option<AgentsGroup>>>,
    /// The reason why the limits of a pod were not enforced.
    reported: Arc<Mutex<Option<Unavailable>>>,
}

impl Cgroups {
    /// Finds the cgroups of this process.
    pub(crate) fn of_this_process() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own = OwnCgroups::parse(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
        Self::new(own)
    }

    pub(super) fn new(own: OwnCgroups) -> Self {
        Self {
            own: Arc::new(own),
            agents: Arc::default(),
            reported: Arc::default(),
        }
    }

    /// Removes the groups of agents that were killed.
    pub(crate) fn remove_leftovers(&self) {
        let v1 = self.own.v1.iter();
        let mut folders: Vec<PathBuf> = v1.map(|(_, folder)| folder.path.clone()).collect();
        if let Some(own) = &self.own.v2 {
            folders.extend(ancestors(own));
        }
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            leftovers::remove(&folder);
        }
    }

    /// Creates the group of a pod; `None` for a pod that neither requests nor limits CPU or
    /// memory.
    pub(crate) fn for_pod(
        &self,
        uid: &str,
        pod: &PodResources,
    ) -> Result<Option<Arc<Group>>, Unavailable> {
        if pod.is_best_effort() {
            return Ok(None);
        }
        let agents = self.agents()?;
        let name = checked(format!("pod{uid}"))?;
        let limits = Limits::of_pod(pod);
        let group = agents.for_pod(&name, &limits).or_else(|error| {
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(error);
            }
            // Processes of an earlier task of the pod are ending, so the name is in use.
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            agents.for_pod(&format!("{name}-{number}"), &limits)
        });
        group.map(Some).map_err(unavailable)
    }

    /// Creates the group of a run of a container in the group of its pod.
    pub(crate) fn for_container(
        pod: &Arc<Group>,
        container: &str,
        limits: &Limits,
    ) -> Result<Arc<Group>, Unavailable> {
        let run = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = checked(format!("{container}-{run}"))?;
        pod.for_container(&name, limits).map_err(unavailable)
    }

    /// Records that the limits of a pod are not enforced. Returns true the first time, so that it
    /// is reported once.
    pub(crate) fn report(&self, error: &Unavailable) -> bool {
        self.reported.lock().replace(error.clone()).is_none()
    }

    /// Returns the reason why limits are not enforced, or `None` if they are. Does not create
    /// groups: before the first pod with limits, it returns the most likely result.
    pub(crate) fn refusal(&self) -> Option<Unavailable> {
        if let Some(reported) = &*self.reported.lock() {
            return Some(reported.clone());
        }
        match &*self.agents.lock() {
            Some(agents) => agents.as_ref().err().cloned(),
            None => predict(&self.own).err(),
        }
    }

    /// Returns the agent's group, and creates it the first time.
    fn agents(&self) -> AgentsGroup {
        let mut agents = self.agents.lock();
        let known = agents.get_or_insert_with(|| create(&self.own).map(Arc::new));
        known.clone()
    }
}

fn unavailable(error: io::Error) -> Unavailable {
    Unavailable {
        text: error.to_string(),
        is_out_of_memory: error.kind() == io::ErrorKind::OutOfMemory,
    }
}

/// Rejects names that would leave the directory. Names from an API server never do.
fn checked(name: String) -> Result<String, Unavailable> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return Ok(name);
    }
    Err(Unavailable::because(format!(
        "{name:?} cannot be the name of a cgroup"
    )))
}

/// Returns an error if [`create`] would most likely fail.
fn predict(own: &OwnCgroups) -> Result<(), Unavailable> {
    for folder in parents(own, would_be_delegated)?.unique() {
        let path = &folder.path;
        if !is_writable(path) {
            let text = format!("cannot create a cgroup in {}", path.display());
            return Err(Unavailable::because(text));
        }
    }
    Ok(())
}

/// Finds the cgroups in which the agent's group is created. `delegated` finds a cgroup of version 2
/// with its controllers.
fn parents(
    own: &OwnCgroups,
    delegated: impl FnOnce(&Folder) -> Option<(Folder, Vec<String>)>,
) -> Result<Folders, Unavailable> {
    let v1 = |controller: &str| {
        let mut all = own.v1.iter();
        let found = all.find(|(name, _)| *name == controller);
        found.map(|(_, folder)| folder.clone())
    };
    let mut folders = Folders {
        memory: v1("memory"),
        cpu: v1("cpu"),
        accounting: v1("cpuacct"),
    };
    // The kernel has each controller in one of the versions.
    if (folders.memory.is_none() || folders.cpu.is_none())
        && let Some(own) = &own.v2
        && let Some((folder, controllers)) = delegated(own)
    {
        let has = |name: &str| controllers.iter().any(|known| known == name);
        if folders.memory.is_none() && has("memory") {
            folders.memory = Some(folder.clone());
        }
        if folders.cpu.is_none() && has("cpu") {
            folders.cpu = Some(folder.clone());
        }
        if folders.accounting.is_none() {
            folders.accounting = Some(folder);
        }
    }
    if folders.memory.is_none() && folders.cpu.is_none() {
        let text = "no cgroup with the controllers cpu and memory is delegated to this process";
        return Err(Unavailable::because(text.to_owned()));
    }
    Ok(folders)
}

/// Creates the agent's group in the cgroups that this process may use.
fn create(own: &OwnCgroups) -> Result<Group, Unavailable> {
    let folders = parents(own, delegated)?;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match create_in(&folders) {
            Ok(Some(group)) => return Ok(group),
            Ok(None) => {}
            Err(error) => last = Some(error),
        }
    }
    let error = last.unwrap_or_else(|| io::Error::other("another agent removes the cgroups"));
    Err(unavailable(error))
}

/// Creates and locks a group. Returns `None` if another agent has removed it as a leftover.
fn create_in(parents: &Folders) -> io::Result<Option<Group>> {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let made = parents.create(&format!("{PREFIX}{}-{number}", process::id()))?;
    let mut locks = Vec::new();
    let mut is_complete = true;
    for folder in made.unique() {
        match lock(&folder.path) {
            Ok(Some(lock)) if folder.path.exists() => locks.push(lock),
            _ => is_complete = false,
        }
    }
    let group = Group::of(made.clone(), locks);
    if !is_complete {
        return Ok(None);
    }
    made.delegate()?;
    Ok(Some(group))
}

/// Returns the cgroups of version 2 that contain this process, from its own to the root.
fn ancestors(own: &Folder) -> Vec<PathBuf> {
    let all = own.path.ancestors();
    all.take_while(|path| path.starts_with(&own.mount))
        .map(Path::to_owned)
        .collect()
}

fn words(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let all = text.split_ascii_whitespace();
    all.filter(|word| matches!(*word, "cpu" | "memory"))
        .map(str::to_owned)
        .collect()
}

/// Finds a cgroup of version 2 in which this process can create groups with controllers, which is
/// its own or the nearest one above it. Returns the cgroup and the controllers.
pub(super) fn delegated(own: &Folder) -> Option<(Folder, Vec<String>)> {
    let candidates = candidates(own);
    let nearest = candidates.first()?;
    if words(&nearest.join(SUBTREE)).is_empty() {
        match take_over(nearest) {
            Ok(()) => {}
            Err(error) => tracing::debug!(%error, "the agent's own cgroup is not delegated to it"),
        }
    }
    first_usable(own, candidates)
}

/// Like [`delegated`], but moves no process and enables nothing.
pub(super) fn would_be_delegated(own: &Folder) -> Option<(Folder, Vec<String>)> {
    let candidates = candidates(own);
    let nearest = candidates.first()?;
    if words(&nearest.join(SUBTREE)).is_empty()
        && let Ok(controllers) = controllers_to_take_over(nearest)
        && is_writable(&nearest.join(SUBTREE))
    {
        return Some((folder(own, nearest.clone()), controllers));
    }
    first_usable(own, candidates)
}

/// The file with the controllers of the cgroups in a cgroup.
const SUBTREE: &str = "cgroup.subtree_control";

fn candidates(own: &Folder) -> Vec<PathBuf> {
    let mut candidates = ancestors(own);
    // An earlier agent of this process has moved it.
    if own.path.ends_with(AGENT) {
        candidates.remove(0);
    }
    candidates
}

fn first_usable(own: &Folder, candidates: Vec<PathBuf>) -> Option<(Folder, Vec<String>)> {
    candidates.into_iter().find_map(|path| {
        let controllers = words(&path.join(SUBTREE));
        let is_usable = !controllers.is_empty() && is_writable(&path);
        is_usable.then(|| (folder(own, path), controllers))
    })
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

fn folder(own: &Folder, path: PathBuf) -> Folder {
    Folder {
        version: Version::V2,
        path,
        mount: own.mount.clone(),
    }
}

/// Returns the controllers of the process's own cgroup if it contains no other process.
fn controllers_to_take_over(own: &Path) -> io::Result<Vec<String>> {
    let present = fs::read_to_string(own.join("cgroup.procs"))?;
    if present.trim() != process::id().to_string() {
        return Err(io::Error::other("it contains other processes"));
    }
    let controllers = words(&own.join("cgroup.controllers"));
    match controllers.is_empty() {
        true => Err(io::Error::other("it has no controllers")),
        false => Ok(controllers),
    }
}

/// Enables the controllers in the process's own cgroup. A cgroup that delegates controllers must
/// not contain processes, so this process moves to a new cgroup below if it is the only one.
pub(super) fn take_over(own: &Path) -> io::Result<()> {
    let id = process::id().to_string();
    let processes = own.join("cgroup.procs");
    let controllers = controllers_to_take_over(own)?;
    let agent = own.join(AGENT);
    match fs::create_dir(&agent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let moved = write(&agent.join("cgroup.procs"), &id);
    let enabled = moved.and_then(|()| {
        let enable = |name: &String| write(&own.join(SUBTREE), &format!("+{name}"));
        controllers.iter().try_for_each(enable)
    });
    if enabled.is_err() {
        let _ = write(&processes, &id);
        let _ = fs::remove_dir(&agent);
    }
    enabled
}
