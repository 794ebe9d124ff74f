//! Replays the corpus of the fuzz target `answers` (`cargo xtask fuzz`), so that fixed bugs
//! stay fixed.

use std::{fs, path::Path};

#[allow(unreachable_pub, reason = "the fuzz target uses it as a library")]
#[path = "../../../../../fuzz/src/answers.rs"]
mod answers;

#[test]
fn every_response_of_the_corpus_satisfies_its_property() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/answers");
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!inputs.is_empty());
    inputs.sort();
    for input in inputs {
        let data = fs::read(&input).unwrap();
        let kept = std::panic::catch_unwind(|| answers::check(&data));
        assert!(kept.is_ok(), "{} violates its property", input.display());
    }
}

mod noise {
    use proptest::prelude::*;

    use super::answers;

    /// Fragments of responses, in any order.
    fn fragments() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"{"[..],
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\"",
            b"\\",
            b"\n",
            b" ",
            b"null",
            b"1",
            b"\xff",
            b"\"items\":",
            b"\"metadata\":",
            b"\"name\":",
            b"\"a\"",
            b"\"status\":",
            b"\"phase\":",
            b"{\"type\":\"ADDED\",\"object\":",
            b"\"resourceVersion\":\"1\"",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|fragments| fragments.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn fragments_of_responses_cause_no_panic(data in fragments()) {
            answers::check(&data);
        }

        #[test]
        fn a_changed_byte_causes_no_panic(at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
            let mut data = br#"{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a\u0041","labels":{"a":"b"}},"status":{"phase":"Running"}}]}"#.to_vec();
            let length = data.len();
            data[at.index(length)] = byte;
            answers::check(&data);
            data.truncate(cut.index(length));
            answers::check(&data);
        }
    }
}
