//! The end of all that a command left, where no PID namespace ends it.
//!
//! The init is a subreaper: a process below it whose parent ends becomes its
//! child, whatever session it has made. So its children are killed, those that
//! become its children then are killed, until there is none.

use crate::system::{self, KILL};

/// Bytes of a folder's entries, or of a file, that are read at once.
const BUFFER: usize = 4096;

/// So often `/proc` may show none of the children that there are: one appeared
/// behind the place that was read, or `/proc` is not readable. Then they stay.
const MISSES: u32 = 100;

/// Kills the command's group and all descendants, and reaps them: when this
/// process ends, none of them is there.
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

/// Kills the processes whose parent is `own`; whether there was one. By the list
/// of `/proc`, which is there on every kernel, unlike lists of children.
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
        // An entry: 8 bytes inode, 8 bytes offset, 2 bytes length, 1 byte kind,
        // then the name with zero at its end.
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

/// The number that a name is.
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

/// The parent of a process: the second word after its name, which is in
/// parentheses and may have any character in it.
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
