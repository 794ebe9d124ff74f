//! The code blocks of a page of the documentation. The benchmark `side-by-side` reads them, too.

/// A fenced code block: its info string and its text.
pub(crate) struct Block<'a> {
    /// The last heading before it, without its marks.
    pub(crate) heading: &'a str,
    pub(crate) language: &'a str,
    /// The file name, or empty.
    pub(crate) name: &'a str,
    pub(crate) text: String,
}

/// The blocks of a document, in order.
pub(crate) fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    let mut heading = "";
    for line in document.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(words), None) => {
                let (language, name) = words.split_once(' ').unwrap_or((words, ""));
                open = Some(Block {
                    heading,
                    language,
                    name,
                    text: String::new(),
                });
            }
            (None, Some(block)) => {
                block.text += line;
                block.text.push('\n');
            }
            (None, None) if line.starts_with('#') => heading = line.trim_matches(['#', ' ']),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no closing fence");
    blocks
}
