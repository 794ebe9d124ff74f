//! The rules for owners and modes of files and directories. They are pure functions.

use std::path::Path;

use crate::Error;

// Mode bits.
const GROUP_WRITE: u32 = 0o020;
const OTHER_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// All permissions of the group and of others.
pub(crate) const SHARED: u32 = 0o077;

/// The effective user of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// In a user namespace that does not map every user, the user ID that the kernel shows
    /// for owners without a mapping, including the system's root.
    pub(crate) unmapped: Option<u32>,
}

/// The metadata of a file or directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mode: u32,
}

impl User {
    /// Returns true if this user or root owns the entry.
    fn trusts_owner(self, facts: Facts) -> bool {
        facts.uid == 0 || facts.uid == self.uid || self.unmapped == Some(facts.uid)
    }

    /// Returns a message about the other users who may write to the entry. The user's own group and
    /// root's group are trusted: on many systems, each user has a group with the same name, and new
    /// files are writable by that group.
    fn other_writer(self, facts: Facts) -> Option<String> {
        if facts.mode & OTHER_WRITE != 0 {
            return Some("every user may write to it".to_owned());
        }
        let is_foreign = facts.gid != self.gid && facts.gid != 0;
        (facts.mode & GROUP_WRITE != 0 && is_foreign)
            .then(|| format!("the group {} may write to it", facts.gid))
    }

    /// Checks a directory above a private directory. In a sticky directory such as /tmp,
    /// other users may create entries, but not replace this user's entries.
    pub(crate) fn check_ancestor(self, path: &Path, facts: Facts) -> Result<(), Error> {
        if !self.trusts_owner(facts) {
            return Err(foreign(path, facts));
        }
        match self.other_writer(facts) {
            Some(problem) if facts.mode & STICKY == 0 => Err(writable(path, problem)),
            _ => Ok(()),
        }
    }

    /// Checks a symbolic link in the path of a private directory. In a sticky directory, any
    /// user may have created it.
    pub(crate) fn check_link(self, path: &Path, facts: Facts) -> Result<(), Error> {
        match self.trusts_owner(facts) {
            true => Ok(()),
            false => Err(foreign(path, facts)),
        }
    }

    /// Checks a private directory or file: only this user may own or write it.
    pub(crate) fn check_own(self, path: &Path, facts: Facts) -> Result<(), Error> {
        if facts.uid != self.uid {
            return Err(foreign(path, facts));
        }
        match self.other_writer(facts) {
            Some(problem) => Err(writable(path, problem)),
            None => Ok(()),
        }
    }
}

fn foreign(path: &Path, facts: Facts) -> Error {
    Error::Untrusted {
        path: path.to_owned(),
        problem: format!("it belongs to another user (uid {})", facts.uid),
        remedy: "choose a directory of your own".to_owned(),
    }
}

fn writable(path: &Path, problem: String) -> Error {
    Error::Untrusted {
        path: path.to_owned(),
        problem,
        remedy: format!(
            "if you trust what is in it, take the right away: `chmod go-w {}`",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: User = User {
        uid: 1000,
        gid: 1000,
        unmapped: None,
    };

    fn facts(uid: u32, gid: u32, mode: u32) -> Facts {
        Facts { uid, gid, mode }
    }

    #[test]
    fn directories_above_belong_to_the_user_or_the_system() {
        let ancestor = |one| ME.check_ancestor(Path::new("/x"), one).is_ok();
        assert!(ancestor(facts(0, 0, 0o755)));
        assert!(ancestor(facts(1000, 1000, 0o775)), "the user's own group");
        assert!(ancestor(facts(0, 0, 0o1777)), "like /tmp");
        assert!(!ancestor(facts(0, 0, 0o777)));
        assert!(!ancestor(facts(1000, 100, 0o775)));
        assert!(!ancestor(facts(65534, 65534, 0o755)));
        let inside = User {
            unmapped: Some(65534),
            ..ME
        };
        let seen = facts(65534, 65534, 0o755);
        assert!(inside.check_ancestor(Path::new("/x"), seen).is_ok());
    }

    #[test]
    fn a_private_file_belongs_only_to_the_user() {
        let own = |one| ME.check_own(Path::new("/x"), one).is_ok();
        assert!(own(facts(1000, 1000, 0o600)));
        assert!(own(facts(1000, 1000, 0o664)));
        assert!(!own(facts(1000, 100, 0o660)));
        assert!(!own(facts(1000, 1000, 0o602)));
        assert!(!own(facts(1000, 1000, 0o1777)), "sticky is not enough");
        assert!(!own(facts(0, 0, 0o644)), "not even root's");
    }

    #[test]
    fn a_link_of_another_user_is_rejected() {
        let link = |uid| ME.check_link(Path::new("/x"), facts(uid, uid, 0o777));
        assert!(link(1000).is_ok() && link(0).is_ok() && link(1001).is_err());
    }
}
