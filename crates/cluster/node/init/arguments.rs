//! What the agent asks for, read from the program's own arguments.

use core::{
    ffi::{CStr, c_char},
    ptr,
};

/// The pod has a PID namespace, of which this is the first process.
const OWN_PROCESSES: u64 = 1 << 0;
/// What the command leaves behind ends with it.
const TIDIES: u64 = 1 << 1;
/// The command gets a session of its own, not only a process group.
const SESSION: u64 = 1 << 2;
/// Standard input is a terminal, to become the command's.
const TERMINAL: u64 = 1 << 3;
/// The numbers of `user`, `group` and `capabilities` count.
const USER: u64 = 1 << 4;
const GROUP: u64 = 1 << 5;
const CAPABILITIES: u64 = 1 << 6;
/// The working folder is made if it is missing.
const MAKES_FOLDER: u64 = 1 << 7;

/// The program's arguments: a name; flags, user, group and capabilities as
/// decimal numbers with commas between them; the working folder; the files that
/// may be the command, in the order to try them; an empty text; the command's
/// own arguments. Without a file there is no command: wait for TERM.
pub(crate) struct Arguments {
    flags: u64,
    user: u64,
    group: u64,
    capabilities: u64,
    pub(crate) working_folder: *const c_char,
    /// The first of the files; the last is followed by an empty text.
    pub(crate) files: *const *const c_char,
    /// The command's arguments and environment, each with null at its end.
    pub(crate) arguments: *const *const c_char,
    pub(crate) environment: *const *const c_char,
}

/// The name that the program was started with.
///
/// # Safety
/// As for [`Arguments::read`].
pub(crate) unsafe fn name(stack: *const usize) -> &'static CStr {
    // SAFETY: the count comes first, and the pointer to the name follows unless that is 0.
    unsafe {
        match *stack {
            0 => c"",
            _ => CStr::from_ptr(*stack.add(1).cast::<*const c_char>()),
        }
    }
}

impl Arguments {
    /// # Safety
    /// `stack` leads to what the kernel gives to a program that starts.
    pub(crate) unsafe fn read(stack: *const usize) -> Option<Self> {
        // SAFETY: the count comes first; behind it so many pointers and a null,
        // then the environment's, all to C strings that are never changed.
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

    /// One of the files; null after the last.
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

    /// The capabilities that the command and its children may ever have.
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
