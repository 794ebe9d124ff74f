//! Recordings of requests, in files that are not trusted: the parser never panics, and any prefix
//! of complete lines of a valid recording is a valid recording.

use longshore_recording::{FormatError, Recording};

/// The maximum number of beginnings of a recording that are checked.
const MAX_BEGINNINGS: usize = 32;

pub fn check(data: &[u8]) {
    let whole = match Recording::parse(data) {
        Ok(whole) => whole,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let lines = data.iter().filter(|byte| **byte == b'\n').count();
    let requests: Vec<String> = whole.requests().collect();
    assert!(requests.len() < lines, "{requests:?}");
    assert_eq!(whole.is_cut(), !data.ends_with(b"\n"));
    let mut before = 0;
    for end in (0..data.len()).take(MAX_BEGINNINGS * 64) {
        let beginning = Recording::parse(&data[..end]);
        match beginning {
            Ok(beginning) => {
                let count = beginning.requests().count();
                assert!(before <= count && count <= requests.len());
                before = count;
            }
            // The file ends within the first line.
            Err(FormatError::Empty | FormatError::NotARecording) => assert_eq!(before, 0),
            Err(error) => panic!("{error}"),
        }
    }
}
