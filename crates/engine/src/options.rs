//! How an engine is set up: where it keeps its state, its clock, its ids.

use std::{path::PathBuf, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use rand::Rng as _;

/// Where the state is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Storage {
    /// In memory; gone with the engine.
    #[default]
    Memory,
    /// In a redb file, made if missing.
    File(PathBuf),
}

/// Tells the time. A test gives its own.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Makes ids. A test gives its own.
pub trait Ids: Send + Sync {
    /// A new uid, never given before.
    fn uid(&self) -> String;
    /// The five characters that end a generated name.
    fn suffix(&self) -> String;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Random ids: version 4 UUIDs, and suffixes without vowels or look-alikes, so
/// that no words come out.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn uid(&self) -> String {
        let bits: u128 = rand::rng().random();
        let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    fn suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut rng = rand::rng();
        (0..5)
            .map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())]))
            .collect()
    }
}

/// A request of 32 KiB takes the writer about two milliseconds.
const LIGHT: usize = 32 << 10;

/// How to open an engine. Set what differs: `Options { storage, ..Options::default() }`.
#[derive(Clone)]
pub struct Options {
    /// Where the state is kept.
    pub storage: Storage,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of ids.
    pub ids: Arc<dyn Ids>,
    /// How many events of each kind are kept for watches and old lists, at most.
    pub history: usize,
    /// How many bytes of replaced and deleted objects of each kind those
    /// events may hold.
    pub history_bytes: usize,
    /// How long events are kept, at most. Kubernetes has etcd forget what is older
    /// than five to ten minutes (`--etcd-compaction-interval`).
    pub history_time: SignedDuration,
    /// Bytes of a request, and of the object that it is about, up to which the
    /// writer does the work itself. Larger ones are worked out beside it.
    pub light: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            storage: Storage::Memory,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            history: 100_000,
            history_bytes: 64 << 20,
            history_time: SignedDuration::from_mins(5),
            light: LIGHT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_version_4_uuid() {
        let uid = RandomIds.uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
        assert_ne!(uid, RandomIds.uid());
    }

    #[test]
    fn a_suffix_has_five_characters() {
        assert_eq!(RandomIds.suffix().len(), 5);
    }
}
