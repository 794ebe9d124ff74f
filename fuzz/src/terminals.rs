//! Output of tasks: only printable text and colours reach the user's terminal, regardless
//! of how the output is split. Filtering the result again changes nothing.

use longshore_launcher::terminal_text::{Stream, current, escaped, lines, shown};

pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.split('\n') {
        let out = shown(line);
        assert!(is_safe(&out), "{out:?}");
        assert_eq!(shown(&out), out);
        assert!(!current(line, 80).chars().any(char::is_control));
    }
    assert!(lines(&text).split('\n').all(is_safe));
    let visible = escaped(&text);
    assert!(
        !visible
            .chars()
            .any(|c| c.is_control() && !"\n\t".contains(c))
    );

    let whole = Stream::default().pass(data);
    let mut stream = Stream::default();
    let mut pieces = String::new();
    for piece in data.chunks(3) {
        pieces += &stream.pass(piece);
    }
    assert_eq!(whole, pieces);
    pieces += &stream.end();
    let erased = ["\x1b[K", "\x1b[1K", "\x1b[2K", "\r", "\u{8}"];
    let rest = erased
        .iter()
        .fold(pieces, |text, erase| text.replace(erase, ""));
    assert!(
        rest.split('\n')
            .all(|line| is_safe(&format!("{line}\x1b[0m"))),
        "{rest:?}"
    );
}

/// Returns true if a line has only printable text and colours, and resets the colours at its end.
fn is_safe(line: &str) -> bool {
    let mut rest = line;
    let mut open = false;
    while let Some((before, after)) = rest.split_once('\x1b') {
        let Some((numbers, behind)) = after.strip_prefix('[').and_then(|it| it.split_once('m'))
        else {
            return false;
        };
        let digits = numbers
            .chars()
            .all(|c| c.is_ascii_digit() || ";:".contains(c));
        if !digits || before.chars().any(|c| c.is_control() && c != '\t') {
            return false;
        }
        open = numbers != "0";
        rest = behind;
    }
    !open && !rest.chars().any(|c| c.is_control() && c != '\t')
}
