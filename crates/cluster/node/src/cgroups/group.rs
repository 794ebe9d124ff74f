//! A cgroup that the agent has created, for one or several controllers.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use super::{
    hierarchy::{Folder, Version},
    limits::Limits,
    settings::{self, Setting},
    usage::{self, GroupUsage},
};

/// The number and the interval of the attempts to remove a group whose processes are ending.
const REMOVALS: u32 = 400;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(25);

/// The file with the processes of a group.
const PROCESSES: &str = "cgroup.procs";

/// The directories of a group, by their use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Folders {
    pub(super) memory: Option<Folder>,
    pub(super) cpu: Option<Folder>,
    /// The directory in which CPU time is counted.
    pub(super) accounting: Option<Folder>,
}

impl Folders {
    /// Returns each of the directories once.
    pub(super) fn unique(&self) -> Vec<&Folder> {
        let mut unique: Vec<&Folder> = Vec::new();
        for folder in [&self.memory, &self.cpu, &self.accounting]
            .into_iter()
            .flatten()
        {
            if !unique.iter().any(|known| known.path == folder.path) {
                unique.push(folder);
            }
        }
        unique
    }

    fn join(&self, name: &str) -> Self {
        let join = |folder: &Option<Folder>| {
            folder.as_ref().map(|folder| Folder {
                path: folder.path.join(name),
                ..folder.clone()
            })
        };
        Self {
            memory: join(&self.memory),
            cpu: join(&self.cpu),
            accounting: join(&self.accounting),
        }
    }

    /// Creates the directories of a group below these, and returns them.
    pub(super) fn create(&self, name: &str) -> io::Result<Self> {
        let made = self.join(name);
        let unique = made.unique();
        for (count, folder) in unique.iter().enumerate() {
            if let Err(error) = fs::create_dir(&folder.path) {
                for folder in unique.iter().take(count) {
                    let _ = fs::remove_dir(&folder.path);
                }
                let text = format!("{}: {error}", folder.path.display());
                return Err(io::Error::new(error.kind(), text));
            }
        }
        Ok(made)
    }

    /// Enables the controllers for groups below these directories, which version 2 requires.
    pub(super) fn delegate(&self) -> io::Result<()> {
        for (folder, controller) in [(&self.memory, "memory"), (&self.cpu, "cpu")] {
            if let Some(folder) = folder
                && folder.version == Version::V2
            {
                let path = folder.path.join("cgroup.subtree_control");
                write(&path, &format!("+{controller}"))?;
            }
        }
        Ok(())
    }

    /// Removes the directories. Returns true if none is left.
    fn remove(&self) -> bool {
        let folders = self.unique();
        let left = folders.iter().filter(|folder| !remove(&folder.path));
        left.count() == 0
    }
}

/// Removes the directory of a group, and the groups that a privileged container has created in it.
/// Returns true if the directory is gone; a group with processes remains. The files of groups
/// cannot be removed and disappear with the directory.
pub(super) fn remove(folder: &Path) -> bool {
    // Not recursive, because a container can create groups deeper than the stack.
    let mut left = vec![(folder.to_owned(), false)];
    while let Some((path, is_listed)) = left.last_mut() {
        let removed = fs::remove_dir(&*path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        });
        if removed.is_ok() || *is_listed {
            left.pop();
            continue;
        }
        *is_listed = true;
        let entries = fs::read_dir(&*path).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let folders: Vec<_> = folders.map(|entry| (entry.path(), false)).collect();
        left.extend(folders);
    }
    !folder.exists()
}

/// Writes a value in one system call, without creating the file.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    let written = OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| {
        let text = format!("{value} cannot be written to {}: {error}", path.display());
        io::Error::new(error.kind(), text)
    })
}

/// The location at which a container sees a directory of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The directory on the machine.
    pub(crate) folder: PathBuf,
    /// The mount of its hierarchy.
    pub(crate) mount: PathBuf,
}

/// A group, which is removed when it is dropped, before the group that contains it.
#[derive(Debug)]
pub(crate) struct Group {
    folders: Folders,
    /// Locks of the directories, which show other agents that this agent runs.
    _locks: Vec<OwnedFd>,
    parent: Option<Arc<Group>>,
}

impl Group {
    /// Creates a group from existing directories, which are removed with the group.
    pub(super) fn of(folders: Folders, locks: Vec<OwnedFd>) -> Self {
        Self {
            folders,
            _locks: locks,
            parent: None,
        }
    }

    /// Creates a group in this group for a pod, whose containers get groups in it.
    pub(super) fn for_pod(self: &Arc<Self>, name: &str, limits: &Limits) -> io::Result<Arc<Self>> {
        let group = self.create(name)?;
        group.folders.delegate()?;
        group.set(limits)?;
        Ok(Arc::new(group))
    }

    /// Creates a group in this group for a run of a container.
    pub(super) fn for_container(
        self: &Arc<Self>,
        name: &str,
        limits: &Limits,
    ) -> io::Result<Arc<Self>> {
        let group = self.create(name)?;
        group.set(limits)?;
        if let Some(memory) = &group.folders.memory {
            apply(&memory.path, &settings::out_of_memory(memory.version))?;
        }
        Ok(Arc::new(group))
    }

