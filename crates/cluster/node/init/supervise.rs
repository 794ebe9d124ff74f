//! The init while the command runs.

use crate::{
    arguments::Arguments,
    children,
    system::{self, CHILD, HANGUP, INTERRUPT, KILL_ALL, QUIT, TERMINATE, USER_1, USER_2, WINDOW},
};

/// Reaps children, forwards signals, and ends with the command's exit code. `command` 0 means that
/// no command runs; TERM or INT then end the init.
pub(crate) fn supervise(command: i32, arguments: &Arguments) -> ! {
    loop {
        // All signals are blocked, so none is lost. Blocked signals reach the init of a PID
        // namespace although it does not handle them.
        match system::wait_for_signal() {
            CHILD => reap(command, arguments),
            KILL_ALL if !arguments.own_processes() => {
                children::end(command);
                system::exit(137)
            }
            signal @ (TERMINATE | INTERRUPT | HANGUP | QUIT | USER_1 | USER_2 | WINDOW) => {
                if command > 0 {
                    // The child has not been waited for, so no other process can have its number.
                    system::kill(command, signal);
                } else if matches!(signal, TERMINATE | INTERRUPT) {
                    system::exit(0)
                }
            }
            _ => {}
        }
    }
}

fn reap(command: i32, arguments: &Arguments) {
    while let Some((pid, status)) = system::reap() {
        if pid == command {
            if arguments.tidies() {
                children::end(command);
            }
            let signal = status & 0x7f;
            system::exit(if signal == 0 {
                (status >> 8) & 0xff
            } else {
                128 + signal
            })
        }
    }
}
