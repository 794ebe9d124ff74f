//! The configuration of an engine: storage, clock and id generator.

use std::{path::PathBuf, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use longshore_model::name::SUFFIX_LETTERS;
use rand::RngExt as _;

/// The location where the state is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Storage {
    /// In memory; lost when the engine is closed.
    #[default]
    Memory,
    /// In a redb file, created if missing.
    File(PathBuf),
}

/// A source of the current time. Tests can implement it.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// The time that decides which history for watches is dropped. For a clock that tests advance,
    /// this is the system's time, because watches read the events between two steps of the clock
    /// only after the second step.
    fn history_time(&self) -> Timestamp {
        self.now()
    }

    /// The clock that the cluster shares, if this clock is shared.
    fn shared(&self) -> Option<&longshore_clock::Clock> {
        None
    }
}

impl Clock for longshore_clock::Clock {
    fn now(&self) -> Timestamp {
        self.now()
    }

    fn history_time(&self) -> Timestamp {
        Timestamp::now()
    }

    fn shared(&self) -> Option<&longshore_clock::Clock> {
        Some(self)
    }
}

/// A generator of ids. Tests can implement it.
pub trait Ids: Send + Sync {
    /// A new unique uid.
    fn uid(&self) -> String;
    /// The five-character suffix of a generated name.
    fn suffix(&self) -> String;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Random ids: version 4 UUIDs, and suffixes without vowels and ambiguous characters so that they
/// form no words.
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
        let mut rng = rand::rng();
        (0..5)
            .map(|_| char::from(SUFFIX_LETTERS[rng.random_range(0..SUFFIX_LETTERS.len())]))
            .collect()
    }
}

/// A request of 32 KiB occupies the writer for about two milliseconds.
const DEFAULT_INLINE_LIMIT: usize = 32 << 10;

/// Options to open an engine. Override individual fields: `Options { storage,
/// ..Options::default() }`.
#[derive(Clone)]
pub struct Options {
    /// The location where the state is stored.
    pub storage: Storage,
    /// Set to acknowledge and publish writes before they are on the disk, until
    /// [`Engine::sync`](crate::Engine::sync) is called. If the process ends earlier, all of these
    /// writes are lost. Use this only while a server starts: until the call, other processes must
    /// not depend on the writes, such as clients or the processes of pods.
    pub defer_sync: bool,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The id generator.
    pub ids: Arc<dyn Ids>,
    /// Maximum number of events per kind that are kept for watches and old
    /// lists.
    pub history: usize,
    /// Maximum total size, in bytes, of the replaced and deleted objects that
    /// the events of a kind keep.
    pub history_bytes: usize,
    /// Maximum age of events. Kubernetes compacts etcd so that events older
    /// than five to ten minutes are dropped (`--etcd-compaction-interval`).
    pub history_time: SignedDuration,
    /// Maximum size, in bytes, of requests and of the objects that they affect
    /// for which the writer thread executes a write itself. Larger writes are
    /// prepared on other threads.
    pub inline_limit: usize,
    /// Set to create each namespace with its service account `default`, as if a controller created
    /// it at once, and to require a service account for pods.
    pub default_accounts: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            storage: Storage::Memory,
            defer_sync: false,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            history: 100_000,
            history_bytes: 64 << 20,
            history_time: SignedDuration::from_mins(5),
            inline_limit: DEFAULT_INLINE_LIMIT,
            default_accounts: true,
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
