//! The compression dictionary of SPDY/3 headers, defined by the protocol (draft
//! 3.1, section 2.6.10.1).

/// Words that the dictionary stores with a length prefix.
const WORDS: &str = "options head post put delete trace accept accept-charset \
    accept-encoding accept-language accept-ranges age allow authorization \
    cache-control connection content-base content-encoding content-language \
    content-length content-location content-md5 content-range content-type date \
    etag expect expires from host if-match if-modified-since if-none-match \
    if-range if-unmodified-since last-modified location max-forwards pragma \
    proxy-authenticate proxy-authorization range referer retry-after server te \
    trailer transfer-encoding upgrade user-agent vary via warning \
    www-authenticate method get status 200_OK version HTTP/1.1 url public \
    set-cookie keep-alive origin";

/// The rest of the dictionary.
const REST: &str = "1001012012022052063003023033043053063074024054064074084094104114124134144154164175025045052\
    03 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request\
    401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error\
    501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec \
    00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,\
    image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,public\
    privatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// Returns the dictionary.
pub(super) fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1423);
    for word in WORDS.split_ascii_whitespace() {
        let word = word.replace('_', " ");
        bytes.extend_from_slice(&u32::try_from(word.len()).unwrap_or_default().to_be_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
    bytes.extend_from_slice(REST.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum in the header of every compressed block.
    #[test]
    fn the_checksum_is_that_of_the_protocol() {
        let dictionary = dictionary();
        assert_eq!(dictionary.len(), 1423);
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in dictionary {
            low = (low + u32::from(byte)) % 65_521;
            high = (high + low) % 65_521;
        }
        assert_eq!(high << 16 | low, 0xe3c6_a7c2);
    }
}
