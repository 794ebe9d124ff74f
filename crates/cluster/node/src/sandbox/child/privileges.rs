//! Gives up privileges in the child before it executes the init: only system
//! calls, no allocation, no locks, no panics.

use std::ffi::c_int;

use super::{program::Limits, stage::Stage, system::check};

/// Gives up the privileges in `limits`, for this process and all its descendants.
pub(super) fn give_up(limits: &Limits) -> Result<(), (Stage, c_int)> {
    if let Some(groups) = &limits.groups {
        // A raw system call, because libc's function would signal threads that
        // this process does not have.
        // SAFETY: a slice that outlives the call.
        let result =
            unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) as c_int };
        check(result).map_err(|error| (Stage::Groups, error))?;
    }
    // A service manager may have given the agent ambient capabilities; a
    // container without root must have none. Only kernels without ambient
    // capabilities reject this.
    // SAFETY: prctl with integers only.
    unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        );
    }
    if limits.no_new_privileges {
        // SAFETY: prctl with integers only.
        let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        check(result).map_err(|error| (Stage::NoNewPrivileges, error))?;
    }
    // The filter is installed before capabilities are dropped, because it needs one of them.
    if !limits.system_calls.is_empty() {
        filter(&limits.system_calls).map_err(|error| (Stage::SystemCalls, error))?;
    }
    if let Some(kept) = limits.capabilities {
        keep_capabilities(kept).map_err(|error| (Stage::Capabilities, error))?;
    }
    Ok(())
}

fn filter(instructions: &[libc::sock_filter]) -> Result<(), c_int> {
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| libc::E2BIG)?,
        filter: instructions.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads the given number of instructions from a slice
    // that outlives the call.
    check(unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
            0,
            0,
        )
    })
}

/// Removes all other capabilities from the bounding set.
fn keep_capabilities(kept: u64) -> Result<(), c_int> {
    for capability in 0..64 {
        // SAFETY: prctl with integers only. An error means that the kernel has
        // no further capabilities.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) } {
            1 if kept & (1 << capability) == 0 => {
                // SAFETY: as above.
                check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) })?;
            }
            -1 => break,
            _ => {}
        }
    }
    Ok(())
}
