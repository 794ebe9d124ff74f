//! The capabilities of a container: the set of a container runtime, changed by
//! `add` and `drop` in the order in which containerd takes them.

use super::{Asked, Refusal};
use crate::sandbox::Privileges;

/// All capabilities of Linux 6, each at its number.
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

/// What containerd and CRI-O give to a container that asks for nothing. Without
/// `MKNOD`, which there only makes devices that the runtime allows; nothing here
/// would keep a container from the machine's disks.
const USUAL: [&str; 13] = [
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
    asked: &Asked<'_>,
    privileged: bool,
    privileges: &mut Privileges,
) -> Result<(), Refusal> {
    let powers = asked.powers;
    if privileged {
        return Ok(());
    }
    let wanted = asked.own.capabilities.as_ref();
    let list = |list: Option<&Vec<String>>| -> Vec<String> {
        list.into_iter().flatten().map(|name| plain(name)).collect()
    };
    let added = list(wanted.and_then(|wanted| wanted.add.as_ref()));
    let dropped = list(wanted.and_then(|wanted| wanted.drop.as_ref()));
    let bits = |field: &str, names: &[String]| -> Result<u64, Refusal> {
        let others = names.iter().filter(|name| *name != ALL);
        others.map(|name| bit(asked, field, name)).sum_of_bits()
    };
    let (add, drop) = (
        bits("capabilities.add", &added)?,
        bits("capabilities.drop", &dropped)?,
    );
    let adds_all = added.iter().any(|name| name == ALL);
    refuse_added(asked, add, adds_all)?;
    let mut set = if dropped.iter().any(|name| name == ALL) {
        0
    } else if adds_all {
        powers.capabilities
    } else {
        usual()
    };
    set = (set | add) & !drop;
    if powers.can_limit() {
        privileges.capabilities = Some(set);
    } else if powers.is_root() && !dropped.is_empty() {
        let reason = "the node agent lacks CAP_SETPCAP and cannot take capabilities away";
        return Err(asked.refuse("capabilities.drop", reason));
    } else if !dropped.is_empty() {
        // It has none, and can gain none.
        privileges.no_new_privileges = true;
    }
    Ok(())
}

/// What the agent cannot give.
fn refuse_added(asked: &Asked<'_>, add: u64, adds_all: bool) -> Result<(), Refusal> {
    let powers = asked.powers;
    if powers.is_root() {
        let lacking = add & !powers.capabilities;
        if lacking != 0 {
            let reason = format!("the node agent itself does not have {}", words(lacking));
            return Err(asked.refuse("capabilities.add", reason));
        }
        return Ok(());
    }
    let unusual = add & !usual();
    if unusual != 0 || adds_all {
        let names = if adds_all {
            ALL.to_owned()
        } else {
            words(unusual)
        };
        let reason =
            format!("the node agent does not run as root of the machine and cannot give {names}");
        return Err(asked.refuse("capabilities.add", reason));
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

/// In capitals and without the prefix that some write.
fn plain(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CAP_").unwrap_or(&name).to_owned()
}

fn bit(asked: &Asked<'_>, field: &str, name: &str) -> Result<u64, Refusal> {
    let number = NAMES.iter().position(|known| *known == name);
    number
        .map(|number| 1 << number)
        .ok_or_else(|| asked.refuse(field, format!("{name:?} is not a capability of Linux")))
}

fn usual() -> u64 {
    let is_usual = |name: &&str| USUAL.contains(name);
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
