//! Sends the signals of an SSH client to a session in this container.

use std::io;

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};

use crate::bootstrap::BootstrapError;

/// Sends a signal to a session, by the process id of its program and the name of the signal without
/// `SIG`. Succeeds if the process has ended.
///
/// # Errors
/// [`BootstrapError::Ssh`]: the signal is unknown, or cannot be sent.
pub fn signal(process: i32, name: &str) -> Result<(), BootstrapError> {
    let invalid = |problem: String| BootstrapError::Ssh {
        source: io::Error::new(io::ErrorKind::InvalidInput, problem),
    };
    let signal = named(name).ok_or_else(|| invalid(format!("unknown signal {name:?}")))?;
    // Process 1 belongs to the task.
    let pid = (process > 1).then(|| Pid::from_raw(process)).flatten();
    let pid = pid.ok_or_else(|| invalid(format!("{process} is not the process of a session")))?;
    let sent = match getpgid(Some(pid)) {
        Ok(group) if group == pid => kill_process_group(pid, signal),
        Ok(_) => kill_process(pid, signal),
        Err(error) => Err(error),
    };
    match sent {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(BootstrapError::Ssh {
            source: error.into(),
        }),
    }
}

fn named(name: &str) -> Option<Signal> {
    Some(match name {
        "ABRT" => Signal::ABORT,
        "ALRM" => Signal::ALARM,
        "CONT" => Signal::CONT,
        "FPE" => Signal::FPE,
        "HUP" => Signal::HUP,
        "ILL" => Signal::ILL,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "PIPE" => Signal::PIPE,
        "QUIT" => Signal::QUIT,
        "SEGV" => Signal::SEGV,
        "STOP" => Signal::STOP,
        "TERM" => Signal::TERM,
        "TSTP" => Signal::TSTP,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "WINCH" => Signal::WINCH,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        os::unix::process::{CommandExt as _, ExitStatusExt as _},
        process::Command,
    };

    use super::*;

    #[test]
    fn a_signal_reaches_all_processes_of_a_session() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & wait"]).process_group(0);
        let mut session = command.spawn().unwrap();
        let process = i32::try_from(session.id()).unwrap();
        signal(process, "TERM").unwrap();
        assert_eq!(session.wait().unwrap().signal(), Some(15));
        // The process has ended.
        signal(process, "TERM").unwrap();
    }

    #[test]
    fn other_processes_and_signals_are_refused() {
        for (process, name) in [(0, "TERM"), (1, "TERM"), (-5, "TERM"), (i32::MAX, "NONE")] {
            assert!(signal(process, name).is_err(), "{process} {name}");
        }
    }
}
