//! HTTP/2 as raw bytes, for frames that no client library sends.

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The client's first bytes; `window` is the window of each stream.
pub(crate) fn start(window: u32) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut settings = vec![0, 4];
    settings.extend(window.to_be_bytes());
    bytes.extend(frame(SETTINGS, 0, 0, &settings));
    bytes
}

fn text(block: &mut Vec<u8>, text: &str) {
    assert!(text.len() < 127);
    block.push(u8::try_from(text.len()).unwrap());
    block.extend(text.as_bytes());
}

/// A header block; `method` is an index of HPACK's static table.
fn block(method: u8, path: &str, token: Option<&str>) -> Vec<u8> {
    // The scheme is https; then follow the authority and the path.
    let mut block = vec![method, 0x87, 0x01];
    text(&mut block, "localhost");
    block.push(0x04);
    text(&mut block, path);
    if let Some(token) = token {
        block.extend([0x0f, 0x08]);
        text(&mut block, &format!("Bearer {token}"));
    }
    block
}

/// A GET.
pub(crate) fn request(stream: u32, path: &str, token: Option<&str>) -> Vec<u8> {
    let block = block(0x82, path, token);
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &block)
}

/// A POST whose body has not been sent.
pub(crate) fn open(stream: u32, path: &str, token: &str) -> Vec<u8> {
    frame(
        HEADERS,
        END_HEADERS,
        stream,
        &block(0x83, path, Some(token)),
    )
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(RESET, 0, stream, &[0, 0, 0, 8])
}
