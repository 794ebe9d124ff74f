//! A line of a terminal: its cells after a text was written.

use std::{collections::BTreeMap, fmt, fmt::Write as _};

use anstyle::Style;
use anstyle_parse::{Params, Parser, Perform};
use unicode_width::UnicodeWidthChar as _;

use super::colors;

/// The number of columns that a cursor movement or a run of blanks can reach. Terminals
/// clamp to their width. Only written text can make a line longer.
const REACHABLE_COLUMNS: usize = 1024;
/// The maximum number of zero-width characters, such as accents, per cell.
const MARKS_PER_CELL: usize = 8;

/// The second half of a wide character.
const HALF: char = '\0';

#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    char: char,
    style: Style,
}

/// An empty cell.
const BLANK: Cell = Cell {
    char: ' ',
    style: Style::new(),
};

/// The cells of a line.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    /// Zero-width characters, by the column of their base character.
    marks: BTreeMap<usize, String>,
    column: usize,
    style: Style,
}

impl Cells {
    /// The line after this text was written. Incomplete sequences at the end of the text are left
    /// out.
    pub(super) fn written(text: &str) -> Self {
        let mut line = Self::default();
        let mut parser = Parser::<anstyle_parse::DefaultCharAccumulator>::new();
        for byte in text.bytes() {
            parser.advance(&mut line, byte);
        }
        line.trim();
        line
    }

    /// The text without colours, truncated to the width.
    pub(super) fn cut(&self, columns: usize) -> String {
        let mut text = String::new();
        let mut width = 0;
        for (column, cell) in self.cells.iter().enumerate() {
            // A tab would be wider than one column.
            let char = if cell.char == '\t' { ' ' } else { cell.char };
            if char == HALF {
                continue;
            }
            width += char.width().unwrap_or(0);
            if width > columns {
                break;
            }
            text.push(char);
            text.extend(self.marks.get(&column).map(String::as_str));
        }
        text
    }

    /// Removes trailing blanks, which remain after erasing.
    fn trim(&mut self) {
        while self.cells.last() == Some(&BLANK) {
            self.cells.pop();
        }
        self.marks.retain(|column, _| *column < self.cells.len());
    }

    fn put(&mut self, char: char) {
        let width = char.width().unwrap_or(0);
        if width == 0 {
            return self.join(char);
        }
        self.clear(self.column, self.column + width);
        let style = self.style;
        self.cells[self.column] = Cell { char, style };
        for half in 1..width {
            self.cells[self.column + half] = Cell { char: HALF, style };
        }
        self.column += width;
    }

    /// Adds a zero-width character to the character before the cursor.
    fn join(&mut self, char: char) {
        let Some(mut column) = self.column.checked_sub(1) else {
            return;
        };
        while column > 0 && self.cells.get(column).is_some_and(|cell| cell.char == HALF) {
            column -= 1;
        }
        if column < self.cells.len() {
            let marks = self.marks.entry(column).or_default();
            if marks.chars().count() < MARKS_PER_CELL {
                marks.push(char);
            }
        }
    }

    /// Clears cells, including both halves of wide characters.
    fn clear(&mut self, from: usize, to: usize) {
        if self.cells.len() < to {
            self.cells.resize(to, BLANK);
        }
        let is_half = |cells: &[Cell], at: usize| cells.get(at).is_some_and(|c| c.char == HALF);
        let (mut first, mut last) = (from, to);
        while is_half(&self.cells, first) && first > 0 {
            first -= 1;
        }
        while is_half(&self.cells, last) {
            last += 1;
        }
        self.cells[first..last].fill(BLANK);
        if !self.marks.is_empty() {
            self.marks
                .retain(|column, _| !(first..last).contains(column));
        }
    }

    /// Moves the cursor, limited like in a terminal.
    fn move_to(&mut self, column: usize) {
        let limit = REACHABLE_COLUMNS.max(self.column).max(self.cells.len());
        self.column = column.min(limit);
    }

    fn erase(&mut self, how: u16) {
        let end = self.cells.len();
        match how {
            0 if self.column < end => self.clear(self.column, end),
            1 => self.clear(0, (self.column + 1).min(end)),
            2 => {
                self.cells.clear();
                self.marks.clear();
            }
            _ => {}
        }
    }
}

impl Perform for Cells {
    fn print(&mut self, char: char) {
        // C1 control characters also arrive here.
        if !char.is_control() {
            self.put(char);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => {
                self.clear(self.column, self.column + 1);
                self.cells[self.column].char = '\t';
                self.column += 1;
            }
            b'\n' => self.put(' '),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        // Sequences with a private marker have other meanings.
        if ignore || !intermediates.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|group| group.first());
        let first = first.copied().unwrap_or(0);
        let count = usize::from(first.max(1));
        match action {
            b'm' => self.style = colors::select(self.style, params),
            b'K' => self.erase(first),
            b'C' | b'a' => self.move_to(self.column + count),
            b'D' => self.column = self.column.saturating_sub(count),
            b'G' | b'`' => self.move_to(count - 1),
            b'X' => {
                let end = (self.column + count).min(self.cells.len());
                if self.column < end {
                    self.clear(self.column, end);
                }
            }
            _ => {}
        }
    }
}

impl fmt::Display for Cells {
    /// The text with colours, which are reset at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut style = Style::new();
        for (column, cell) in self.cells.iter().enumerate() {
            if cell.char == HALF {
                continue;
            }
            if cell.style != style {
                write!(f, "{}{}", style.render_reset(), cell.style.render())?;
                style = cell.style;
            }
            f.write_char(cell.char)?;
            if let Some(marks) = self.marks.get(&column) {
                f.write_str(marks)?;
            }
        }
        write!(f, "{}", style.render_reset())
    }
}
