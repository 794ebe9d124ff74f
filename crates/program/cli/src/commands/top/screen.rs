//! Draws lines over the lines that were drawn before.

use longshore::launcher::terminal_text::escaped;

use crate::ui;

/// The part of the terminal that was drawn.
#[derive(Default)]
pub(super) struct Screen {
    drawn: usize,
}

impl Screen {
    /// Replaces the lines. Text that does not fit the terminal is omitted.
    pub(super) fn draw(&mut self, lines: &[String]) {
        let text = frame(self.drawn, lines, ui::progress_size());
        self.drawn = lines.len().min(room(ui::progress_size().1));
        ui::bytes(text.as_bytes());
        ui::flush();
    }
}

/// The number of lines that fit, above the line of the cursor.
fn room(rows: usize) -> usize {
    rows.saturating_sub(1).max(1)
}

fn frame(drawn: usize, lines: &[String], (columns, rows): (usize, usize)) -> String {
    let room = room(rows);
    let mut text = match drawn {
        0 => String::new(),
        // Moves to the first line, and erases everything below.
        drawn => format!("\x1b[{drawn}A\r\x1b[J"),
    };
    let fits = lines.len() <= room;
    let shown = if fits { lines.len() } else { room - 1 };
    for line in &lines[..shown] {
        let line: String = escaped(line).chars().take(columns.max(1)).collect();
        text.push_str(&line);
        text.push('\n');
    }
    if !fits {
        let more = format!("({} more lines)", lines.len() - shown);
        text.extend(more.chars().take(columns.max(1)));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_last_one_and_fits_the_terminal() {
        let lines: Vec<String> = (0..5).map(|n| format!("line {n}")).collect();
        assert_eq!(frame(0, &lines[..1], (80, 24)), "line 0\n");
        assert_eq!(frame(1, &lines[..1], (4, 24)), "\x1b[1A\r\x1b[Jline\n");
        assert_eq!(
            frame(0, &lines, (80, 4)),
            "line 0\nline 1\n(3 more lines)\n"
        );
        assert_eq!(frame(0, &["a\x1b[2Jb".to_owned()], (80, 4)), "a^[[2Jb\n");
    }
}
