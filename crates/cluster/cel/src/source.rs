//! Positions in the source of an expression, and messages that show them.

/// A problem of an expression at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Position in characters.
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// Length limit of the lines that messages show.
const MAX_SNIPPET_CHARS: usize = 16_384;

/// Formats problems with the lines that they are in.
pub(crate) fn describe(source: &str, problems: &[Problem]) -> String {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| problem.at);
    let texts: Vec<String> = sorted
        .iter()
        .take(100)
        .map(|one| line(source, one))
        .collect();
    texts.join("\n")
}

fn line(source: &str, problem: &Problem) -> String {
    let (mut row, mut column) = (1, 0);
    for c in source.chars().take(problem.at) {
        column += 1;
        if c == '\n' {
            row += 1;
            column = 0;
        }
    }
    let mut text = format!("ERROR: <input>:{row}:{}: {}", column + 1, problem.message);
    let snippet = source.split('\n').nth(row - 1).unwrap_or_default();
    if snippet.chars().count() <= MAX_SNIPPET_CHARS {
        let snippet = snippet.replace('\t', " ");
        let wide = |c: char| c.len_utf8() > 1;
        let dots: String = snippet
            .chars()
            .take(column)
            .map(|c| if wide(c) { '\u{ff0e}' } else { '.' })
            .collect();
        let mark = match snippet.chars().nth(column) {
            Some(c) if wide(c) => '\u{ff3e}',
            _ => '^',
        };
        text.push_str(&format!("\n | {snippet}\n | {dots}{mark}"));
    }
    text
}
