//! Replays the corpus of the fuzz target `recordings` (`cargo xtask fuzz`), so that fixed bugs
//! stay fixed.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

#[allow(unreachable_pub, reason = "the fuzz target uses it as a library")]
#[path = "../../../../fuzz/src/recordings.rs"]
mod recordings;

#[test]
fn every_recording_of_the_corpus_satisfies_its_property() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/recordings");
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!inputs.is_empty());
    inputs.sort();
    for input in inputs {
        let data = fs::read(&input).unwrap();
        let kept = std::panic::catch_unwind(|| recordings::check(&data));
        assert!(kept.is_ok(), "{} violates its property", input.display());
    }
}

mod noise {
    use proptest::prelude::*;

    use super::recordings;

    const HEADER: &[u8] = b"{\"recording\":1,\"namespace\":\"default\"}\n";

    /// Fragments of recordings, in any order.
    fn fragments() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"{\"id\":1,"[..],
            b"{\"id\":2,",
            b"\"request\":{\"method\":\"GET\",\"path\":\"/\"},",
            b"\"response\":{\"status\":200}",
            b"\"response\":{\"status\":200,\"stream\":true}",
            b"\"after\":1,",
            b"\"sent\":{\"text\":\"a\"}",
            b"\"end\":\"server\"",
            b"}\n",
            b"\n",
            b"}",
            b"\xff",
        ]);
        prop::collection::vec(piece, 0..20)
            .prop_map(|fragments| [HEADER, &fragments.concat()].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn fragments_of_recordings_cause_no_panic(data in fragments()) {
            recordings::check(&data);
        }
    }
}
