//! The files of a documentation page.

use std::{fs, path::Path};

use crate::machine::Machine;

/// Writes the files that a page has in a folder.
pub(crate) fn write_files(machine: &Machine, page: &str, folder: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs");
    let page = fs::read_to_string(docs.join(page)).unwrap();
    let mut written = 0;
    for block in page.split("\n```").skip(1).step_by(2) {
        let (head, text) = block.split_once('\n').unwrap();
        let name = head.split_once(' ').map_or("", |(_, name)| name);
        if Path::new(name).starts_with(folder) {
            fs::create_dir_all(machine.code().join(folder)).unwrap();
            fs::write(machine.code().join(name), format!("{text}\n")).unwrap();
            written += 1;
        }
    }
    assert!(written > 0, "the page has no files in {folder}");
}
