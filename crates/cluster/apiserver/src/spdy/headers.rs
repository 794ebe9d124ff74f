//! Header blocks of SPDY/3: names and values, compressed with the protocol's
//! dictionary and one context per connection.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::{ProtocolError, dictionary::dictionary};

/// Maximum size of a decompressed block in bytes.
const MAX_BLOCK: usize = 64 << 10;
/// Number of bytes that are decompressed at a time.
const STEP: usize = 4 << 10;

/// Names and values in the order of arrival.
pub(crate) type Headers = Vec<(String, String)>;

/// Decompresses the blocks of a connection in order.
pub(super) struct Decompressor {
    inflate: Decompress,
    dictionary: Vec<u8>,
}

impl Decompressor {
    pub(super) fn new() -> Self {
        Self {
            inflate: Decompress::new(true),
            dictionary: dictionary(),
        }
    }

    /// Decompresses the next block.
    pub(super) fn decompress(&mut self, mut packed: &[u8]) -> Result<Headers, ProtocolError> {
        let bad = |_| ProtocolError("a header block that cannot be unpacked");
        let mut block: Vec<u8> = Vec::new();
        loop {
            if block.len() > MAX_BLOCK {
                return Err(ProtocolError("a header block that is too large"));
            }
            block.reserve(STEP);
            let (before, length) = (self.inflate.total_in(), block.len());
            let status = self
                .inflate
                .decompress_vec(packed, &mut block, FlushDecompress::Sync);
            let taken = usize::try_from(self.inflate.total_in() - before).unwrap_or(usize::MAX);
            packed = packed.get(taken..).unwrap_or_default();
            match status {
                Err(error) if error.needs_dictionary().is_some() => {
                    self.inflate.set_dictionary(&self.dictionary).map_err(bad)?;
                }
                Err(error) => return Err(bad(error)),
                Ok(Status::StreamEnd) => return Err(ProtocolError("headers that end")),
                // The block is complete when no more output is produced.
                Ok(_) if packed.is_empty() && block.len() < block.capacity() => break,
                Ok(_) if taken == 0 && block.len() == length => {
                    return Err(ProtocolError("a header block that cannot be unpacked"));
                }
                Ok(_) => {}
            }
        }
        read(&block)
    }
}

/// Parses a decompressed block.
fn read(block: &[u8]) -> Result<Headers, ProtocolError> {
    let short = || ProtocolError("a header block that breaks off");
    let mut rest = block;
    let number = |rest: &mut &[u8]| -> Result<usize, ProtocolError> {
        let (bytes, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        *rest = after;
        Ok(u32::from_be_bytes(*bytes) as usize)
    };
    let text = |rest: &mut &[u8]| -> Result<String, ProtocolError> {
        let length = number(rest)?;
        let (bytes, after) = rest.split_at_checked(length).ok_or_else(short)?;
        *rest = after;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    };
    let (count, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    rest = after;
    let mut headers = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        headers.push((text(&mut rest)?, text(&mut rest)?));
    }
    Ok(headers)
}

/// Compresses the blocks of a connection in order.
pub(super) struct Compressor(Compress);

impl Compressor {
    pub(super) fn new() -> Self {
        let mut deflate = Compress::new(Compression::fast(), true);
        // Fails only after the first block.
        let _ = deflate.set_dictionary(&dictionary());
        Self(deflate)
    }

    pub(super) fn compress(&mut self, headers: &[(String, String)]) -> Vec<u8> {
        let mut block = Vec::new();
        let number = |block: &mut Vec<u8>, number: usize| {
            block.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
        };
        number(&mut block, headers.len());
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            number(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
        let (mut packed, begin) = (Vec::new(), self.0.total_in());
        loop {
            packed.reserve(STEP);
            let taken = usize::try_from(self.0.total_in() - begin).unwrap_or(usize::MAX);
            let rest = block.get(taken..).unwrap_or_default();
            let status = self.0.compress_vec(rest, &mut packed, FlushCompress::Sync);
            // Writing to a Vec cannot fail.
            let is_whole = self.0.total_in() - begin == block.len() as u64;
            if status.is_err() || (is_whole && packed.len() < packed.capacity()) {
                return packed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn compressed_blocks_decompress(blocks in prop::collection::vec(
            prop::collection::vec(("[a-z-]{1,20}", ".{0,2000}"), 0..8), 1..5))
        {
            let (mut compressor, mut decompressor) = (Compressor::new(), Decompressor::new());
            for block in blocks {
                prop_assert_eq!(decompressor.decompress(&compressor.compress(&block)).unwrap(), block);
            }
        }

        #[test]
        fn arbitrary_blocks_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Decompressor::new().decompress(&bytes);
            let _ = read(&bytes);
        }
    }

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let swollen = vec![("a".to_owned(), "x".repeat(8 << 20))];
        let packed = Compressor::new().compress(&swollen);
        assert!(packed.len() < 100_000);
        let refused = Decompressor::new().decompress(&packed).unwrap_err();
        assert_eq!(refused.0, "a header block that is too large");
    }
}
