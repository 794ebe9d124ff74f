//! Replays the corpus of the fuzz target `specs` (`cargo xtask fuzz`), so that fixed bugs
//! stay fixed.
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path};

#[allow(unreachable_pub, reason = "the fuzz target uses it as a library")]
#[path = "../../../../fuzz/src/specs.rs"]
mod specs;

#[test]
fn every_spec_of_the_corpus_satisfies_its_property() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/specs");
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!inputs.is_empty());
    inputs.sort();
    for input in inputs {
        let data = fs::read(&input).unwrap();
        let kept = std::panic::catch_unwind(|| specs::check(&data));
        assert!(kept.is_ok(), "{} violates its property", input.display());
    }
}
