//! The directories of volumes.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Returns the directory of a volume if the name can be from this provisioner, which uses no
/// separators and no dots.
pub(crate) fn of_volume(parent: &Path, name: &str) -> Option<PathBuf> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_ours = name.starts_with("pvc-") && name.len() <= 63 && name.chars().all(plain);
    is_ours.then(|| parent.join(name))
}

/// Creates the directory that contains all volumes. Other users have no access to it.
pub(crate) fn create_parent(parent: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(parent)
}

/// Creates the directory of a volume. Containers can run as any user, so its mode permits
/// everything. The parent directory denies access to other users of the machine.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    // The mode is changed afterwards, because the umask affects it at creation.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_files::remove_tree;

    use super::*;

    #[test]
    fn only_names_that_the_provisioner_gives_have_directories() {
        let parent = Path::new("/p");
        assert_eq!(
            of_volume(parent, "pvc-0a-1"),
            Some(PathBuf::from("/p/pvc-0a-1"))
        );
        for name in ["data", "pvc-..", "pvc-a/b", "pvc-A", "", "..", "/etc"] {
            assert_eq!(of_volume(parent, name), None, "{name}");
        }
    }

    #[test]
    fn directories_are_created_once_and_removed_without_following_links() {
        let temp = std::env::temp_dir().join(format!("volumes-{}", rand::random::<u64>()));
        let parent = temp.join("volumes");
        create_parent(&parent).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&parent), 0o700);
        let folder = parent.join("pvc-1");
        create(&folder).unwrap();
        assert_eq!(mode(&folder), 0o777);
        fs::write(folder.join("kept"), "x").unwrap();
        create(&folder).unwrap();
        assert!(folder.join("kept").exists());
        let outside = temp.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        fs::create_dir_all(folder.join("locked/inner")).unwrap();
        let locked = fs::Permissions::from_mode(0o500);
        fs::set_permissions(folder.join("locked"), locked).unwrap();
        remove_tree(&folder).unwrap();
        remove_tree(&folder).unwrap();
        assert!(!folder.exists());
        assert!(outside.join("file").exists());
        std::os::unix::fs::symlink(&outside, &folder).unwrap();
        assert!(create(&folder).is_err());
        remove_tree(&temp).unwrap();
    }
}
