//! The system call filters: one for the pod's ports, and one for the seccomp profile
//! `RuntimeDefault`, which denies the same system calls as containerd's default profile unless the
//! container has the required capability.

/// Offsets in `seccomp_data` of the system call number, the architecture, and
/// the lower half of the first argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

#[cfg(target_arch = "x86_64")]
const THIS_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_ARCHITECTURE: u32 = 0xc000_00b7;

/// System calls of x32 have this bit and would bypass the list.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Flags of `clone` that create namespaces.
const NAMESPACES: u32 = 0x7e02_0000;

/// Capability numbers.
const SYS_MODULE: u32 = 16;
const SYS_RAWIO: u32 = 17;
const SYS_PACCT: u32 = 20;
const SYS_ADMIN: u32 = 21;
const SYS_BOOT: u32 = 22;
const SYS_TIME: u32 = 25;
const DAC_READ_SEARCH: u32 = 2;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// Denied system calls, each with the capability that permits it.
const DENIED: &[(libc::c_long, Option<u32>)] = &[
    (libc::SYS_acct, Some(SYS_PACCT)),
    (libc::SYS_add_key, None),
    (libc::SYS_adjtimex, Some(SYS_TIME)),
    (libc::SYS_bpf, Some(BPF)),
    (libc::SYS_clock_settime, Some(SYS_TIME)),
    (libc::SYS_delete_module, Some(SYS_MODULE)),
    (libc::SYS_fanotify_init, Some(SYS_ADMIN)),
    (libc::SYS_finit_module, Some(SYS_MODULE)),
    (libc::SYS_fsconfig, Some(SYS_ADMIN)),
    (libc::SYS_fsmount, Some(SYS_ADMIN)),
    (libc::SYS_fsopen, Some(SYS_ADMIN)),
    (libc::SYS_fspick, Some(SYS_ADMIN)),
    (libc::SYS_init_module, Some(SYS_MODULE)),
    (libc::SYS_io_uring_enter, None),
    (libc::SYS_io_uring_register, None),
    (libc::SYS_io_uring_setup, None),
    (libc::SYS_kexec_load, Some(SYS_BOOT)),
    (libc::SYS_keyctl, None),
    (libc::SYS_lookup_dcookie, Some(SYS_ADMIN)),
    (libc::SYS_mount, Some(SYS_ADMIN)),
    (libc::SYS_mount_setattr, Some(SYS_ADMIN)),
    (libc::SYS_move_mount, Some(SYS_ADMIN)),
    (libc::SYS_nfsservctl, None),
    (libc::SYS_open_by_handle_at, Some(DAC_READ_SEARCH)),
    (libc::SYS_open_tree, Some(SYS_ADMIN)),
    (libc::SYS_perf_event_open, Some(PERFMON)),
    (libc::SYS_pivot_root, Some(SYS_ADMIN)),
    (libc::SYS_quotactl, Some(SYS_ADMIN)),
    (libc::SYS_reboot, Some(SYS_BOOT)),
    (libc::SYS_request_key, None),
    (libc::SYS_setdomainname, Some(SYS_ADMIN)),
    (libc::SYS_sethostname, Some(SYS_ADMIN)),
    (libc::SYS_setns, Some(SYS_ADMIN)),
    (libc::SYS_settimeofday, Some(SYS_TIME)),
    (libc::SYS_swapoff, Some(SYS_ADMIN)),
    (libc::SYS_swapon, Some(SYS_ADMIN)),
    (libc::SYS_umount2, Some(SYS_ADMIN)),
    (libc::SYS_unshare, Some(SYS_ADMIN)),
    (libc::SYS_userfaultfd, None),
    (libc::SYS_vhangup, Some(SYS_ADMIN)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_ioperm, Some(SYS_RAWIO)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_iopl, Some(SYS_RAWIO)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_uselib, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_ustat, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_sysfs, None),
];

fn deny(error: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | error.cast_unsigned()
}

fn instruction(code: u32, jumps: (u8, u8), value: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt: jumps.0,
        jf: jumps.1,
        k: value,
    }
}

fn load(offset: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), offset)
}

/// Skips `if_so` instructions if the value is equal, otherwise `if_not`.
fn equals(value: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    let code = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    instruction(code, (if_so, if_not), value)
}

/// Like [`equals`], for any of the bits.
fn has_any(bits: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    let code = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    instruction(code, (if_so, if_not), bits)
}

fn ret(result: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, (0, 0), result)
}

/// Returns the program for a container with these capabilities; `None` means all.
pub(super) fn instructions(capabilities: Option<u64>) -> Vec<libc::sock_filter> {
    let has = |capability: u32| {
        capabilities.is_none_or(|set| set & (1 << capability | 1 << SYS_ADMIN) != 0)
    };
    let mut program = vec![
        load(ARCHITECTURE),
        equals(THIS_ARCHITECTURE, 1, 0),
        // System call numbers of another architecture mean other calls.
        ret(deny(libc::ENOSYS)),
        load(NUMBER),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([has_any(X32, 0, 1), ret(deny(libc::ENOSYS))]);
    for (number, capability) in DENIED {
        let is_allowed = capability.is_some_and(has);
        if let (false, Ok(number)) = (is_allowed, u32::try_from(*number)) {
            program.extend([equals(number, 0, 1), ret(deny(libc::EPERM))]);
        }
    }
    if !has(SYS_ADMIN) {
        let number = |number: libc::c_long| u32::try_from(number).unwrap_or(u32::MAX);
        program.extend([
            // The flags are in memory, which a filter cannot read. With ENOSYS, C libraries fall
            // back to clone.
            equals(number(libc::SYS_clone3), 0, 1),
            ret(deny(libc::ENOSYS)),
            equals(number(libc::SYS_clone), 0, 3),
            load(FIRST_ARGUMENT),
            has_any(NAMESPACES, 0, 1),
            ret(deny(libc::EPERM)),
        ]);
    }
    program.push(ret(libc::SECCOMP_RET_ALLOW));
    program
}

/// Returns the program that asks about the calls that choose the address of a socket, and denies
/// nothing.
pub(super) fn port_calls() -> Vec<libc::sock_filter> {
    let number = |number: libc::c_long| u32::try_from(number).unwrap_or(u32::MAX);
    vec![
        load(ARCHITECTURE),
        equals(THIS_ARCHITECTURE, 0, 4),
        load(NUMBER),
        equals(number(libc::SYS_bind), 1, 0),
        equals(number(libc::SYS_connect), 0, 1),
        ret(libc::SECCOMP_RET_USER_NOTIF),
        ret(libc::SECCOMP_RET_ALLOW),
    ]
}
