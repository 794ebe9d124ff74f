//! Tests of text for terminals.

use proptest::prelude::*;

use super::*;

#[test]
fn a_line_is_shown_in_its_final_state() {
    for (written, expected) in [
        ("plain \u{e9}\ttext", "plain \u{e9}\ttext"),
        ("  0%\r 50%\r100%", "100%"),
        ("abcdef\rxy", "xycdef"),
        ("line of another system\r", "line of another system"),
        ("loss 0.9\rloss 0.1\x1b[K", "loss 0.1"),
        ("a long first state\r\x1b[Kshort", "short"),
        ("a long first state\x1b[2K\rshort", "short"),
        ("1/9\x08\x08\x082/9", "2/9"),
        ("ab\x1b[2Dxy", "xy"),
        ("ab\x1b[1Gxy\x1b[5Gz", "xy  z"),
        ("abc\x1b[3D\x1b[2Xde", "dec"),
        ("\u{65e5}\u{672c}\rx", "x \u{672c}"),
        ("e\u{301}a\rb", "ba"),
        ("cafe\u{301}\x1b[31m!", "cafe\u{301}\x1b[31m!\x1b[0m"),
    ] {
        assert_eq!(shown(written), expected, "{written:?}");
    }
}

#[test]
fn control_sequences_are_removed() {
    for (written, expected) in [
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x1b[3J\x1b[?1049hother screen", "other screen"),
        ("up\x1b[A\x1b[Bdown", "updown"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]2;a title\x1b\\text", "text"),
        ("\x1b]52;c;ZXZpbA==\x07text", "text"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
        ("\x1b_Gf=100\x1b\\picture", "picture"),
        ("\x07\x07bell", "bell"),
        ("\x1bcreset", "reset"),
        ("\x1b[6nwhere", "where"),
        ("\x1b[5iprint", "print"),
        ("\x1b(0lqk", "lqk"),
        ("\x0e\x0b\x0cshift", "shift"),
        // The same sequences with C1 control characters, which some terminals interpret.
        ("\u{9b}2Jcleared", "2Jcleared"),
        ("\u{9d}0;title\u{9c}", "0;title"),
        ("\u{85}next", "next"),
        // Truncated by the end of the line.
        ("end\x1b", "end"),
        ("end\x1b[", "end"),
        ("end\x1b[31", "end"),
        ("end\x1b]0;title", "end"),
        ("two\nlines", "two lines"),
    ] {
        assert_eq!(shown(written), expected, "{written:?}");
    }
}

#[test]
fn colours_are_kept_and_end_with_the_line() {
    for (written, expected) in [
        ("\x1b[31mred", "\x1b[31mred\x1b[0m"),
        ("\x1b[1;32mok\x1b[0m done", "\x1b[1m\x1b[32mok\x1b[0m done"),
        ("\x1b[38;5;208mx", "\x1b[38;5;208mx\x1b[0m"),
        ("\x1b[38;2;1;2;3mx", "\x1b[38;2;1;2;3mx\x1b[0m"),
        ("\x1b[38:2::1:2:3mx", "\x1b[38;2;1;2;3mx\x1b[0m"),
        ("\x1b[97;41mx", "\x1b[97m\x1b[41mx\x1b[0m"),
        ("\x1b[8mhidden", "hidden"),
        ("\x1b[31m10%\r\x1b[32m20%", "\x1b[32m20%\x1b[0m"),
        ("\x1b[31m\x1b[39mplain", "plain"),
        ("\x1b[38;5mx", "x"),
        ("\x1b[999;31mx", "\x1b[31mx\x1b[0m"),
    ] {
        assert_eq!(shown(written), expected, "{written:?}");
    }
}

#[test]
fn cursor_movements_do_not_extend_a_line_without_bound() {
    let far = "\x1b[65535Cx".repeat(1000);
    assert!(shown(&far).len() < 10_000);
    let many = format!("a{}", "\u{301}".repeat(1000));
    assert!(shown(&format!("{many}\x07")).len() < 100);
}

#[test]
fn a_line_is_truncated_to_the_terminal() {
    assert_eq!(current("\x1b[31m12345678", 4), "1234");
    assert_eq!(current("\u{65e5}\u{672c}\u{8a9e}", 5), "\u{65e5}\u{672c}");
    assert_eq!(current("a\tb", 3), "a b");
}

#[test]
fn control_characters_of_objects_are_escaped() {
    assert_eq!(
        escaped("a\x1b]0;t\x07\nb\x7f\0"),
        "a^[]0;t^G\nb^?^@",
        "caret notation"
    );
    assert_eq!(escaped("\u{9d}52;c;x\u{9c}"), "\\u{9d}52;c;x\\u{9c}");
}

/// Texts in which control characters and sequences are frequent.
fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-z0-9;:?m ]{0,8}",
        2 => Just("\x1b[".to_owned()),
        1 => Just("\x1b]".to_owned()),
        1 => Just("\r".to_owned()),
        2 => any::<char>().prop_map(String::from),
        2 => (0_u8..0xa0).prop_map(|byte| char::from(byte).to_string()),
        1 => (0_u16..120, prop::sample::select(vec!['m', 'K', 'C', 'D', 'G', 'X', 'H', 'J']))
            .prop_map(|(number, action)| format!("\x1b[{number}{action}")),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_but_text_and_colours_comes_out(text in nasty()) {
        for line in text.split('\n') {
            let out = shown(line).into_owned();
            prop_assert!(is_safe(&out), "{line:?} became {out:?}");
            // Safe text is unchanged.
            prop_assert_eq!(shown(&out).into_owned(), out.clone());
            prop_assert!(!current(line, 20).chars().any(char::is_control));
        }
        prop_assert!(lines(&text).split('\n').all(is_safe));
        let visible = escaped(&text).into_owned();
        prop_assert!(!visible.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }

    #[test]
    fn printable_text_is_left_alone(text in "[ -~\u{a0}-\u{ff}\t]{0,40}") {
        prop_assert_eq!(shown(&text).into_owned(), text.clone());
    }
}

proptest! {
    #[test]
    fn a_stream_passes_the_same_however_it_is_cut(text in nasty(), size in 1_usize..9) {
        let whole = Stream::default().pass(text.as_bytes());
        let mut stream = Stream::default();
        let mut pieces = String::new();
        for piece in text.as_bytes().chunks(size) {
            pieces += &stream.pass(piece);
        }
        prop_assert_eq!(&whole, &pieces);
        pieces += &stream.end();
        let rest = pieces.replace(['\r', '\u{8}'], "");
        let rest = ["\x1b[K", "\x1b[1K", "\x1b[2K"].iter().fold(rest, |text, erase| text.replace(erase, ""));
        prop_assert!(rest.split('\n').all(|line| is_safe(&format!("{line}\x1b[0m"))), "{rest:?}");
    }
}

/// Returns true if the text consists of printable characters and colours that are reset at the end.
fn is_safe(line: &str) -> bool {
    let mut rest = line;
    let mut open = false;
    while let Some((before, after)) = rest.split_once('\x1b') {
        let Some((numbers, behind)) = after.strip_prefix('[').and_then(|it| it.split_once('m'))
        else {
            return false;
        };
        let digits = numbers.chars().all(|c| c.is_ascii_digit() || c == ';');
        if !digits || before.chars().any(|c| c.is_control() && c != '\t') {
            return false;
        }
        open = numbers != "0";
        rest = behind;
    }
    !open && !rest.chars().any(|c| c.is_control() && c != '\t')
}
