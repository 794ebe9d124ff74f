#![no_main]
//! See `archives.rs` beside the other properties; it is no module there, for the
//! server's tests replay those, and know nothing of the launcher.

#[path = "../src/archives.rs"]
mod archives;

libfuzzer_sys::fuzz_target!(|data: &[u8]| archives::check(data));
