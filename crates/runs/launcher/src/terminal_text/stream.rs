//! Filters the output of a container for a terminal that shows no other text.

use anstyle::Style;
use anstyle_parse::{Params, Parser, Perform};

use super::colors;

/// Passes text, colours and movements within a line, and removes everything else.
///
/// Intended for output that is shown as it arrives, without a prefix that a carriage return could
/// overwrite. Keeps its state between pieces, which may end within a character or a sequence.
///
/// ```
/// let mut filter = longshore_launcher::terminal_text::Stream::default();
/// assert_eq!(filter.pass(b"\x1b[2Jab\x1b]0;ti"), "ab");
/// assert_eq!(filter.pass(b"tle\x07 10%\r\x1b[3"), " 10%\r");
/// assert_eq!(filter.pass(b"2m20%\x1b[K"), "\x1b[32m20%\x1b[K");
/// assert_eq!(filter.end(), "\x1b[0m");
/// ```
#[derive(Debug, Default)]
pub struct Stream {
    parser: Parser<anstyle_parse::DefaultCharAccumulator>,
    output: Output,
}

#[derive(Debug, Default)]
struct Output {
    text: String,
    style: Style,
}

impl Stream {
    /// Filters a piece.
    pub fn pass(&mut self, piece: &[u8]) -> String {
        for byte in piece {
            self.parser.advance(&mut self.output, *byte);
        }
        std::mem::take(&mut self.output.text)
    }

    /// Returns the end of the text: the reset of a colour that is still set.
    pub fn end(&mut self) -> String {
        std::mem::take(&mut self.output.style)
            .render_reset()
            .to_string()
    }
}

impl Perform for Output {
    fn print(&mut self, char: char) {
        if !char.is_control() {
            self.text.push(char);
        }
    }

    fn execute(&mut self, byte: u8) {
        if matches!(byte, b'\r' | b'\n' | b'\t' | 0x08) {
            self.text.push(char::from(byte));
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if ignore || !intermediates.is_empty() {
            return;
        }
        match action {
            b'm' => {
                let style = colors::select(self.style, params);
                let (reset, new) = (self.style.render_reset(), style.render());
                self.text += &format!("{reset}{new}");
                self.style = style;
            }
            b'K' => {
                let how = params.iter().next().and_then(|group| group.first());
                self.text += match how {
                    Some(1) => "\x1b[1K",
                    Some(2) => "\x1b[2K",
                    _ => "\x1b[K",
                };
            }
            _ => {}
        }
    }
}
