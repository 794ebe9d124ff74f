//! The agent's instructions, read from the program's arguments.

use core::{
    ffi::{CStr, c_char},
    ptr,
};

/// The pod has a PID namespace, whose first process is this one.
const OWN_PROCESSES: u64 = 1 << 0;
/// Processes that the command leaves behind are killed at its end.
const TIDIES: u64 = 1 << 1;
/// The command gets its own session instead of only a process group.
const SESSION: u64 = 1 << 2;
/// Standard input is a terminal, which becomes the command's controlling terminal.
const TERMINAL: u64 = 1 << 3;
/// The numbers of `user`, `group` and `capabilities` are set.
const USER: u64 = 1 << 4;
const GROUP: u64 = 1 << 5;
const CAPABILITIES: u64 = 1 << 6;
/// A missing working folder is created.
const MAKES_FOLDER: u64 = 1 << 7;

/// The program's arguments: a name; flags, user, group and capabilities as decimal numbers,
/// separated by commas; the working folder; the possible files of the command, in the order of the
/// attempts; an empty string; the command's own arguments. Without a file, the init only waits for
/// TERM.
pub(crate) struct Arguments {
    flags: u64,
    user: u64,
    group: u64,
    capabilities: u64,
    pub(crate) working_folder: *const c_char,
    /// The first of the files. An empty string follows the last file.
    pub(crate) files: *const *const c_char,
    /// The command's arguments and environment, each terminated by null.
    pub(crate) arguments: *const *const c_char,
    pub(crate) environment: *const *const c_char,
}

/// Returns the name that the program was started with.
///
/// # Safety
/// The same as for [`Arguments::read`].
pub(crate) unsafe fn name(stack: *const usize) -> &'static CStr {
    // SAFETY: the count comes first, and the pointer to the name follows unless the count is 0.
    unsafe {
        match *stack {
            0 => c"",
            _ => CStr::from_ptr(*stack.add(1).cast::<*const c_char>()),
        }
    }
}

impl Arguments {
    /// # Safety
    /// `stack` points to the initial stack of the program, as the kernel sets it up.
    pub(crate) unsafe fn read(stack: *const usize) -> Option<Self> {
        // SAFETY: the count comes first, followed by this number of pointers, null, and the
        // pointers of the environment. All of them point to C strings that are never changed.
        unsafe {
            let count = *stack;
            let first = stack.add(1).cast::<*const c_char>();
            let environment = first.add(count).add(1);
            let mut at = 3;
            while at < count && *(*first.add(at)) != 0 {
                at += 1;
            }
            if at >= count {
                return None;
            }
            let [flags, user, group, capabilities] = numbers(CStr::from_ptr(*first.add(1)))?;
            Some(Self {
                flags,
                user,
                group,
                capabilities,
                working_folder: *first.add(2),
                files: first.add(3),
                arguments: first.add(at).add(1),
                environment,
            })
        }
    }

    pub(crate) fn has_command(&self) -> bool {
        !self.file(0).is_null()
    }

    /// Returns one of the files, or null after the last one.
    pub(crate) fn file(&self, index: usize) -> *const c_char {
        // SAFETY: callers stop at the empty string, which `read` has found.
        unsafe {
            let file = *self.files.add(index);
            if *file == 0 { ptr::null() } else { file }
        }
    }

    pub(crate) fn own_processes(&self) -> bool {
        self.flags & OWN_PROCESSES != 0
    }

    pub(crate) fn tidies(&self) -> bool {
        self.flags & TIDIES != 0
    }

    pub(crate) fn session(&self) -> bool {
        self.flags & SESSION != 0
    }

    pub(crate) fn terminal(&self) -> bool {
        self.flags & TERMINAL != 0
    }

    pub(crate) fn makes_folder(&self) -> bool {
        self.flags & MAKES_FOLDER != 0
    }

    pub(crate) fn user(&self) -> Option<u64> {
        (self.flags & USER != 0).then_some(self.user)
    }

    pub(crate) fn group(&self) -> Option<u64> {
        (self.flags & GROUP != 0).then_some(self.group)
    }

    /// Returns the capabilities that the command and its children may ever have.
    pub(crate) fn capabilities(&self) -> Option<u64> {
        (self.flags & CAPABILITIES != 0).then_some(self.capabilities)
    }
}

fn numbers(text: &CStr) -> Option<[u64; 4]> {
    let mut numbers = [0u64; 4];
    let mut parts = text.to_bytes().split(|byte| *byte == b',');
    for number in &mut numbers {
        for byte in parts.next()? {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            *number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
    }
    Some(numbers)
}
