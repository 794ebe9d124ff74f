//! Writes the lines of a recording, each in one piece, so that a killed recorder leaves a valid
//! file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

use crate::{
    content::Content,
    error::{Error, file},
    line::{End, Head, HeaderLine, Line, ResponseBody, VERSION},
    recording::MAX_FILE_BYTES,
    request::Request,
};

/// The first bytes of every recording.
const BEGINNING: &[u8] = b"{\"recording\":";

/// The file of a recording.
#[derive(Debug)]
pub(super) struct Sink {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    size: u64,
    omitted: u64,
    /// The reason why further lines are not written.
    incomplete: Option<String>,
    is_finished: bool,
}

impl Sink {
    /// Creates the file, with mode 0600, and writes its first line.
    pub(super) fn create(path: &Path, namespace: &str) -> Result<Self, Error> {
        match is_recording(path) {
            // Not truncated but created again, to get the mode of a new file.
            Ok(Some(true)) => fs::remove_file(path).map_err(file(path))?,
            Ok(Some(false)) => return Err(Error::Foreign(path.to_owned())),
            Ok(None) => {}
            Err(error) => return Err(file(path)(error)),
        }
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).mode(0o600).open(path);
        let sink = Self {
            state: Mutex::new(State {
                file: created.map_err(file(path))?,
                size: 0,
                omitted: 0,
                incomplete: None,
                is_finished: false,
            }),
        };
        let header = HeaderLine {
            recording: VERSION,
            namespace: namespace.to_owned(),
        };
        let mut state = sink.state();
        state.write(&header);
        match state.incomplete.take() {
            Some(problem) => Err(file(path)(io::Error::other(problem))),
            None => {
                drop(state);
                Ok(sink)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a request with its response.
    pub(super) fn exchange(&self, id: u64, request: &Request, head: &Head, body: ResponseBody) {
        let contents = [
            request.body.as_ref(),
            match &body {
                ResponseBody::Whole(content) => content.as_ref(),
                ResponseBody::Stream => None,
            },
        ];
        let omitted = contents
            .into_iter()
            .flatten()
            .filter(|content| is_omitted(content));
        let omitted = u64::try_from(omitted.count()).unwrap_or(u64::MAX);
        let line = Line::exchange(id, request, head, body);
        let mut state = self.state();
        state.omitted = state.omitted.saturating_add(omitted);
        state.write(&line);
    }

    /// Writes a part of a stream.
    pub(super) fn sent(&self, id: u64, after: u64, content: Content) {
        let omitted = u64::from(is_omitted(&content));
        let line = Line::sent(id, after, content);
        let mut state = self.state();
        state.omitted = state.omitted.saturating_add(omitted);
        state.write(&line);
    }

    /// Writes the end of a stream.
    pub(super) fn end(&self, id: u64, after: u64, end: End) {
        self.state().write(&Line::end(id, after, end));
    }

    /// Ends the file. Returns the number of omitted contents, and the reason why the file is
    /// incomplete.
    pub(super) fn finish(&self) -> (u64, Option<String>) {
        let mut state = self.state();
        state.is_finished = true;
        (state.omitted, state.incomplete.clone())
    }
}

fn is_omitted(content: &Content) -> bool {
    matches!(content, Content::Omitted(_))
}

impl State {
    fn write(&mut self, line: &impl Serialize) {
        if self.is_finished || self.incomplete.is_some() {
            return;
        }
        let mut text = match serde_json::to_vec(line) {
            Ok(text) => text,
            Err(error) => {
                self.incomplete = Some(error.to_string());
                return;
            }
        };
        text.push(b'\n');
        let size = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let size = self.size.saturating_add(size);
        if size > MAX_FILE_BYTES {
            self.incomplete = Some(format!("the file has reached {MAX_FILE_BYTES} bytes"));
            return;
        }
        match self.file.write_all(&text) {
            Ok(()) => self.size = size,
            Err(error) => self.incomplete = Some(error.to_string()),
        }
    }
}

/// Returns true if a file is a recording or empty; `None` if it does not exist.
fn is_recording(path: &Path) -> io::Result<Option<bool>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Ok(Some(false));
    }
    let limit = u64::try_from(BEGINNING.len()).unwrap_or(u64::MAX);
    let mut beginning = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut beginning)?;
    Ok(Some(beginning.is_empty() || beginning == BEGINNING))
}
