//! gzip on all processors. The output depends only on the content, not on the machine or its
//! number of processors.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Higher levels take much more time and save little on code.
const LEVEL: u32 = 6;
/// The block size, a part of the archive format: another size changes the bytes and thus the
/// addresses.
const BLOCK: usize = 256 * 1024;
/// The maximum distance of a back reference in a block: the maximum window of deflate.
const WINDOW: usize = 32 * 1024;
/// More threads do not help, because reading is the bottleneck.
const MOST_THREADS: usize = 16;
/// A gzip header without time, name or operating system (RFC 1952).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// An empty final block (RFC 1951). The data before it ends on a byte boundary.
const END: [u8; 2] = [3, 0];

type Compressed = io::Result<Vec<u8>>;

/// A block, the data before it, and the channel for the result.
struct Work {
    block: Arc<Vec<u8>>,
    before: Option<Arc<Vec<u8>>>,
    answer: SyncSender<Compressed>,
}

/// Compresses written data into `inner`, in order.
pub(super) struct ParallelGzip<W> {
    inner: W,
    block: Vec<u8>,
    last: Option<Arc<Vec<u8>>>,
    crc: Crc,
    /// Closed first in `finish`, so that the workers exit.
    work: Option<SyncSender<Work>>,
    waiting: VecDeque<Receiver<Compressed>>,
    most: usize,
    workers: Vec<JoinHandle<()>>,
}

impl<W: Write> ParallelGzip<W> {
    pub(super) fn new(inner: W) -> io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(inner, threads.min(MOST_THREADS))
    }

    fn with_threads(mut inner: W, threads: usize) -> io::Result<Self> {
        inner.write_all(&HEADER)?;
        let (work, taken) = sync_channel(threads);
        let taken = Arc::new(Mutex::new(taken));
        let worker = || {
            let taken = Arc::clone(&taken);
            std::thread::Builder::new()
                .name("compress".to_owned())
                .spawn(move || compress_all(&taken))
        };
        Ok(Self {
            inner,
            block: Vec::with_capacity(BLOCK),
            last: None,
            crc: Crc::new(),
            work: Some(work),
            waiting: VecDeque::new(),
            most: threads * 2,
            workers: (0..threads).map(|_| worker()).collect::<io::Result<_>>()?,
        })
    }

    fn give_out(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = Arc::new(std::mem::replace(
            &mut self.block,
            Vec::with_capacity(BLOCK),
        ));
        let (answer, compressed) = sync_channel(1);
        let work = Work {
            block: Arc::clone(&block),
            before: self.last.replace(block),
            answer,
        };
        let given = self.work.as_ref().map(|to| to.send(work).is_ok());
        if given != Some(true) {
            return Err(ended());
        }
        self.waiting.push_back(compressed);
        if self.waiting.len() > self.most {
            self.take_one()?;
        }
        Ok(())
    }

    fn take_one(&mut self) -> io::Result<()> {
        if let Some(compressed) = self.waiting.pop_front() {
            let compressed = compressed.recv().map_err(|_| ended())??;
            self.inner.write_all(&compressed)?;
        }
        Ok(())
    }

    /// Writes the remaining data and returns the inner writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.give_out()?;
        while !self.waiting.is_empty() {
            self.take_one()?;
        }
        self.work = None;
        for worker in self.workers {
            worker.join().map_err(|_| ended())?;
        }
        self.inner.write_all(&END)?;
        self.inner.write_all(&self.crc.sum().to_le_bytes())?;
        self.inner.write_all(&self.crc.amount().to_le_bytes())?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for ParallelGzip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        let bytes = &bytes[..taken];
        self.crc.update(bytes);
        self.block.extend_from_slice(bytes);
        if self.block.len() == BLOCK {
            self.give_out()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ended() -> io::Error {
    io::Error::other("a thread that compresses has ended")
}

fn compress_all(taken: &Mutex<Receiver<Work>>) {
    loop {
        let work = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Work {
            block,
            before,
            answer,
        }) = work
        else {
            return;
        };
        let done = compress_one(&block, before.as_deref());
        // The receiver is dropped after an error in another block.
        let _ = answer.send(done);
    }
}

