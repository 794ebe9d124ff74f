//! Complete requests: a line with method and path, lines with headers, an empty line, the
//! body. A line `----` separates requests to the same server.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;

use super::server::Server;

/// The maximum number of requests in one input.
const MAX_REQUESTS: usize = 4;

pub fn check(data: &[u8]) {
    let server = Server::new();
    let text = String::from_utf8_lossy(data);
    text.split("\n----\n")
        .take(MAX_REQUESTS)
        .filter_map(request)
        .for_each(|request| {
            server.send(request);
        });
}

fn request(text: &str) -> Option<Request<Full<Bytes>>> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        request = request.header(name.trim(), value.trim());
    }
    request
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .ok()
}
