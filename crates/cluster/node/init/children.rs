//! Ends all processes that a command left, where no PID namespace does this.
//!
//! The init is a subreaper: when a process ends, its children become children of the init, even in
//! another session. The init kills its children, then the processes that become its children, until
//! it has no children.

use crate::system::{self, KILL};

/// The number of bytes to read at once from a folder or a file.
const BUFFER: usize = 4096;

/// The maximum number of reads of `/proc` that show none of the existing children, because a child
/// appeared before the current position, or because `/proc` is not readable. The children then
/// remain.
const MISSES: u32 = 100;

/// Kills and reaps the command's group and all descendants.
pub(crate) fn end(command: i32) {
    if command > 0 {
        system::kill(-command, KILL);
    }
    let own = system::own_id();
    let mut misses = 0;
    while misses < MISSES {
        while system::reap().is_some() {}
        if !system::has_children() {
            return;
        }
        if kill_children(own) {
            system::wait_for_child();
        } else {
            misses += 1;
        }
    }
}

/// Kills the processes whose parent is `own`. Returns true if there was one. Reads `/proc`, which
/// every kernel has, unlike lists of children.
fn kill_children(own: i32) -> bool {
    let Ok(processes) = system::open_folder(c"/proc") else {
        return false;
    };
    let mut found = false;
    let mut buffer = [0u8; BUFFER];
    loop {
        let length = system::entries(processes, &mut buffer);
        let Some(mut entries) = buffer.get(..length).filter(|entries| !entries.is_empty()) else {
            break;
        };
        // An entry: 8 bytes inode, 8 bytes offset, 2 bytes length, 1 byte kind, then the name with
        // a terminating zero.
        while let (Some(&[low, high]), Some(name)) = (entries.get(16..18), entries.get(19..)) {
            if let Some(pid) = number(name)
                && parent(processes, name) == Some(own)
            {
                system::kill(pid, KILL);
                found = true;
            }
            let length = usize::from(u16::from_ne_bytes([low, high]));
            match entries.get(length..) {
                Some(rest) if length > 0 => entries = rest,
                _ => break,
            }
        }
    }
    system::close(processes);
    found
}

/// Parses a name as a number.
fn number(name: &[u8]) -> Option<i32> {
    let digits = name.split(|byte| *byte == 0).next()?;
    if digits.is_empty() {
        return None;
    }
    let mut number = 0i32;
    for byte in digits {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number = number.checked_mul(10)?.checked_add(i32::from(digit))?;
    }
    Some(number)
}

/// Returns the parent of a process. This is the second word after the name, which is in parentheses
/// and may contain any character.
fn parent(processes: i32, name: &[u8]) -> Option<i32> {
    let digits = name.split(|byte| *byte == 0).next()?;
    let mut path = [0u8; 24];
    path.get_mut(..digits.len())?.copy_from_slice(digits);
    path.get_mut(digits.len()..digits.len() + 5)?
        .copy_from_slice(b"/stat");
    let mut text = [0u8; 512];
    let length = system::read_file(processes, &path, &mut text)?;
    let text = text.get(..length)?;
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let mut words = text.get(close + 2..)?.split(|byte| *byte == b' ');
    words.next()?;
    number(words.next()?)
}
