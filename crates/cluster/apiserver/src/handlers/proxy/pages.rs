//! Responses of pods: redirects and HTML pages whose links lead through the proxy.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::{StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use http::{HeaderMap, HeaderValue, Response, header};

use super::{html::Page, links::Links};
use crate::body::Body;

/// Length in bytes of the compressed parts that are decompressed at a time. A part expands to at
/// most a thousand times its length.
const COMPRESSED_PART: usize = 1 << 10;

/// Headers with which the pod would permit pages of other servers to read responses of this
/// server.
const CROSS_ORIGIN: [&str; 4] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
];

/// Rewrites the redirect or the links of a page, like Kubernetes.
pub(super) fn through_proxy(mut response: Response<Body>, links: Links) -> Response<Body> {
    let headers = response.headers_mut();
    for name in CROSS_ORIGIN {
        headers.remove(name);
    }
    if let Some(location) = headers.get(header::LOCATION) {
        let rewritten = location.to_str().ok().and_then(|url| links.rewrite(url));
        if let Some(Ok(rewritten)) = rewritten.map(HeaderValue::try_from) {
            headers.insert(header::LOCATION, rewritten);
        }
        return response;
    }
    let Some(decoder) = decoder(headers) else {
        return response;
    };
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_ENCODING);
    response.map(|body| match body.into_stream() {
        Ok(parts) => Body::stream(rewritten(parts, decoder, Page::new(links))),
        Err(empty) => empty,
    })
}

/// A decoder for the text of a page.
enum Decoder {
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
}

/// Returns the decoder of a page; `None` if the response is not a page, or has an unknown encoding.
fn decoder(headers: &HeaderMap) -> Option<Decoder> {
    let text = |name| {
        let value = headers.get(name).map(HeaderValue::to_str);
        value.transpose().ok().map(Option::unwrap_or_default)
    };
    let media_type = text(header::CONTENT_TYPE)?.split(';').next()?.trim();
    if !media_type.eq_ignore_ascii_case("text/html") {
        return None;
    }
    match text(header::CONTENT_ENCODING)? {
        "" => Some(Decoder::Plain),
        "gzip" => Some(Decoder::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
        _ => None,
    }
}

impl Decoder {
    /// Takes a part of the received bytes, and returns their text.
    fn read(&mut self, received: &mut Bytes) -> io::Result<Bytes> {
        match self {
            Self::Plain => Ok(std::mem::take(received)),
            Self::Gzip(decoder) => {
                let part = received.split_to(received.len().min(COMPRESSED_PART));
                decoder.write_all(&part)?;
                Ok(std::mem::take(decoder.get_mut()).into())
            }
        }
    }

    /// Returns the rest of the text.
    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(Vec::new()),
            Self::Gzip(decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }
}

/// A page that is being received.
struct Reading {
    /// The received bytes; the last item ends the page.
    parts: BoxStream<'static, io::Result<Option<Bytes>>>,
    decoder: Decoder,
    page: Page,
    /// The bytes that have been received but not decoded.
    received: Bytes,
}

impl Reading {
    /// Returns the next part of the rewritten page, which may be empty.
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        if self.received.is_empty() {
            match self.parts.next().await.transpose()? {
                Some(Some(part)) => self.received = part,
                Some(None) => {
                    let mut rest = self.page.write(&self.decoder.finish()?);
                    rest.extend(self.page.finish());
                    return Ok(Some((rest.into(), self)));
                }
                None => return Ok(None),
            }
        }
        let text = self.decoder.read(&mut self.received)?;
        Ok(Some((self.page.write(&text).into(), self)))
    }
}

/// Returns the parts of a page with rewritten links.
fn rewritten(
    parts: BoxStream<'static, io::Result<Bytes>>,
    decoder: Decoder,
    page: Page,
) -> BoxStream<'static, io::Result<Bytes>> {
    let end = stream::iter([Ok(None)]);
    let reading = Reading {
        parts: parts.map_ok(Some).chain(end).boxed(),
        decoder,
        page,
        received: Bytes::new(),
    };
    stream::try_unfold(reading, Reading::next)
        .try_filter(|part| std::future::ready(!part.is_empty()))
        .boxed()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use flate2::{Compression, write::GzEncoder};
    use http_body_util::BodyExt as _;

    use super::*;

    fn links() -> Links {
        Links {
            prefix: "/p".into(),
            pod: "127.1.2.3:80".into(),
            client: None,
        }
    }

    fn response(headers: &[(&'static str, &'static str)], parts: &[&[u8]]) -> Response<Body> {
        let parts: Vec<io::Result<Bytes>> = (parts.iter())
            .map(|part| Ok(Bytes::copy_from_slice(part)))
            .collect();
        let mut response = Response::new(Body::stream(stream::iter(parts).boxed()));
        for (name, value) in headers {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(*name, value);
        }
        response
    }

    async fn text(response: Response<Body>) -> Vec<u8> {
        let collected = response.into_body().collect().await;
        collected.unwrap().to_bytes().to_vec()
    }

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn links_of_pages_are_rewritten() {
        let page = response(
            &[
                ("content-type", "Text/HTML; charset=utf-8"),
                ("content-length", "14"),
                ("access-control-allow-origin", "*"),
            ],
            &[b"<a hr", b"ef='/", b"x'>y<a href='/"],
        );
        let page = through_proxy(page, links());
        assert_eq!(page.headers().len(), 1);
        assert_eq!(text(page).await, b"<a href='/p/x'>y<a href='/");
        let other = [("content-type", "text/plain"), ("content-length", "12")];
        let other = through_proxy(response(&other, &[b"<a href='/x'>"]), links());
        assert_eq!(other.headers().len(), 2);
        assert_eq!(text(other).await, b"<a href='/x'>");
    }

    #[tokio::test]
    async fn compressed_pages_are_decompressed_in_parts() {
        let lines = "<a href='/x'>\n".repeat(100_000);
        let packed = compressed(lines.as_bytes());
        let headers = [("content-type", "text/html"), ("content-encoding", "gzip")];
        let page = through_proxy(response(&headers, &[&packed]), links());
        assert!(!page.headers().contains_key("content-encoding"));
        assert_eq!(text(page).await, lines.replace("/x", "/p/x").as_bytes());
        // An incomplete or damaged page is an error for the client.
        for damaged in [&packed[..packed.len() / 2], b"no gzip at all"] {
            let page = through_proxy(response(&headers, &[damaged]), links());
            assert!(page.into_body().collect().await.is_err());
        }
        let headers = [("content-type", "text/html"), ("content-encoding", "br")];
        let page = through_proxy(response(&headers, &[b"<a href='/x'>"]), links());
        assert!(page.headers().contains_key("content-encoding"));
        assert_eq!(text(page).await, b"<a href='/x'>");
    }

    #[tokio::test]
    async fn redirects_are_rewritten_and_their_pages_are_not() {
        let headers = [("content-type", "text/html"), ("location", "/x")];
        let moved = through_proxy(response(&headers, &[b"<a href='/x'>"]), links());
        assert_eq!(moved.headers()["location"], "/p/x");
        assert_eq!(text(moved).await, b"<a href='/x'>");
    }
}
