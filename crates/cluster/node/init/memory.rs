//! The functions of a C library that the compiler expects. The crate is `no_builtins`, so that the
//! loops below are not compiled to calls of their own function.

use core::ffi::c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: the caller guarantees this number of bytes, which do not overlap.
        unsafe { *to.add(at) = *from.add(at) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    let forward = to.cast_const() < from;
    for step in 0..count {
        let at = if forward { step } else { count - 1 - step };
        // SAFETY: the caller guarantees this number of bytes. No byte is overwritten before it is
        // read.
        unsafe { *to.add(at) = *from.add(at) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: c_int, count: usize) -> *mut u8 {
    for at in 0..count {
        // SAFETY: the caller guarantees this number of bytes.
        unsafe { *to.add(at) = byte as u8 };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, count: usize) -> c_int {
    for at in 0..count {
        // SAFETY: the caller guarantees this number of bytes.
        let (one, other) = unsafe { (*one.add(at), *other.add(at)) };
        if one != other {
            return c_int::from(one) - c_int::from(other);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the caller guarantees a terminating zero.
    while unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    length
}

/// Required by `core`, which is compiled for unwinding. Nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
