//! Users and groups from `/etc/passwd` and `/etc/group`. Container runtimes
//! read them from the image; this node reads the machine's files.

use std::fs;

/// The contents of the two files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accounts {
    pub(crate) passwd: String,
    pub(crate) group: String,
}

impl Accounts {
    /// Reads the machine's files. Missing files count as empty.
    pub(crate) fn of_this_machine() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            passwd: read("/etc/passwd"),
            group: read("/etc/group"),
        }
    }

    /// Returns a user's primary group.
    pub(super) fn primary_group(&self, uid: u32) -> Option<u32> {
        self.user(uid)?.get(3)?.parse().ok()
    }

    /// Returns the home directory of a user. As in container runtimes, this is `/` for a user
    /// without an entry.
    pub(crate) fn home(&self, uid: u32) -> String {
        let user = self.user(uid);
        let home = user.as_ref().and_then(|fields| fields.get(5).copied());
        home.filter(|home| !home.is_empty())
            .unwrap_or("/")
            .to_owned()
    }

    /// Returns the groups that list a user as a member.
    pub(super) fn groups(&self, uid: u32) -> Vec<u32> {
        let Some(name) = self.user(uid).and_then(|fields| fields.first().copied()) else {
            return Vec::new();
        };
        let group = |line: &str| {
            let mut fields = line.split(':');
            let id = fields.nth(2)?.parse().ok()?;
            let mut members = fields.next()?.split(',');
            members.any(|member| member.trim() == name).then_some(id)
        };
        self.group.lines().filter_map(group).collect()
    }

    /// Returns the fields of a user's line.
    fn user(&self, uid: u32) -> Option<Vec<&str>> {
        let lines = self.passwd.lines().map(|line| line.split(':').collect());
        lines
            .into_iter()
            .find(|fields: &Vec<&str>| fields.get(2).and_then(|id| id.parse().ok()) == Some(uid))
    }
}