    fn create(self: &Arc<Self>, name: &str) -> io::Result<Self> {
        Ok(Self {
            folders: self.folders.create(name)?,
            _locks: Vec::new(),
            parent: Some(self.clone()),
        })
    }

    /// Sets the limits.
    pub(crate) fn set(&self, limits: &Limits) -> io::Result<()> {
        if let Some(memory) = &self.folders.memory {
            apply(&memory.path, &settings::memory(memory.version, limits))?;
        }
        if let Some(cpu) = &self.folders.cpu {
            apply(&cpu.path, &settings::cpu(cpu.version, limits))?;
        }
        Ok(())
    }

    /// Opens the files through which a process joins the group by writing `0` to each.
    pub(crate) fn open(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |folder: &Folder| {
            let path = folder.path.join(PROCESSES);
            Ok(OpenOptions::new().write(true).open(path)?.into())
        };
        self.folders.unique().into_iter().map(open).collect()
    }

    /// A group whose only file is the list of processes.
    #[cfg(test)]
    pub(crate) fn of_test(folder: &Path) -> Arc<Self> {
        fs::write(folder.join(PROCESSES), "").unwrap_or_default();
        let memory = Folder {
            version: Version::V2,
            path: folder.to_owned(),
            mount: folder.to_owned(),
        };
        let folders = Folders {
            memory: Some(memory),
            ..Folders::default()
        };
        Arc::new(Self::of(folders, Vec::new()))
    }

    /// Returns true if a process is in the group or in a group below it.
    pub(crate) fn contains(&self, process: i32) -> bool {
        let Ok(text) = fs::read_to_string(format!("/proc/{process}/cgroup")) else {
            // The process has ended, and was in the group as far as is known.
            return true;
        };
        self.folders.unique().iter().all(|folder| {
            let Ok(below) = folder.path.strip_prefix(&folder.mount) else {
                return false;
            };
            let suffix = format!("/{}", below.display());
            text.lines().any(|line| line.ends_with(&suffix))
        })
    }

    /// Returns the number of the group's processes that the kernel has killed for lack of memory.
    pub(crate) fn out_of_memory_kills(&self) -> u64 {
        let count = self.folders.memory.as_ref().and_then(|memory| {
            let file = match memory.version {
                Version::V1 => "memory.oom_control",
                Version::V2 => "memory.events",
            };
            let text = fs::read_to_string(memory.path.join(file)).ok()?;
            usage::value(&text, "oom_kill")
        });
        count.unwrap_or(0)
    }

    /// Returns the memory that the group uses, including files that were not used recently.
    pub(crate) fn memory_usage(&self) -> Option<u64> {
        let memory = self.folders.memory.as_ref()?;
        let file = match memory.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        let text = fs::read_to_string(memory.path.join(file)).ok()?;
        text.trim().parse().ok()
    }

    /// Returns the usage of the group, or `None` if the kernel does not count both CPU time and
    /// memory.
    pub(crate) fn usage(&self) -> Option<GroupUsage> {
        let (memory, time) = (
            self.folders.memory.as_ref()?,
            self.folders.accounting.as_ref()?,
        );
        let read = |folder: &Folder, file: &str| fs::read_to_string(folder.path.join(file)).ok();
        let (total, counted) = match memory.version {
            Version::V1 => ("memory.usage_in_bytes", "memory.stat"),
            Version::V2 => ("memory.current", "memory.stat"),
        };
        let used = match time.version {
            Version::V1 => "cpuacct.usage",
            Version::V2 => "cpu.stat",
        };
        Some(GroupUsage {
            cpu_nanoseconds: usage::cpu_nanoseconds(time.version, &read(time, used)?)?,
            memory: usage::working_set(
                memory.version,
                &read(memory, total)?,
                &read(memory, counted)?,
            )?,
        })
    }

    /// Returns the directories of the group that a container sees at the mounts of the hierarchies.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let unique = self.folders.unique().into_iter();
        let shown = unique.map(|folder| Shown {
            folder: folder.path.clone(),
            mount: folder.mount.clone(),
        });
        shown.collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.folders.remove() {
            return;
        }
        // Commands of `exec` end shortly after their container.
        let (folders, parent) = (self.folders.clone(), self.parent.take());
        let removal = move || {
            for _ in 0..REMOVALS {
                thread::sleep(REMOVAL_INTERVAL);
                if folders.remove() {
                    break;
                }
            }
            drop(parent);
        };
        let thread = thread::Builder::new().name("cgroup-remover".to_owned());
        if let Err(error) = thread.spawn(removal) {
            tracing::warn!(%error, "cannot remove a cgroup; the next start removes it");
        }
    }
}

fn apply(folder: &Path, settings: &[Setting]) -> io::Result<()> {
    for setting in settings {
        match write(&folder.join(setting.file), &setting.value) {
            Err(error) if setting.optional => {
                tracing::debug!(%error, "a setting of a cgroup was not accepted");
            }
            result => result?,
        }
    }
    Ok(())
}

/// Opens a directory for its lock; `None` if another process holds it.
pub(super) fn lock(folder: &Path) -> io::Result<Option<OwnedFd>> {
    let file = OwnedFd::from(File::open(folder)?);
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
