//! Creates private directories and checks their path.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

use crate::{
    Error,
    trust::{Facts, SHARED, User},
};

/// The maximum number of symbolic links in a path, as in Linux.
const LINK_LIMIT: usize = 40;

impl User {
    /// The effective user of this process.
    pub(crate) fn current() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            unmapped: unmapped(),
        }
    }
}

/// The user ID that the kernel shows for owners without a mapping in this user namespace.
/// `None` if the namespace maps all users.
fn unmapped() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    let all = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
    if all {
        return None;
    }
    let number = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
    number.trim().parse().ok()
}

pub(crate) fn facts(found: &fs::Metadata) -> Facts {
    Facts {
        uid: found.uid(),
        gid: found.gid(),
        mode: found.mode(),
    }
}

/// Creates a directory and its parents with mode 0700 if they do not exist. Checks the
/// directory and all directories above it, and returns its path without symbolic links.
/// If other users may read an existing directory of this user, its mode becomes 0700.
///
/// # Errors
/// [`Error::Untrusted`]: another user owns the directory or one above it, or may write to
/// it. [`Error::Io`]: the directory cannot be created or inspected.
pub fn private_dir(path: &Path) -> Result<PathBuf, Error> {
    let user = User::current();
    let absolute = std::path::absolute(path).map_err(Error::io("find", path))?;
    // Checks the parents before it creates a directory below them.
    let (checked, is_there) = walk(user, &absolute)?;
    if !is_there {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&checked)
            .map_err(Error::io("create the directory", path))?;
    }
    // Checks the path again, because another user may have created a part of it meanwhile.
    let (real, is_there) = walk(user, &checked)?;
    let found = fs::symlink_metadata(&real).map_err(Error::io("look at", &real))?;
    if !is_there || !found.is_dir() {
        let error = io::Error::from(io::ErrorKind::NotADirectory);
        return Err(Error::io("use the directory", real)(error));
    }
    user.check_own(&real, facts(&found))?;
    if found.mode() & SHARED != 0 {
        fs::set_permissions(&real, fs::Permissions::from_mode(0o700))
            .map_err(Error::io("change the mode of", &real))?;
    }
    Ok(real)
}

/// Checks the directory of an output file for other programs, such as a kubeconfig. If
/// other users may write to the directory, they could replace the file. The directory may
/// belong to any user.
///
/// # Errors
/// The same as [`private_dir`].
pub fn check_output_dir(path: &Path) -> Result<(), Error> {
    let user = User::current();
    let found = fs::metadata(path).map_err(Error::io("look at", path))?;
    let facts = Facts {
        uid: user.uid,
        ..facts(&found)
    };
    user.check_ancestor(path, facts)
}

/// Resolves a path as the kernel does, and checks each directory in it except the last.
/// Returns the path without links, and whether it exists.
fn walk(user: User, path: &Path) -> Result<(PathBuf, bool), Error> {
    let mut real = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = names(path).collect();
    let mut links = 0;
    check(user, &real)?;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        let found = match fs::symlink_metadata(&next) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The rest does not exist and so has no links, but it may contain `..`.
                real = next;
                for name in rest {
                    match name == ".." {
                        true => drop(real.pop()),
                        false => real.push(name),
                    }
                }
                return Ok((real, false));
            }
            Err(error) => return Err(Error::io("look at", next)(error)),
        };
        if found.file_type().is_symlink() {
            links += 1;
            if links > LINK_LIMIT {
                let error = io::Error::from(rustix::io::Errno::LOOP);
                return Err(Error::io("follow", next)(error));
            }
            user.check_link(&next, facts(&found))?;
            let target = fs::read_link(&next).map_err(Error::io("follow", &next))?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(name);
            }
            continue;
        }
        real = next;
        if !rest.is_empty() {
            user.check_ancestor(&real, facts(&found))?;
        }
    }
    Ok((real, true))
}

fn check(user: User, dir: &Path) -> Result<(), Error> {
    let found = fs::symlink_metadata(dir).map_err(Error::io("look at", dir))?;
    user.check_ancestor(dir, facts(&found))
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    fn untrusted(path: &Path) -> PathBuf {
        match private_dir(path) {
            Err(Error::Untrusted { path, .. }) => path,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_new_directory_and_its_parents_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        assert_eq!(private_dir(&path).unwrap(), path);
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
    }

    #[test]
    fn a_directory_that_others_may_read_becomes_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::create_dir(&path).unwrap();
        set_mode(&path, 0o755);
        private_dir(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn directories_that_others_may_write_are_rejected_at_every_level() {
        let folder = tempfile::tempdir().unwrap();
        let (above, path) = (folder.path().join("a"), folder.path().join("a/b"));
        private_dir(&path).unwrap();
        set_mode(&path, 0o777);
        assert_eq!(untrusted(&path), path);
        set_mode(&path, 0o700);
        set_mode(&above, 0o777);
        assert_eq!(untrusted(&path), above);
        assert_eq!(untrusted(&above.join("new/er")), above);
        assert!(
            !above.join("new").exists(),
            "a directory was created below an untrusted one"
        );
        set_mode(&above, 0o1777);
        private_dir(&path).unwrap();
    }

    #[test]
    fn directories_and_links_of_other_users_are_rejected() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(65534), Some(65534)).unwrap();
        assert_eq!(untrusted(&theirs), theirs);
        assert_eq!(untrusted(&theirs.join("mine")), theirs);

        let shared = folder.path().join("shared");
        fs::create_dir(&shared).unwrap();
        set_mode(&shared, 0o1777);
        let link = shared.join("link");
        symlink(folder.path(), &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
        assert_eq!(untrusted(&link.join("data")), link);
    }

    #[test]
    fn links_of_the_user_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::create_dir(&target).unwrap();
        symlink(
            "./../".to_owned() + folder.path().file_name().unwrap().to_str().unwrap() + "/target",
            &link,
        )
        .unwrap();
        assert_eq!(private_dir(&link).unwrap(), target);
        assert_eq!(private_dir(&link.join("x")).unwrap(), target.join("x"));
    }

    #[test]
    fn a_cycle_of_links_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink(&link, &link).unwrap();
        assert!(matches!(private_dir(&link), Err(Error::Io { .. })));
    }

    #[test]
    fn a_file_is_rejected_as_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        assert!(matches!(private_dir(&path), Err(Error::Io { .. })));
    }
}
