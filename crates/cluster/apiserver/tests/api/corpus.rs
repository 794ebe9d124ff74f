//! Replays the corpora of the fuzz targets (see `cargo xtask fuzz`), so that fixed bugs
//! stay fixed.

use std::{fs, path::Path};

#[path = "../../../../../fuzz/src/lib.rs"]
mod fuzz;

#[test]
fn every_input_of_the_corpora_satisfies_its_property() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus");
    for (name, check) in fuzz::TARGETS {
        let mut inputs: Vec<_> = fs::read_dir(folder.join(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(!inputs.is_empty(), "{name} has no corpus");
        inputs.sort();
        for input in inputs {
            let data = fs::read(&input).unwrap();
            let kept = std::panic::catch_unwind(|| check(&data));
            assert!(kept.is_ok(), "{} violates its property", input.display());
        }
    }
}
