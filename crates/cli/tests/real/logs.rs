//! Logs through the files that the kubelet rotates.

use std::io::{BufRead as _, BufReader};

use crate::{
    machine::Running,
    stage::{Stage, said},
};

/// Enough for many of the kubelet's files.
const LINES: u64 = 10_000_000;
/// Each has its number, in ten digits, and zeros.
const LENGTH: usize = 99;

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn every_line_comes_or_is_counted_as_lost() {
    let stage = Stage::new();
    let zeros = LENGTH - 10;
    let script = format!("seq -f \"%010.0f$(printf '%0{zeros}d' 0)\" {LINES}");
    let mut followed = Running::start(stage.run_command(&["--", "sh", "-c", &script]));
    let (mut seen, mut last, mut gaps) = (0, 0, 0);
    // Whether a gap was reported since the last line, and what of the lines one must explain.
    let (mut is_reported, mut owed) = (false, None);
    for line in BufReader::new(followed.output()).lines() {
        let line = line.unwrap();
        let text = line.strip_prefix("main/0 | ").unwrap();
        if text.starts_with("longshore: lines ") {
            (is_reported, owed, gaps) = (true, None, gaps + 1);
            continue;
        }
        // containerd may end a file within a line: half of it was in the missing file.
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
    // What is missing is missing where that is said, and nowhere else.
    assert_eq!(owed, None);
    let answer = followed.end().expect(0);
    // The last file may be empty: then that is said, too.
    assert!(last == LINES || is_reported, "{last}: {}", answer.err);
    assert_eq!(gaps > 0, answer.err.contains("gap"), "{}", answer.err);
    println!("{seen} of {LINES} lines, {gaps} gaps");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_line_without_an_end_comes_before_the_line_is_complete() {
    let stage = Stage::new();
    let answer = stage.run(&[
        "--",
        "sh",
        "-c",
        "printf half; sleep 2; echo ' whole'; printf end",
    ]);
    assert_eq!(said(&answer.expect(0)), "half whole\nend\n");
}
