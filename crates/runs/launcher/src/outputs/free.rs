//! Frees the disk of a task that has ended, so that its outputs can be kept, by removing the files
//! of its folder that are not outputs. The folder is removed later in any case.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, fstat, openat, statat, unlinkat};

use super::{
    path::DEEPEST,
    patterns::Patterns,
    walk::{FOLDER, Tree},
};

impl Tree {
    /// The size of the matching files in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let sizes = self.found.iter().filter_map(|found| {
            let file = self.open(found).ok()?;
            Some(file.metadata().ok()?.len())
        });
        sizes.fold(0, u64::saturating_add)
    }

    /// Removes the files that are not outputs. Removes nothing if an output is a link, because it
    /// may lead to any of the files. Other file systems that are mounted in the folder are not
    /// changed.
    pub(super) fn remove_others(&self, patterns: &Patterns) {
        if self.found.iter().any(|found| found.is_link) {
            return;
        }
        let device = fstat(&self.root).map(|stat| stat.st_dev);
        let top = openat(&self.root, ".", FOLDER, Mode::empty());
        if let (Ok(device), Ok(top)) = (device, top) {
            remove_in(&top, "", (device, 1), patterns);
        }
    }
}

fn remove_in(folder: &OwnedFd, path: &str, (device, depth): (u64, usize), patterns: &Patterns) {
    let Ok(entries) = Dir::read_from(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let text = name.to_string_lossy();
        let own = match path {
            "" => text.to_string(),
            path => format!("{path}/{text}"),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth < DEEPEST && stat.st_dev == device => {
                if let Ok(below) = openat(folder, name, FOLDER, Mode::empty()) {
                    remove_in(&below, &own, (device, depth + 1), patterns);
                }
            }
            FileType::RegularFile if !patterns.has(&own) => {
                let _ = unlinkat(folder, name, AtFlags::empty());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path};

    use super::*;

    fn files(folder: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            match path.symlink_metadata().unwrap().is_dir() {
                true => found.extend(files(&path).iter().map(|below| format!("{name}/{below}"))),
                false => drop(found.insert(name)),
            }
        }
        found
    }

    #[test]
    fn only_outputs_stay_and_links_are_not_followed() {
        let volume = tempfile::tempdir().unwrap();
        let work = volume.path().join("work");
        let outside = volume.path().join("outside");
        fs::create_dir_all(work.join("out/deep")).unwrap();
        fs::create_dir(&outside).unwrap();
        for path in ["out/a", "out/deep/b", "filler", "m.json", "out.txt"] {
            fs::write(work.join(path), "1234").unwrap();
        }
        fs::write(outside.join("kept"), "x").unwrap();
        symlink(&outside, work.join("elsewhere")).unwrap();
        let patterns = Patterns::new(&["out/**".to_owned(), "*.json".to_owned()]).unwrap();
        let tree = || {
            Tree::read(volume.path(), "work", &patterns)
                .unwrap()
                .unwrap()
        };
        assert_eq!(tree().bytes(), 12);
        tree().remove_others(&patterns);
        let left = ["elsewhere", "m.json", "out/a", "out/deep/b"];
        assert_eq!(files(&work), left.map(str::to_owned).into());
        assert!(outside.join("kept").exists());

        // The target of a link among the outputs is not itself an output.
        fs::write(work.join("target"), "x").unwrap();
        symlink("../target", work.join("out/link")).unwrap();
        tree().remove_others(&patterns);
        assert!(work.join("target").exists());
    }
}
