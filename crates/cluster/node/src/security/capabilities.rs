//! The capabilities of a container: a container runtime's default set, changed
//! by `add` and `drop` in containerd's order.

use super::{ContextRequest, Refusal};
use crate::sandbox::Privileges;

/// All capabilities of Linux 6, indexed by number.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// The default set of containerd and CRI-O, without `MKNOD`. Runtimes limit `MKNOD` to permitted
/// devices. This node does not, so it would give a container access to the machine's disks.
const DEFAULT_SET: [&str; 13] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// The number of `CAP_SETPCAP`.
pub(super) const SET_CAPABILITIES: u32 = 8;
/// The number of `CAP_SYS_ADMIN`.
pub(super) const ADMINISTER: u32 = 21;

const ALL: &str = "ALL";

pub(super) fn apply(
    request: &ContextRequest<'_>,
    privileged: bool,
    privileges: &mut Privileges,
) -> Result<(), Refusal> {
    let agent_privileges = request.agent_privileges;
    if privileged {
        return Ok(());
    }
    let wanted = request.own.capabilities.as_ref();
    let list = |list: Option<&Vec<String>>| -> Vec<String> {
        list.into_iter()
            .flatten()
            .map(|name| normalize(name))
            .collect()
    };
    let added = list(wanted.and_then(|wanted| wanted.add.as_ref()));
    let dropped = list(wanted.and_then(|wanted| wanted.drop.as_ref()));
    let bits = |field: &str, names: &[String]| -> Result<u64, Refusal> {
        let others = names.iter().filter(|name| *name != ALL);
        others.map(|name| bit(request, field, name)).sum_of_bits()
    };
    let (add, drop) = (
        bits("capabilities.add", &added)?,
        bits("capabilities.drop", &dropped)?,
    );
    let adds_all = added.iter().any(|name| name == ALL);
    refuse_added(request, add, adds_all)?;
    let mut set = if dropped.iter().any(|name| name == ALL) {
        0
    } else if adds_all {
        agent_privileges.capabilities
    } else {
        default_set()
    };
    set = (set | add) & !drop;
    if agent_privileges.can_limit() {
        privileges.capabilities = Some(set);
    } else if agent_privileges.is_root() && !dropped.is_empty() {
        let reason = "the node agent lacks CAP_SETPCAP and cannot take capabilities away";
        return Err(request.refuse("capabilities.drop", reason));
    } else if !dropped.is_empty() {
        // The container has no capabilities and cannot gain any.
        privileges.no_new_privileges = true;
    }
    Ok(())
}

/// Rejects added capabilities that the agent does not have.
fn refuse_added(request: &ContextRequest<'_>, add: u64, adds_all: bool) -> Result<(), Refusal> {
    let agent_privileges = request.agent_privileges;
    if agent_privileges.is_root() {
        let lacking = add & !agent_privileges.capabilities;
        if lacking != 0 {
            let reason = format!("the node agent itself does not have {}", words(lacking));
            return Err(request.refuse("capabilities.add", reason));
        }
        return Ok(());
    }
    let unusual = add & !default_set();
    if unusual != 0 || adds_all {
        let names = if adds_all {
            ALL.to_owned()
        } else {
            words(unusual)
        };
        let reason =
            format!("the node agent does not run as root of the machine and cannot give {names}");
        return Err(request.refuse("capabilities.add", reason));
    }
    Ok(())
}

trait SumOfBits {
    fn sum_of_bits(self) -> Result<u64, Refusal>;
}

impl<I: Iterator<Item = Result<u64, Refusal>>> SumOfBits for I {
    fn sum_of_bits(mut self) -> Result<u64, Refusal> {
        self.try_fold(0, |all, bit| Ok(all | bit?))
    }
}

/// Normalizes a name: upper case, without the optional prefix.
fn normalize(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CAP_").unwrap_or(&name).to_owned()
}

fn bit(request: &ContextRequest<'_>, field: &str, name: &str) -> Result<u64, Refusal> {
    let number = NAMES.iter().position(|known| *known == name);
    number
        .map(|number| 1 << number)
        .ok_or_else(|| request.refuse(field, format!("{name:?} is not a capability of Linux")))
}

fn default_set() -> u64 {
    let is_usual = |name: &&str| DEFAULT_SET.contains(name);
    let numbers = NAMES.iter().enumerate();
    numbers
        .filter(|(_, name)| is_usual(name))
        .fold(0, |all, (number, _)| all | 1 << number)
}

fn words(set: u64) -> String {
    let numbers = NAMES.iter().enumerate();
    let names = numbers.filter(|(number, _)| set & (1 << number) != 0);
    let names: Vec<_> = names.map(|(_, name)| *name).collect();
    names.join(", ")
}
