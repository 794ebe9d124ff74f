#![no_main]
//! See `answers.rs` beside the other properties; it is no module there, for the
//! server's tests replay those, and know nothing of the client.

#[path = "../src/answers.rs"]
mod answers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| answers::check(data));
