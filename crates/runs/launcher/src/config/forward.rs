//! Ports of tasks to forward to this machine: `[ROLE[/INDEX]:][LOCAL:]PORT`. The order of the ports
//! is the same as in kubectl, Docker and SSH.

use std::fmt;

use super::{ConfigError, Located, RoleSpec, Scalar, values::invalid_at};

/// A port of a task, and the local port that leads to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The role. `None` for the first role.
    pub role: Option<String>,
    /// The index of the task.
    pub index: u32,
    /// The port of the task.
    pub port: u16,
    /// The local port, or 0 for any free port.
    pub local: u16,
}

/// The notation, for errors.
const RULE: &str = "write PORT, LOCAL:PORT, ROLE:PORT, ROLE:LOCAL:PORT or ROLE/INDEX:LOCAL:PORT, \
    where LOCAL is the port of this machine, or 0 for any free one";

impl Forward {
    /// Parses `6006`, `16006:6006`, `:6006`, `worker:6006` or `worker/1:16006:6006`.
    ///
    /// # Errors
    /// The violated rule.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let mut parts: Vec<&str> = text.split(':').collect();
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let task = match parts.first() {
            Some(first) if !first.is_empty() && !is_number(first) => Some(parts.remove(0)),
            _ => None,
        };
        let number = |part: &str| part.parse::<u16>().ok().filter(|_| is_number(part));
        let (port, local) = match parts[..] {
            [port] => (number(port), number(port)),
            ["", port] => (number(port), Some(0)),
            [local, port] => (number(port), number(local)),
            _ => (None, None),
        };
        let (Some(port @ 1..), Some(local)) = (port, local) else {
            return Err(RULE);
        };
        let (role, index) = match task.map(|task| task.split_once('/').unwrap_or((task, "0"))) {
            None => (None, 0),
            Some(("", _)) => return Err(RULE),
            Some((role, index)) => {
                let index = index
                    .parse()
                    .ok()
                    .filter(|_| is_number(index))
                    .ok_or(RULE)?;
                (Some(role.to_owned()), index)
            }
        };
        Ok(Self {
            role,
            index,
            port,
            local,
        })
    }
}

impl Forward {
    /// The notation of the same port of the task with another local port.
    #[must_use]
    pub fn with_local(&self, local: impl fmt::Display) -> String {
        match &self.role {
            Some(role) => format!("{role}/{}:{local}:{}", self.index, self.port),
            None => format!("{local}:{}", self.port),
        }
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(role) = &self.role {
            write!(f, "{role}/{}:", self.index)?;
        }
        write!(f, "{}", self.port)
    }
}

/// Checks the option `forward`.
pub(super) fn resolve<'a>(
    entries: impl Iterator<Item = &'a Located<Scalar>>,
    roles: &[RoleSpec],
) -> Result<Vec<Forward>, ConfigError> {
    let mut all: Vec<Forward> = Vec::new();
    for entry in entries {
        let invalid = |rule: String| invalid_at("forward", entry, rule);
        let forward =
            Forward::parse(&entry.to_string()).map_err(|rule| invalid(rule.to_owned()))?;
        let role = match &forward.role {
            None => roles.first(),
            Some(name) => roles.iter().find(|role| role.name == *name),
        };
        let Some(role) = role else {
            let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
            return Err(invalid(format!("the roles are {}", names.join(", "))));
        };
        if forward.index >= role.count {
            let rule = format!("the role {} has {} tasks, from 0", role.name, role.count);
            return Err(invalid(rule));
        }
        let is_taken = |other: &Forward| other.local == forward.local && forward.local != 0;
        if let Some(other) = all.iter().find(|other| is_taken(other)) {
            let rule = format!(
                "the local port {} is also that of {other}: choose another, as in {}",
                forward.local,
                forward.with_local("LOCAL")
            );
            return Err(invalid(rule));
        }
        all.push(forward);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn forwards_are_parsed() {
        let forward = |role: Option<&str>, index, port, local| Forward {
            role: role.map(str::to_owned),
            index,
            port,
            local,
        };
        let parsed = |text| Forward::parse(text).unwrap();
        assert_eq!(parsed("6006"), forward(None, 0, 6006, 6006));
        assert_eq!(parsed("0:6006"), forward(None, 0, 6006, 0));
        assert_eq!(parsed("16006:6006"), forward(None, 0, 6006, 16006));
        assert_eq!(parsed("tb:6006"), forward(Some("tb"), 0, 6006, 6006));
        assert_eq!(parsed("tb/2:8080:80"), forward(Some("tb"), 2, 80, 8080));
        assert_eq!(parsed(":80"), forward(None, 0, 80, 0));
        assert_eq!(parsed("tb::80"), forward(Some("tb"), 0, 80, 0));
        assert_eq!(parsed("tb/2:80").with_local(8080), "tb/2:8080:80");
        assert_eq!(parsed("80").with_local("LOCAL"), "LOCAL:80");
        for wrong in [
            "", "0", "a", "a:", "80:", "80:0", "::80", "80:a", "70000", "1:2:3", "a:1:2:3", "a/:1",
            "a/x:1", "/1:80", "+80", "80:-1", "a/+1:80",
        ] {
            assert!(Forward::parse(wrong).is_err(), "{wrong}");
        }
    }
}
