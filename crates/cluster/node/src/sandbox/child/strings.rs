//! C strings, allocated before the child exists, which must not allocate.

use std::{
    ffi::{CString, OsStr, c_char},
    io,
    os::unix::ffi::OsStrExt,
    ptr,
};

/// A null-terminated array of C strings, with ownership of the strings.
pub(in crate::sandbox) struct Strings {
    pub(super) pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

// SAFETY: the pointers point into `_owned`, which moves with them and is never
// changed; the buffer of a CString does not move with it.
unsafe impl Send for Strings {}

impl Strings {
    pub(in crate::sandbox) fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Self {
            pointers,
            _owned: owned,
        }
    }
}

/// Converts text to a C string. Returns an error if the text contains a zero byte.
pub(in crate::sandbox) fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}
