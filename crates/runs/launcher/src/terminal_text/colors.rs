//! "Select Graphic Rendition": the sequences that set colours and weights.

use anstyle::{Ansi256Color, AnsiColor, Color, Effects, RgbColor, Style};
use anstyle_parse::Params;

/// The style after a sequence. Unknown parameters are ignored.
///
/// Concealed text is shown, because logs must not hide text.
pub(super) fn select(before: Style, params: &Params) -> Style {
    let mut style = before;
    let mut groups = params.iter();
    while let Some(group) = groups.next() {
        let Some((&code, details)) = group.split_first() else {
            continue;
        };
        let with = |effect: Effects| style.effects(style.get_effects().insert(effect));
        let without = |effect: Effects| style.effects(style.get_effects().remove(effect));
        style = match code {
            0 => Style::new(),
            1 => with(Effects::BOLD),
            2 => with(Effects::DIMMED),
            3 => with(Effects::ITALIC),
            4 if details == [0] => without(UNDERLINES),
            4 => with(Effects::UNDERLINE),
            5 | 6 => with(Effects::BLINK),
            7 => with(Effects::INVERT),
            9 => with(Effects::STRIKETHROUGH),
            21 => with(Effects::DOUBLE_UNDERLINE),
            22 => without(Effects::BOLD.insert(Effects::DIMMED)),
            23 => without(Effects::ITALIC),
            24 => without(UNDERLINES),
            25 => without(Effects::BLINK),
            27 => without(Effects::INVERT),
            29 => without(Effects::STRIKETHROUGH),
            39 => style.fg_color(None),
            49 => style.bg_color(None),
            59 => style.underline_color(None),
            30..=37 | 90..=97 => style.fg_color(basic(code)),
            40..=47 | 100..=107 => style.bg_color(basic(code - 10)),
            38 | 48 | 58 => {
                let color = match details {
                    // The common notation: 38;5;N or 38;2;R;G;B.
                    [] => extended(|| groups.next().and_then(|group| group.first().copied())),
                    _ => with_colons(details),
                };
                match (color, code) {
                    (None, _) => style,
                    (color, 38) => style.fg_color(color),
                    (color, 48) => style.bg_color(color),
                    (color, _) => style.underline_color(color),
                }
            }
            _ => style,
        };
    }
    style
}

const UNDERLINES: Effects = Effects::UNDERLINE.insert(Effects::DOUBLE_UNDERLINE);

/// The colour of 30 to 37, or of 90 to 97.
fn basic(code: u16) -> Option<Color> {
    const COLORS: [AnsiColor; 8] = [
        AnsiColor::Black,
        AnsiColor::Red,
        AnsiColor::Green,
        AnsiColor::Yellow,
        AnsiColor::Blue,
        AnsiColor::Magenta,
        AnsiColor::Cyan,
        AnsiColor::White,
    ];
    let color = COLORS.get(usize::from(code % 10))?;
    Some(Color::Ansi(color.bright(code >= 90)))
}

/// A colour of the palette, or of three parts.
fn extended(mut next: impl FnMut() -> Option<u16>) -> Option<Color> {
    let mut part = || next().and_then(|value| u8::try_from(value).ok());
    match part()? {
        5 => Some(Color::Ansi256(Ansi256Color(part()?))),
        2 => Some(Color::Rgb(RgbColor(part()?, part()?, part()?))),
        _ => None,
    }
}

/// The colour in the notation of ISO 8613-6: `38:5:N`, `38:2:R:G:B`, or with the identifier of a
/// colour space, `38:2:ID:R:G:B`.
fn with_colons(details: &[u16]) -> Option<Color> {
    let parts: Vec<u16> = match details {
        [2, _, red, green, blue, ..] => vec![2, *red, *green, *blue],
        other => other.to_vec(),
    };
    let mut parts = parts.into_iter();
    extended(|| parts.next())
}
