//! Views of a fake machine.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, ffi::OsString};

use super::*;

/// Files by path. `None` is a directory, `Some(link)` a link, and `Some("")` a file.
struct Fake(BTreeMap<PathBuf, Option<&'static str>>);

impl Fake {
    fn new(paths: &[(&str, Option<&'static str>)]) -> Self {
        Self(
            paths
                .iter()
                .map(|(path, what)| (PathBuf::from(path), *what))
                .collect(),
        )
    }
}

impl Machine for Fake {
    fn find(&self, path: &Path) -> Option<FileKind> {
        match self.0.get(&self.resolve(path).ok()?)? {
            None => Some(FileKind::Folder),
            Some(_) => Some(FileKind::File),
        }
    }
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut clean = PathBuf::from("/");
        for name in path.iter().skip(1) {
            clean.push(name);
            if let Some(Some(link)) = self.0.get(&clean)
                && !link.is_empty()
            {
                clean = PathBuf::from(link);
            }
        }
        if self.0.contains_key(&clean) {
            Ok(clean)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
    fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, Entry)>> {
        let inside = self
            .0
            .iter()
            .filter(|(path, _)| path.parent() == Some(folder));
        Ok(inside
            .map(|(path, what)| {
                let entry = match what {
                    None => Entry::Folder,
                    Some("") => Entry::File,
                    Some(link) => Entry::Link(PathBuf::from(link)),
                };
                (path.file_name().unwrap().to_owned(), entry)
            })
            .collect())
    }
    fn mode(&self, _: &Path) -> u32 {
        0o755
    }
}

fn machine() -> Fake {
    Fake::new(&[
        ("/", None),
        ("/bin", Some("/usr/bin")),
        ("/etc", None),
        ("/etc/hosts", Some("")),
        ("/etc/ssl", None),
        ("/proc", None),
        ("/run", None),
        ("/tmp", None),
        ("/usr", None),
        ("/usr/bin", None),
        ("/var", None),
        ("/var/run", Some("/run")),
        ("/v", None),
        ("/v/a", None),
        ("/v/b", None),
        ("/v/file", Some("")),
        ("/tmp/inside", None),
    ])
}

fn mount(source: &str, target: &str) -> Mount {
    Mount {
        source: Source::whole(source),
        target: target.into(),
        read_only: false,
    }
}

fn bind(from: &str, at: &str) -> Operation {
    Operation::Bind {
        from: from.into(),
        at: at.into(),
        optional: false,
    }
}

#[test]
fn existing_paths_are_mounted_in_place() {
    let read_only = Mount {
        read_only: true,
        ..mount("/v/file", "/etc/hosts")
    };
    let plan = plan(
        &[read_only],
        Restrictions::default(),
        &machine(),
        Path::new("/v"),
    )
    .unwrap();
    assert_eq!(
        plan,
        [
            Operation::Private,
            bind("/v/file", "/etc/hosts"),
            Operation::Processes { at: "/proc".into() },
            Operation::ReadOnly {
                at: "/etc/hosts".into()
            },
        ]
    );
}

#[test]
fn a_folder_missing_in_the_root_makes_a_new_root() {
    let plan = plan(
        &[mount("/v/a", "/data/in")],
        Restrictions::default(),
        &machine(),
        Path::new("/v/b"),
    )
    .unwrap();
    assert!(plan.contains(&Operation::Tmpfs {
        at: "/new".into(),
        mode: 0o755,
        group: None,
        size: None,
    }));
    assert!(plan.contains(&Operation::Link {
        to: "/usr/bin".into(),
        at: "/new/bin".into()
    }));
    assert!(plan.contains(&Operation::Folder {
        at: "/new/data".into()
    }));
    assert!(plan.contains(&Operation::Folder {
        at: "/new/data/in".into()
    }));
    assert!(plan.contains(&bind("/old/v/a", "/new/data/in")));
    assert_eq!(
        plan.last(),
        Some(&Operation::Enter {
            root: "/new".into()
        })
    );
}

#[test]
fn a_folder_missing_deeper_covers_only_its_ancestor() {
    let plan = plan(
        &[mount("/v/a", "/etc/app/conf")],
        Restrictions::default(),
        &machine(),
        Path::new("/v/b"),
    )
    .unwrap();
    assert!(plan.contains(&bind("/old", "/new")));
    assert!(plan.contains(&Operation::Tmpfs {
        at: "/new/etc".into(),
        mode: 0o755,
        group: None,
        size: None,
    }));
    let back = Operation::Bind {
        from: "/old/etc/ssl".into(),
        at: "/new/etc/ssl".into(),
        optional: true,
    };
    assert!(plan.contains(&back));
    assert!(!plan.contains(&Operation::Tmpfs {
        at: "/new".into(),
        mode: 0o755,
        group: None,
        size: None,
    }));
}

#[test]
fn links_above_a_missing_path_are_followed() {
    let mounts = [mount("/v/a", "/var/run/secrets/x")];
    let plan = plan(
        &mounts,
        Restrictions::default(),
        &machine(),
        Path::new("/v/b"),
    )
    .unwrap();
    assert!(plan.contains(&bind("/old/v/a", "/new/run/secrets/x")));
}

#[test]
fn volumes_in_volumes_come_after_and_get_a_mount_point_without_following_links() {
    let mounts = [
        mount("/v/file", "/etc/ssl/deep/f"),
        mount("/v/a", "/etc/ssl"),
    ];
    let plan = plan(
        &mounts,
        Restrictions::default(),
        &machine(),
        Path::new("/v/b"),
    )
    .unwrap();
    let walk = |from: &str, below: &str| Walk {
        from: from.into(),
        below: below.into(),
    };
    let expected = [
        bind("/v/a", "/etc/ssl"),
        Operation::Make {
            walk: walk("/v/a", "deep/f"),
            kind: FileKind::File,
            mode: 0o755,
        },
        Operation::Attach {
            from: walk("/v/file", ""),
            at: walk("/etc/ssl", "deep/f"),
            read_only: false,
            descriptors: "/proc/self/fd".into(),
        },
    ];
    assert_eq!(plan[1..4], expected);
}

#[test]
fn a_part_of_a_volume_is_made_and_attached_without_following_links() {
    let part = Mount {
        source: Source {
            path: "/v/a".into(),
            below: Some(Below {
                path: "x/y".into(),
                kind: FileKind::Folder,
                mode: Some(0o777),
            }),
        },
        target: "/etc/ssl".into(),
        read_only: true,
    };
    let plan = plan(
        &[part],
        Restrictions::default(),
        &machine(),
        Path::new("/v/b"),
    )
    .unwrap();
    let from = Walk {
        from: "/v/a".into(),
        below: "x/y".into(),
    };
    let expected = [
        Operation::Make {
            walk: from.clone(),
            kind: FileKind::Folder,
            mode: 0o777,
        },
        Operation::Attach {
            from,
            at: Walk {
                from: "/etc/ssl".into(),
                below: "".into(),
            },
            read_only: true,
            descriptors: "/proc/self/fd".into(),
        },
    ];
    assert_eq!(plan[1..3], expected);
}

#[test]
fn a_read_only_root_is_made_before_the_volumes_appear() {
    let restrictions = Restrictions {
        read_only_root: true,
        masks_proc: true,
        ..Restrictions::default()
    };
    let mounts = [mount("/v/a", "/etc/ssl"), mount("/v/a", "/tmp/new")];
    let plan = plan(&mounts, restrictions, &machine(), Path::new("/v/b")).unwrap();
    let at = |operation: &Operation| plan.iter().position(|one| one == operation).unwrap();
    let made = at(&Operation::Folder {
        at: "/new/tmp/new".into(),
    });
    let sealed = at(&Operation::ReadOnlyTree { at: "/new".into() });
    let bound = at(&bind("/old/v/a", "/new/etc/ssl"));
    assert!(made < sealed && sealed < bound);
    let processes = at(&Operation::Processes {
        at: "/new/proc".into(),
    });
    let masked = at(&Operation::Mask {
        at: "/new/proc/kcore".into(),
    });
    assert!(processes < masked);
}

/// The operations for a container's cgroup in two hierarchies.
fn plan_with_cgroups(mounts: &[Mount], writable_cgroups: bool) -> Vec<Operation> {
    let shown = ["memory", "cpu,cpuacct"].map(|name| Shown {
        folder: Path::new("/sys/fs/cgroup").join(name).join("agent/pod/c"),
        mount: Path::new("/sys/fs/cgroup").join(name),
    });
    let restrictions = Restrictions {
        cgroups: &shown,
        writable_cgroups,
        ..Restrictions::default()
    };
    plan(mounts, restrictions, &machine(), Path::new("/v/b")).unwrap()
}

#[test]
fn a_container_sees_only_its_own_cgroup() {
    let plan = plan_with_cgroups(&[], false);
    let at = |operation: &Operation| plan.iter().position(|one| one == operation).unwrap();
    let bound = at(&bind("/sys/fs/cgroup/memory/agent/pod/c", "/v/b/memory"));
    let detached = at(&Operation::Detach {
        at: "/sys/fs/cgroup".into(),
    });
    let shown = at(&bind("/v/b", "/sys/fs/cgroup"));
    let sealed = at(&Operation::ReadOnly {
        at: "/sys/fs/cgroup/cpu,cpuacct".into(),
    });
    assert!(bound < detached && detached < shown && shown < sealed);
    assert!(plan.contains(&Operation::Link {
        to: "cpu,cpuacct".into(),
        at: "/v/b/cpuacct".into(),
    }));
    let new_root = plan_with_cgroups(&[mount("/v/a", "/missing")], false);
    assert!(new_root.contains(&bind(
        "/old/sys/fs/cgroup/memory/agent/pod/c",
        "/cgroups/memory"
    )));
    assert!(new_root.contains(&bind("/cgroups", "/new/sys/fs/cgroup")));
}

#[test]
fn cgroups_are_not_shown_over_a_volume() {
    let is_shown = |plan: Vec<Operation>| {
        let is_detach = |operation: &Operation| matches!(operation, Operation::Detach { .. });
        plan.iter().any(is_detach)
    };
    assert!(is_shown(plan_with_cgroups(&[], true)));
    assert!(!is_shown(plan_with_cgroups(&[mount("/v/a", "/sys")], true)));
    let is_sealed = |operation: &Operation| matches!(operation, Operation::ReadOnly { .. });
    assert!(!plan_with_cgroups(&[], true).iter().any(is_sealed));
}

#[test]
fn a_mount_that_hides_a_source_goes_through_the_old_root() {
    let mounts = [mount("/v/a", "/tmp"), mount("/tmp/inside", "/etc/ssl")];
    let plan = plan(
        &mounts,
        Restrictions::default(),
        &machine(),
        Path::new("/v/b"),
    )
    .unwrap();
    assert!(plan.contains(&bind("/old/tmp/inside", "/new/etc/ssl")));
}

#[test]
fn invalid_paths_and_other_file_types_are_rejected() {
    let base = Path::new("/v/b");
    let refused = |source: &str, target: &str| {
        plan(
            &[mount(source, target)],
            Restrictions::default(),
            &machine(),
            base,
        )
        .unwrap_err()
    };
    assert!(matches!(refused("/v/a", "data"), ViewError::BadPath(_)));
    assert!(matches!(refused("/v/a", "/a/../b"), ViewError::BadPath(_)));
    assert!(matches!(
        refused("/v/a", "/etc/hosts"),
        ViewError::OtherKind { .. }
    ));
    assert!(matches!(
        refused("/v/file", "/etc"),
        ViewError::OtherKind { .. }
    ));
    assert!(matches!(
        refused("/v/a", "/etc/hosts/below"),
        ViewError::OtherKind { .. }
    ));
    assert!(matches!(
        refused("/v/none", "/etc"),
        ViewError::Source { .. }
    ));
}
