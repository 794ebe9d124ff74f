//! Writes PEM blocks: text with base64-encoded binary data.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// The length of a line of base64.
const LINE: usize = 64;

/// Returns a block with a label.
pub(crate) fn block(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut block = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(LINE) {
        // Base64 is ASCII.
        block.push_str(&String::from_utf8_lossy(line));
        block.push('\n');
    }
    block.push_str(&format!("-----END {label}-----\n"));
    block
}
