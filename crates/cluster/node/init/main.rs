//! The init of a container. It is a separate program, so that the processes of a container contain
//! nothing of the node agent's memory and environment.
//!
//! `build.rs` compiles the program for the target without libraries, and the agent embeds it. The
//! agent runs it as the first process of every container and of every `exec` session, and with
//! another name as the process that answers a container's system calls about addresses (`ports`).
//! Its arguments are the agent's instructions, see [`Arguments`]; its environment is the command's
//! environment. The init starts the command, forwards signals, reaps children, and ends with the
//! command's exit code.
#![no_std]
#![no_main]
#![no_builtins]
#![deny(unsafe_op_in_unsafe_fn)]

mod arguments;
mod children;
mod command;
mod memory;
mod numbers;
mod ports;
mod sockets;
mod supervise;
mod system;

use arguments::Arguments;
use core::ffi::CStr;
use system::{ERRORS, Error};

/// The name of the program that answers calls about addresses.
const PORTS: &CStr = c"longshore-ports";

/// The stages at which a start can fail. The agent's `Stage` has the same numbers.
mod stage {
    pub(crate) const FORK: u32 = 6;
    pub(crate) const USER: u32 = 7;
    pub(crate) const WORKING_FOLDER: u32 = 8;
    pub(crate) const EXECUTE: u32 = 9;
    pub(crate) const TERMINAL: u32 = 11;
    pub(crate) const CAPABILITIES: u32 = 12;
    pub(crate) const INIT: u32 = 13;
}

// The kernel starts a program with its arguments on the stack and without a return address. Call
// `begin` with the stack pointer.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {begin}",
    "ud2",
    begin = sym begin,
);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "bl {begin}",
    "brk #1",
    begin = sym begin,
);

extern "C" fn begin(stack: *const usize) -> ! {
    system::name(c"longshore-init");
    // Done before the process uses memory or CPU time.
    system::join_cgroups();
    // SAFETY: the kernel put the number of arguments, their pointers, null, the environment's
    // pointers and null there, and they remain for the lifetime of the process.
    let arguments = unsafe {
        if arguments::name(stack) == PORTS {
            ports::serve();
        }
        Arguments::read(stack)
    };
    let Some(arguments) = arguments else {
        fail(stage::INIT, Error::INVALID)
    };
    let command = if arguments.has_command() {
        match system::fork() {
            Err(error) => fail(stage::FORK, error),
            Ok(0) => command::become_command(&arguments),
            Ok(pid) => pid,
        }
    } else {
        0
    };
    // Closing the error pipe tells the agent that the start succeeded.
    for descriptor in 0..=ERRORS {
        system::close(descriptor);
    }
    supervise::supervise(command, &arguments)
}

/// Reports the failed stage to the agent, and ends.
fn fail(stage: u32, error: Error) -> ! {
    let mut record = [0; 12];
    let parts = [stage, 0, error.number()];
    for (bytes, part) in record.chunks_exact_mut(4).zip(parts) {
        bytes.copy_from_slice(&part.to_ne_bytes());
    }
    system::write(ERRORS, &record);
    system::exit(128)
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    system::exit(128)
}
