//! Reads a recording. The text is not trusted: time and memory are bounded by its length, which
//! is limited.

use std::{collections::HashMap, path::Path};

use crate::{
    content::Content,
    error::{Error, FormatError, file},
    line::{End, Head, HeaderLine, Line, ResponseBody, VERSION},
    request::Request,
};

/// The maximum size of a file, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;
/// The maximum number of lines.
const MAX_LINES: u64 = 1_000_000;

/// A recording in memory.
#[derive(Debug)]
pub struct Recording {
    pub(crate) namespace: String,
    /// In the order in which the requests arrived.
    pub(crate) exchanges: Vec<Exchange>,
    is_cut: bool,
}

/// A recorded request with its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) id: u64,
    pub(crate) request: Request,
    pub(crate) head: Head,
    pub(crate) answer: Answer,
}

/// The body of a recorded response.
#[derive(Debug)]
pub(crate) enum Answer {
    Whole(Option<Content>),
    Stream(Stream),
}

/// A recorded stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Each part with its time in milliseconds since the response began.
    pub(crate) parts: Vec<(u64, Content)>,
    /// The time of the end and the side that ended the stream; `None` if the recorder ended first.
    pub(crate) end: Option<(u64, End)>,
}

impl Exchange {
    /// Returns the reason why the response cannot be replayed.
    pub(crate) fn omission(&self) -> Option<&str> {
        let parts = match &self.answer {
            Answer::Whole(content) => content.as_slice(),
            Answer::Stream(stream) => {
                let mut contents = stream.parts.iter().map(|(_, content)| content);
                return contents.find_map(omission);
            }
        };
        parts.iter().find_map(omission)
    }
}

fn omission(content: &Content) -> Option<&str> {
    match content {
        Content::Omitted(reason) => Some(reason),
        _ => None,
    }
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be read, [`Error::Invalid`] with the number of the line.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = longshore_files::read_limited(path, MAX_FILE_BYTES).map_err(file(path))?;
        Self::parse(&text).map_err(|problem| Error::Invalid {
            path: path.to_owned(),
            problem,
        })
    }

    /// Reads the text of a recording. A last line without its end, which a killed recorder
    /// leaves, is ignored.
    ///
    /// # Errors
    /// [`FormatError`] names the line.
    ///
    /// ```
    /// use longshore_recording::Recording;
    /// let text = b"{\"recording\":1,\"namespace\":\"default\"}\n\
    ///     {\"id\":1,\"request\":{\"method\":\"GET\",\"path\":\"/version\"},\
    ///     \"response\":{\"status\":200,\"body\":{\"json\":{\"major\":\"1\"}}}}\n";
    /// let recording = Recording::parse(text)?;
    /// assert_eq!(recording.requests().collect::<Vec<_>>(), ["GET /version"]);
    /// # Ok::<(), longshore_recording::FormatError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let too_large = |limit, unit| FormatError::TooLarge { limit, unit };
        if u64::try_from(text.len()).map_or(true, |length| length > MAX_FILE_BYTES) {
            return Err(too_large(MAX_FILE_BYTES, "bytes"));
        }
        let complete = text.iter().rposition(|byte| *byte == b'\n');
        let complete = complete
            .and_then(|end| text.get(..=end))
            .unwrap_or_default();
        let mut lines = complete.split_inclusive(|byte| *byte == b'\n').enumerate();
        let first = match lines.next() {
            Some((_, line)) => line,
            None if text.is_empty() => return Err(FormatError::Empty),
            None => return Err(FormatError::NotARecording),
        };
        let namespace = header(first)?;
        let mut reader = Reader::default();
        for (index, line) in lines {
            if u64::try_from(index).map_or(true, |index| index > MAX_LINES) {
                return Err(too_large(MAX_LINES, "lines"));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            reader.add(line).map_err(|problem| FormatError::Line {
                line: index.saturating_add(1),
                problem,
            })?;
        }
        let mut exchanges = reader.exchanges;
        // Responses are recorded when they end.
        exchanges.sort_by_key(|exchange| exchange.id);
        Ok(Self {
            namespace,
            exchanges,
            is_cut: complete.len() < text.len(),
        })
    }

    /// The methods, paths and queries of the recorded requests, in the order in which they
    /// arrived.
    pub fn requests(&self) -> impl Iterator<Item = String> {
        self.exchanges
            .iter()
            .map(|exchange| exchange.request.name())
    }

    /// Returns true if the last line is incomplete, because the recorder was killed.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// The namespace in the first line.
fn header(line: &[u8]) -> Result<String, FormatError> {
    /// Only the version, which later formats also have.
    #[derive(serde::Deserialize)]
    struct AnyHeader {
        recording: u64,
    }
    let any: AnyHeader = serde_json::from_slice(line).map_err(|_| FormatError::NotARecording)?;
    if any.recording != VERSION {
        return Err(FormatError::Version(any.recording));
    }
    let header: HeaderLine = serde_json::from_slice(line).map_err(|error| FormatError::Line {
        line: 1,
        problem: without_position(&error),
    })?;
    Ok(header.namespace)
}

/// The message of an error without the position in the line, which has its own number.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((text, _)) => format!("{text} (column {})", error.column()),
        None => text,
    }
}

#[derive(Default)]
struct Reader {
    exchanges: Vec<Exchange>,
    /// The positions of exchanges by their number.
    positions: HashMap<u64, usize>,
}

