//! Replays the corpora of the fuzz targets `plans`, `archives`, `sweeps` and `terminals`
//! (`cargo xtask fuzz`), so that fixed bugs stay fixed.

use std::{fs, path::Path};

#[allow(unreachable_pub, reason = "the fuzz target uses it as a library")]
#[path = "../../../../../fuzz/src/archives.rs"]
mod archives;
#[allow(unreachable_pub, reason = "the fuzz target uses it as a library")]
#[path = "../../../../../fuzz/src/plans.rs"]
mod plans;
#[allow(unreachable_pub, reason = "the fuzz target uses it as a library")]
#[path = "../../../../../fuzz/src/sweeps.rs"]
mod sweeps;
#[allow(unreachable_pub, reason = "the fuzz target uses it as a library")]
#[path = "../../../../../fuzz/src/terminals.rs"]
mod terminals;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus");
    let inputs = fs::read_dir(folder.join(target)).unwrap();
    let mut inputs: Vec<_> = inputs.map(|entry| entry.unwrap().path()).collect();
    assert!(!inputs.is_empty());
    inputs.sort();
    for input in inputs {
        let data = fs::read(&input).unwrap();
        let kept = std::panic::catch_unwind(|| check(&data));
        assert!(kept.is_ok(), "{} violates its property", input.display());
    }
}

#[test]
fn every_plan_of_the_corpus_satisfies_its_property() {
    replay("plans", plans::check);
}

#[test]
fn every_archive_of_the_corpus_satisfies_its_property() {
    replay("archives", archives::check);
}

#[test]
fn every_sweep_of_the_corpus_satisfies_its_property() {
    replay("sweeps", sweeps::check);
}

#[test]
fn every_terminal_text_of_the_corpus_satisfies_its_property() {
    replay("terminals", terminals::check);
}
