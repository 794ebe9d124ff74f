//! Finds words in the files of a bundle.

use std::{collections::BTreeSet, fs::File, io::Read as _, path::Path};

use memchr::memmem;

use super::{
    Bundle,
    entry::{Found, Kind},
};

/// Larger files are data, and not read.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// The maximum size of all files that are read.
const MAX_BYTES: u64 = 256 << 20;

impl Bundle {
    /// The words of a set that begin with `prefix` and that no file of the bundle contains. The
    /// result is empty if a file contains the prefix alone, because its code may build the words,
    /// or if the files cannot be read completely.
    #[must_use]
    pub fn unmentioned(&self, prefix: &str, words: &BTreeSet<String>) -> BTreeSet<String> {
        let mut left = words.clone();
        let mut bytes = MAX_BYTES;
        for entry in &self.contents.entries {
            if entry.kind != Kind::File || entry.size > MAX_FILE_BYTES {
                continue;
            }
            let text = read(&self.contents.folder, entry);
            let (Some(text), Some(rest)) = (text, bytes.checked_sub(entry.size)) else {
                return BTreeSet::new();
            };
            bytes = rest;
            if remove_mentioned(&text, prefix, &mut left) {
                return BTreeSet::new();
            }
        }
        left
    }
}

fn read(folder: &Path, entry: &Found) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(folder.join(&entry.path)).ok()?;
    file.take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Removes the words that a text contains. Returns true if it contains the prefix alone.
fn remove_mentioned(text: &[u8], prefix: &str, words: &mut BTreeSet<String>) -> bool {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    for start in memmem::find_iter(text, prefix) {
        let word = &text[start..];
        let length = word.iter().take_while(is_part).count();
        let word = String::from_utf8_lossy(&word[..length]);
        if word == prefix || word == prefix.trim_end_matches('_') {
            return true;
        }
        words.remove(word.as_ref());
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_mentioned() {
        let words: BTreeSet<String> = ["P_LR", "P_LR_MIN", "P_SEED"].map(str::to_owned).into();
        for (text, expected) in [
            ("print()", Some(vec!["P_LR", "P_LR_MIN", "P_SEED"])),
            ("os.environ['P_LR']", Some(vec!["P_LR_MIN", "P_SEED"])),
            ("\"$P_LR_MIN\" P_SEED", Some(vec!["P_LR"])),
            ("f'P_{name}'", None),
            ("P_lr", Some(vec!["P_LR", "P_LR_MIN", "P_SEED"])),
        ] {
            let mut left = words.clone();
            let alone = remove_mentioned(text.as_bytes(), "P_", &mut left);
            let left: Vec<&str> = left.iter().map(String::as_str).collect();
            assert_eq!((!alone).then_some(left), expected, "{text}");
        }
    }
}