impl Reader {
    /// Adds a line; the error is the problem.
    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| without_position(&error))?;
        let id = line.id;
        match line {
            Line {
                request: Some(request),
                response: Some(response),
                after: None,
                sent: None,
                end: None,
                ..
            } => {
                let request = request.into_request()?;
                let (head, body) = response.into_response()?;
                let answer = match body {
                    ResponseBody::Whole(content) => Answer::Whole(content),
                    ResponseBody::Stream => Answer::Stream(Stream::default()),
                };
                if self.positions.insert(id, self.exchanges.len()).is_some() {
                    return Err(format!("the request {id} is recorded twice"));
                }
                self.exchanges.push(Exchange {
                    id,
                    request,
                    head,
                    answer,
                });
                Ok(())
            }
            Line {
                request: None,
                response: None,
                after: Some(after),
                sent,
                end,
                ..
            } => self.add_part(id, after, (sent, end)),
            _ => Err("expected request and response, or after with sent or end".to_owned()),
        }
    }

    fn add_part(
        &mut self,
        id: u64,
        after: u64,
        part: (Option<crate::content::ContentFields>, Option<End>),
    ) -> Result<(), String> {
        let exchange = self.positions.get(&id);
        let exchange = exchange.and_then(|position| self.exchanges.get_mut(*position));
        let Some(Exchange {
            answer: Answer::Stream(stream),
            ..
        }) = exchange
        else {
            return Err(format!("no earlier line begins the stream {id}"));
        };
        if stream.end.is_some() {
            return Err(format!("the stream {id} has ended in an earlier line"));
        }
        let before = stream.parts.last().map_or(0, |(after, _)| *after);
        if after < before {
            return Err(format!(
                "the time {after} is before that of the line before"
            ));
        }
        match part {
            (Some(sent), None) => {
                let content = sent.into_content()?.ok_or("sent is empty")?;
                stream.parts.push((after, content));
            }
            (None, Some(end)) => stream.end = Some((after, end)),
            _ => return Err("expected either sent or end".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = r#"{"recording":1,"namespace":"default"}"#;
    const WATCH: &str = r#"{"id":1,"request":{"method":"GET","path":"/api/v1/pods","query":["watch=true"]},"response":{"status":200,"stream":true}}"#;

    fn parse(lines: &[&str]) -> Result<Recording, FormatError> {
        Recording::parse(format!("{}\n", lines.join("\n")).as_bytes())
    }

    #[test]
    fn an_incomplete_last_line_is_ignored() {
        let text = format!("{HEADER}\n{WATCH}\n{{\"id\":1,\"af");
        let recording = Recording::parse(text.as_bytes()).unwrap();
        assert!(recording.is_cut());
        assert_eq!(
            recording.requests().collect::<Vec<_>>(),
            ["GET /api/v1/pods?watch=true"]
        );
        assert!(!parse(&[HEADER, WATCH]).unwrap().is_cut());
    }

    #[test]
    fn other_files_are_rejected_with_the_reason() {
        assert_eq!(Recording::parse(b"").unwrap_err(), FormatError::Empty);
        let not_a_recording = [&b"{}"[..], b"\n", b"apiVersion: v1\n", b"{}\n"];
        for text in not_a_recording {
            let error = Recording::parse(text).unwrap_err();
            assert_eq!(error, FormatError::NotARecording, "{text:?}");
        }
        let later = r#"{"recording":2,"other":true}"#;
        assert_eq!(parse(&[later]).unwrap_err(), FormatError::Version(2));
    }

    #[test]
    fn a_problem_names_its_line() {
        let exchange = |request: &str, response: &str| {
            format!(r#"{{"id":1,"request":{request},"response":{response}}}"#)
        };
        let get = r#"{"method":"GET","path":"/"}"#;
        let ok = r#"{"status":200}"#;
        for (line, problem) in [
            ("x".to_owned(), "expected value"),
            (r#"{"id":1}"#.into(), "expected request and response"),
            (r#"{"id":1,"sort":1}"#.into(), "unknown field `sort`"),
            (
                exchange(r#"{"method":"G T","path":"/"}"#, ok),
                "the method \"G T\" is not valid",
            ),
            (
                exchange(r#"{"method":"GET","path":"x"}"#, ok),
                "does not begin with /",
            ),
            (
                exchange(get, r#"{"status":99}"#),
                "the status 99 is not valid",
            ),
            (
                exchange(get, r#"{"status":200,"headers":{"set-cookie":"a"}}"#),
                "the header \"set-cookie\"",
            ),
            (
                exchange(get, r#"{"status":200,"headers":{"warning":"a\nb"}}"#),
                "the header warning is not valid",
            ),
            (
                exchange(get, r#"{"status":200,"body":{"base64":"?"}}"#),
                "base64 is not valid",
            ),
            (
                exchange(get, r#"{"status":200,"body":{"text":"a","json":1}}"#),
                "at most one of",
            ),
            (
                r#"{"id":7,"after":1,"end":"server"}"#.into(),
                "no earlier line begins the stream 7",
            ),
        ] {
            let error = parse(&[HEADER, &line]).unwrap_err().to_string();
            assert!(
                error.starts_with("line 2: ") && error.contains(problem),
                "{line}: {error}"
            );
        }
        let error = parse(&[HEADER, WATCH, WATCH]).unwrap_err().to_string();
        assert_eq!(error, "line 3: the request 1 is recorded twice");
        let end = r#"{"id":1,"after":5,"end":"client"}"#;
        let error = parse(&[HEADER, WATCH, end, end]).unwrap_err().to_string();
        assert_eq!(error, "line 4: the stream 1 has ended in an earlier line");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn changed_files_cause_no_panic(at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
            let sent = r#"{"id":1,"after":5,"sent":{"json":{"type":"ADDED","object":{}}}}"#;
            let mut text = format!("{HEADER}\n{WATCH}\n{sent}\n").into_bytes();
            let length = text.len();
            text[at.index(length)] = byte;
            let _ = Recording::parse(&text);
            text.truncate(cut.index(length));
            let _ = Recording::parse(&text);
        }
    }
}