/// A block that ends on a byte boundary and is not final.
fn compress_one(block: &[u8], before: Option<&Vec<u8>>) -> Compressed {
    // A new compressor for each block: a reset one keeps parts of the previous block in its
    // window, which would affect the output.
    let mut compress = Compress::new(Compression::new(LEVEL), false);
    if let Some(before) = before {
        let window = &before[before.len().saturating_sub(WINDOW)..];
        compress.set_dictionary(window).map_err(io::Error::other)?;
    }
    let mut out = Vec::with_capacity(block.len() / 2 + 1024);
    loop {
        let read = usize::try_from(compress.total_in()).unwrap_or(block.len());
        let left = block.get(read..).unwrap_or_default();
        let status = compress.compress_vec(left, &mut out, FlushCompress::Sync);
        match status.map_err(io::Error::other)? {
            // The whole input was read, and the output buffer was large enough.
            Status::Ok | Status::BufError | Status::StreamEnd if out.len() < out.capacity() => {
                return Ok(out);
            }
            _ => out.reserve(out.len() / 2 + 1024),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use flate2::read::{GzDecoder, MultiGzDecoder};
    use proptest::prelude::*;

    use super::*;

    fn packed(content: &[u8], threads: usize, piece: usize) -> Vec<u8> {
        let mut gzip = ParallelGzip::with_threads(Vec::new(), threads).unwrap();
        for part in content.chunks(piece) {
            gzip.write_all(part).unwrap();
        }
        gzip.finish().unwrap()
    }

    /// Text that is compressible, and contains repetitions across the ends of blocks.
    fn text(length: usize) -> Vec<u8> {
        let mut seed = 7_u32;
        let mut words = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!(
                "let value_{} = compute({});\n",
                (seed >> 20) % 500,
                seed >> 24
            )
        });
        let mut text = Vec::with_capacity(length);
        while text.len() < length {
            text.extend_from_slice(words.next().unwrap().as_bytes());
        }
        text.truncate(length);
        text
    }

    #[test]
    fn the_output_is_gzip_and_independent_of_the_number_of_threads() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 12_345] {
            let content = text(length);
            let one = packed(&content, 1, 1000);
            assert_eq!(one, packed(&content, 3, 77_777), "{length}");
            let mut read = Vec::new();
            // The output has a single gzip member, so readers that stop after the first member read
            // all of it.
            GzDecoder::new(&one[..]).read_to_end(&mut read).unwrap();
            assert_eq!(read, content, "{length}");
        }
    }

    /// Compressors of zlib-rs produce other bytes after a reset than new ones, for one of about 60
    /// blocks.
    #[test]
    fn a_block_does_not_depend_on_earlier_blocks() {
        let mut seed = 1_u64;
        let mut letters = std::iter::repeat_with(|| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            b"longshre"[usize::try_from(seed >> 61).unwrap()]
        });
        let blocks: Vec<Vec<u8>> = (0..32)
            .map(|_| letters.by_ref().take(BLOCK).collect())
            .collect();
        let content = blocks.concat();
        let one = packed(&content, 1, BLOCK);
        for threads in [2, 3, 5] {
            assert!(one == packed(&content, threads, BLOCK), "{threads} threads");
        }
    }

    #[test]
    fn blocks_have_a_negligible_overhead() {
        let content = text(4 * 1024 * 1024);
        let mut whole = flate2::write::GzEncoder::new(Vec::new(), Compression::new(LEVEL));
        whole.write_all(&content).unwrap();
        let (whole, blocks) = (
            whole.finish().unwrap().len(),
            packed(&content, 2, BLOCK).len(),
        );
        assert!(blocks * 100 < whole * 101, "{blocks} instead of {whole}");
    }

    #[test]
    fn a_failing_writer_ends_the_compression() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self
                    .0
                    .checked_sub(bytes.len())
                    .ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut gzip = ParallelGzip::with_threads(Full(20_000), 2).unwrap();
        let written = gzip.write_all(&text(30 * BLOCK));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn compression_round_trips(
            content in proptest::collection::vec(any::<u8>(), 0..3000),
            times in 0_usize..400,
            threads in 1_usize..4,
        ) {
            let content = content.repeat(times);
            let mut read = Vec::new();
            MultiGzDecoder::new(&packed(&content, threads, 4096)[..]).read_to_end(&mut read).unwrap();
            prop_assert_eq!(read, content);
        }
    }
}
