//! Selects the processes of a task that receive a signal. Pure.
//!
//! A container runtime signals only the first process of a container. Often, the signal is meant
//! for another program, which was started by a shell, or by a launcher that does not handle the
//! signal. Processes that the program itself has started, for example to load data, must not
//! receive it, because the program needs them for its last checkpoint.

use super::processes::{Process, Processes};

/// SIGQUIT: shells start background commands with this signal and SIGINT ignored.
const QUIT: i32 = 3;

/// The purpose of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    /// The signal ends the command.
    End,
    /// The signal notifies the command.
    Notify,
}

/// The processes that get a signal for the command that these processes have begun, parents
/// first, so that a shell cannot start its next command in between.
///
/// - A process that handles the signal gets it. Its children do not, except the foreground child
///   of a shell, which runs its trap only when that child has ended. A process that ignores the
///   signal keeps it from its children, unless it is a shell.
/// - A process that the signal would terminate gets it, and its children get it, too. A shell
///   that a [`Intent::Notify`] would terminate is skipped instead.
/// - Filters at the end of a pipe, such as `tee`, end by themselves after the process that writes
///   to them.
pub(super) fn recipients(
    processes: &Processes,
    roots: impl IntoIterator<Item = i32>,
    signal: i32,
    intent: Intent,
) -> Vec<i32> {
    let mut found = Vec::new();
    let mut next: Vec<i32> = roots.into_iter().collect();
    next.reverse();
    while let Some(pid) = next.pop() {
        let Some(process) = processes.0.get(&pid) else {
            continue;
        };
        if is_filter(processes, pid, process, signal) {
            continue;
        }
        let is_signaled = match intent {
            Intent::End => true,
            Intent::Notify => process.handles(signal),
        };
        if is_signaled {
            found.push(pid);
        }
        let children = processes.children(pid);
        let mut children: Vec<i32> = match process {
            _ if process.ignores(signal) && !process.is_shell => continue,
            shell if shell.is_shell && shell.handles(signal) => children
                .filter(|child| is_foreground(shell, &processes.0[child]))
                .collect(),
            _ if process.handles(signal) => continue,
            _ => children.collect(),
        };
        children.reverse();
        next.extend(children);
    }
    found
}

fn is_foreground(shell: &Process, child: &Process) -> bool {
    shell.ignores(QUIT) || !child.ignores(QUIT)
}

/// Returns true for a process without a handler that reads from another process of the task.
fn is_filter(processes: &Processes, pid: i32, process: &Process, signal: i32) -> bool {
    let Some(input) = process.input.as_ref().filter(|_| !process.handles(signal)) else {
        return false;
    };
    let mut others = processes.0.iter().filter(|(other, _)| **other != pid);
    others.any(|(_, other)| other.input.as_ref() != Some(input) && other.outputs.contains(input))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i32 = 15;

    /// Parses a line for each process: its number, its parent, and its properties.
    fn processes(text: &str) -> Processes {
        let all = text.lines().map(|line| {
            let mut words = line.split_whitespace();
            let mut number = || words.next().and_then(|word| word.parse().ok());
            let (pid, parent) = (number().unwrap_or(0), number().unwrap_or(0));
            let mut process = Process {
                parent,
                ..Process::default()
            };
            for word in words {
                match word {
                    "shell" => process.is_shell = true,
                    "catches" => process.caught |= 1 << (TERM - 1),
                    "ignores" => process.ignored |= 1 << (TERM - 1),
                    "waits" => process.blocked |= 1 << (TERM - 1),
                    "background" => process.ignored |= 1 << (QUIT - 1),
                    "writes" => process.outputs.push("pipe:[1]".to_owned()),
                    "reads" => process.input = Some("pipe:[1]".to_owned()),
                    _ => {}
                }
            }
            (pid, process)
        });
        Processes(all.collect())
    }

    #[test]
    fn some_processes_get_a_signal() {
        // The processes, the processes that are asked to end, and the processes that are warned.
        let cases: &[(&str, &[i32], &[i32])] = &[
            ("2 1 program", &[2], &[]),
            ("2 1 program catches", &[2], &[2]),
            ("2 1 program ignores", &[2], &[]),
            ("2 1 program catches\n3 2 worker", &[2], &[2]),
            ("2 1 program waits\n3 2 child catches", &[2], &[2]),
            (
                "2 1 launcher\n3 2 program catches\n4 3 worker",
                &[2, 3],
                &[3],
            ),
            ("2 1 shell\n3 2 program catches", &[2, 3], &[3]),
            (
                "2 1 shell\n3 2 shell\n4 3 program catches",
                &[2, 3, 4],
                &[4],
            ),
            ("2 1 shell\n3 2 program ignores", &[2, 3], &[]),
            ("2 1 shell\n3 2 sleep", &[2, 3], &[]),
            // The trap runs after the foreground child has ended.
            ("2 1 shell catches\n3 2 program catches", &[2, 3], &[2, 3]),
            ("2 1 shell catches\n3 2 sleep", &[2, 3], &[2]),
            // The trap passes the signal on.
            (
                "2 1 shell catches\n3 2 program catches background",
                &[2],
                &[2],
            ),
            (
                "2 1 shell catches background\n3 2 program catches background",
                &[2, 3],
                &[2, 3],
            ),
            // Without a trap, no process forwards the signal.
            ("2 1 shell\n3 2 program catches background", &[2, 3], &[3]),
            ("2 1 shell ignores\n3 2 program ignores", &[2, 3], &[]),
            ("2 1 shell ignores\n3 2 program catches", &[2, 3], &[3]),
            ("2 1 program ignores\n3 2 worker", &[2], &[]),
            // A filter that still reads the log.
            (
                "2 1 shell\n3 2 program catches writes\n4 2 tee reads",
                &[2, 3],
                &[3],
            ),
            ("2 1 shell\n4 2 tee reads", &[2, 4], &[]),
            (
                "2 1 shell\n3 2 cat writes\n4 2 program reads catches",
                &[2, 3, 4],
                &[4],
            ),
            (
                "2 1 shell\n3 2 program catches writes\n4 2 filter reads writes",
                &[2, 3],
                &[3],
            ),
        ];
        for (text, ends, notified) in cases {
            let processes = processes(text);
            let of = |intent| recipients(&processes, [2], TERM, intent);
            assert_eq!(of(Intent::End), *ends, "{text}");
            assert_eq!(of(Intent::Notify), *notified, "{text}");
        }
        // No process, and several.
        let two = processes("2 1 a\n3 1 b\n4 3 c");
        assert_eq!(recipients(&two, [2, 3], TERM, Intent::End), [2, 3, 4]);
        assert_eq!(recipients(&two, [9], TERM, Intent::End), [0; 0]);
    }
}
