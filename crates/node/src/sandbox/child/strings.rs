//! C strings, made before the child exists: it must not allocate.

use std::{
    ffi::{CString, OsStr, c_char},
    io,
    os::unix::ffi::OsStrExt,
    ptr,
};

/// A null-terminated array of C strings that owns them.
pub(in crate::sandbox) struct Strings {
    pub(super) pointers: Vec<*const c_char>,
    _owned: Vec<CString>,
}

// SAFETY: the pointers lead into `_owned`, which moves with them and is never
// changed; a CString's buffer does not move when the CString does.
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

/// The text as a C string; an error if it has a zero byte.
pub(in crate::sandbox) fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}
