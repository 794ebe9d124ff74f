//! Finds this process's cgroups from the kernel's files. Pure.

use std::path::{Component, Path, PathBuf};

/// The version of a hierarchy of cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// The directory of a cgroup for a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) version: Version,
    pub(super) path: PathBuf,
    /// The mount point of the hierarchy.
    pub(super) mount: PathBuf,
}

/// The directories of this process's cgroups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OwnCgroups {
    /// The cgroups of version 1, by the names of their controllers.
    pub(super) v1: Vec<(&'static str, Folder)>,
    /// The cgroup of version 2.
    pub(super) v2: Option<Folder>,
}

/// The controllers that the agent uses in version 1.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "cpuacct"];

impl OwnCgroups {
    /// Reads `/proc/self/cgroup` and `/proc/self/mountinfo`.
    pub(super) fn parse(cgroups: &str, mounts: &str) -> Self {
        let mounts: Vec<CgroupMount<'_>> = mounts.lines().filter_map(CgroupMount::parse).collect();
        let mut found = Self::default();
        for line in cgroups.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(own)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if controllers.is_empty() {
                let mount = mounts.iter().find(|mount| mount.kind == "cgroup2");
                found.v2 = mount.and_then(|mount| mount.folder(Version::V2, own));
                continue;
            }
            for controller in CONTROLLERS {
                if !controllers.split(',').any(|name| name == controller) {
                    continue;
                }
                let mount = mounts.iter().find(|mount| {
                    let mut options = mount.options.split(',');
                    mount.kind == "cgroup" && options.any(|option| option == controller)
                });
                let folder = mount.and_then(|mount| mount.folder(Version::V1, own));
                found.v1.extend(folder.map(|folder| (controller, folder)));
            }
        }
        found
    }
}

struct CgroupMount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> CgroupMount<'a> {
    /// Parses a line of mountinfo. Returns `None` for other file systems and for paths that the
    /// kernel has escaped.
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let mut right = right.split(' ');
        let mount = Self {
            root: left.next()?,
            point: left.next()?,
            kind: right.next()?,
            options: right.nth(1)?,
        };
        let is_plain = !mount.root.contains('\\') && !mount.point.contains('\\');
        (matches!(mount.kind, "cgroup" | "cgroup2") && is_plain).then_some(mount)
    }

    /// Returns the directory of a cgroup if it is below the root of the mount.
    fn folder(&self, version: Version, own: &str) -> Option<Folder> {
        let below = Path::new(own).strip_prefix(self.root).ok()?;
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let mount = PathBuf::from(self.point);
        below.components().all(is_plain).then(|| Folder {
            version,
            path: mount.join(below),
            mount,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(version: Version, mount: &str, below: &str) -> Folder {
        Folder {
            version,
            path: Path::new(mount).join(below),
            mount: mount.into(),
        }
    }

    #[test]
    fn both_versions() {
        let cgroups = "5:memory:/job/a\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/user.slice/s\n";
        let mounts = "\
            25 1 0:1 / / rw - ext4 /dev/sda rw\n\
            32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 /job /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let found = OwnCgroups::parse(cgroups, mounts);
        let cpu = folder(Version::V1, "/sys/fs/cgroup/cpu,cpuacct", "");
        let expected = OwnCgroups {
            v1: vec![
                ("memory", folder(Version::V1, "/sys/fs/cgroup/memory", "a")),
                ("cpu", cpu.clone()),
                ("cpuacct", cpu),
            ],
            v2: Some(folder(
                Version::V2,
                "/sys/fs/cgroup/unified",
                "user.slice/s",
            )),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn cgroups_outside_the_mount_are_not_found() {
        let mounts = "1 2 0:1 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        for own in [
            "0::/b\n",
            "0::/a/../b\n",
            "0::\n",
            "nonsense\n",
            "0::/a/..\n",
        ] {
            assert_eq!(OwnCgroups::parse(own, mounts).v2, None, "{own:?}");
        }
        let found = OwnCgroups::parse("0::/a\n", mounts).v2;
        assert_eq!(found, Some(folder(Version::V2, "/sys/fs/cgroup", "")));
        let escaped = "1 2 0:1 / /sys/fs\\040/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(OwnCgroups::parse("0::/\n", escaped).v2, None);
    }
}
