//! Logs while the kubelet rotates their files.

use std::io::{BufRead as _, BufReader};

use crate::{
    machine::Running,
    stage::{Stage, said},
};

/// Enough lines for many of the kubelet's files.
const LINES: u64 = 10_000_000;
/// Each line has its number, in ten digits, and zeros.
const LENGTH: usize = 99;

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn every_line_arrives_or_is_counted_as_lost() {
    let stage = Stage::new();
    let zeros = LENGTH - 10;
    let script = format!("seq -f \"%010.0f$(printf '%0{zeros}d' 0)\" {LINES}");
    let mut followed = Running::start(stage.run_command(&["--", "sh", "-c", &script]));
    let (mut seen, mut last, mut gaps) = (0, 0, 0);
    // True if a gap was reported since the last line, and the numbers that a gap still has to
    // account for.
    let (mut is_reported, mut owed) = (false, None);
    for line in BufReader::new(followed.output()).lines() {
        let line = line.unwrap();
        let text = line.strip_prefix("main/0 | ").unwrap();
        if text.starts_with("longshore: lines ") {
            (is_reported, owed, gaps) = (true, None, gaps + 1);
            continue;
        }
        // containerd may rotate within a line: the first part of this one was in the
        // missing file.
        let number = (text.len() == LENGTH).then(|| text[..10].parse::<u64>().unwrap());
        let follows = number == Some(last + 1);
        if !is_reported && !follows && owed.is_none() {
            owed = Some(format!("after {last}: {text:?}"));
        }
        if let Some(number) = number {
            assert!(number > last, "{number} after {last}");
            (seen, last, is_reported) = (seen + 1, number, false);
        }
    }
    // Lines are missing where a gap is reported, and nowhere else.
    assert_eq!(owed, None);
    let answer = followed.end().expect(0);
    // The last file may be empty: then a gap is reported as well.
    assert!(last == LINES || is_reported, "{last}: {}", answer.err);
    assert_eq!(gaps > 0, answer.err.contains("gap"), "{}", answer.err);
    println!("{seen} of {LINES} lines, {gaps} gaps");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_incomplete_line_arrives_before_its_newline() {
    let stage = Stage::new();
    let answer = stage.run(&[
        "--",
        "sh",
        "-c",
        "printf half; sleep 2; echo ' whole'; printf end",
    ]);
    assert_eq!(said(&answer.expect(0)), "half whole\nend\n");
}
