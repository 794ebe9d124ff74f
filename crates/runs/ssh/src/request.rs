//! The program and the environment of a session, encoded for a program in the container. The
//! program writes [`HELLO`] with its process id, and then reads the request from its standard
//! input. Commands and variables are not among its arguments, because other users can read those.

use std::io::{self, Read};

use crate::wire::{Fields, Malformed, Put as _};

/// The begin of the line that the program in the container writes when it can read a request. The
/// number is the version of the encoding.
pub const HELLO: &str = "longshore-ssh 1 ";

/// The maximum length of an encoded request in bytes.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

/// The program that a session executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// An interactive shell.
    Shell,
    /// A command line for a shell.
    Command(Vec<u8>),
    /// The server of the protocol for files.
    Sftp,
}

/// The terminal of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terminal {
    /// The value of `TERM`.
    pub name: Vec<u8>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Width and height in pixels; 0 if unknown.
    pub pixels: (u16, u16),
    /// The modes, as in RFC 4254, section 8.
    pub modes: Vec<(u8, u32)>,
}

/// The program and the environment of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The program.
    pub program: Program,
    /// Variables that the client sets.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
    /// The terminal, if the client requests one.
    pub terminal: Option<Terminal>,
}

/// The line that a program writes when it can read a request.
#[must_use]
pub fn hello(process: u32) -> String {
    format!("{HELLO}{process}\n")
}

/// The process id in the line of a program, or `None` for any other text.
#[must_use]
pub fn process_of(line: &[u8]) -> Option<u32> {
    let line = std::str::from_utf8(line).ok()?;
    line.strip_prefix(HELLO)?.trim_end().parse().ok()
}

impl Request {
    /// The encoding, with its length.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match &self.program {
            Program::Shell => body.put_byte(0),
            Program::Command(command) => {
                body.put_byte(1);
                body.put_string(command);
            }
            Program::Sftp => body.put_byte(2),
        }
        body.put_number(u32::try_from(self.variables.len()).unwrap_or(u32::MAX));
        for (name, value) in &self.variables {
            body.put_string(name);
            body.put_string(value);
        }
        body.put_boolean(self.terminal.is_some());
        if let Some(terminal) = &self.terminal {
            body.put_string(&terminal.name);
            let (columns, rows) = terminal.size;
            let (width, height) = terminal.pixels;
            for length in [columns, rows, width, height] {
                body.put_number(length.into());
            }
            body.put_number(u32::try_from(terminal.modes.len()).unwrap_or(u32::MAX));
            for (mode, value) in &terminal.modes {
                body.put_byte(*mode);
                body.put_number(*value);
            }
        }
        let mut encoded = Vec::with_capacity(body.len().saturating_add(4));
        encoded.put_string(&body);
        encoded
    }

    /// Reads a request, and no byte after it.
    ///
    /// # Errors
    /// Errors of the stream. Also if the request is malformed or too long.
    pub fn read(mut input: impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_REQUEST_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the request is too long",
            ));
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        Self::decode(&body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        let program = match fields.byte()? {
            0 => Program::Shell,
            1 => Program::Command(fields.string()?.to_vec()),
            2 => Program::Sftp,
            _ => return Err(Malformed),
        };
        let mut variables = Vec::new();
        for _ in 0..fields.number()? {
            variables.push((fields.string()?.to_vec(), fields.string()?.to_vec()));
        }
        let terminal = match fields.boolean()? {
            true => Some(decode_terminal(&mut fields)?),
            false => None,
        };
        if !fields.is_empty() {
            return Err(Malformed);
        }
        Ok(Self {
            program,
            variables,
            terminal,
        })
    }
}

fn decode_terminal(fields: &mut Fields<'_>) -> Result<Terminal, Malformed> {
    let name = fields.string()?.to_vec();
    let mut length = || u16::try_from(fields.number()?).map_err(|_| Malformed);
    let size = (length()?, length()?);
    let pixels = (length()?, length()?);
    let mut modes = Vec::new();
    for _ in 0..fields.number()? {
        modes.push((fields.byte()?, fields.number()?));
    }
    Ok(Terminal {
        name,
        size,
        pixels,
        modes,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn requests() -> impl Strategy<Value = Request> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..20);
        let program = prop_oneof![
            Just(Program::Shell),
            Just(Program::Sftp),
            bytes().prop_map(Program::Command)
        ];
        let modes = prop::collection::vec(any::<(u8, u32)>(), 0..4);
        let terminal = (bytes(), any::<(u16, u16)>(), any::<(u16, u16)>(), modes);
        let terminal = terminal.prop_map(|(name, size, pixels, modes)| Terminal {
            name,
            size,
            pixels,
            modes,
        });
        let variables = prop::collection::vec((bytes(), bytes()), 0..4);
        (program, variables, prop::option::of(terminal)).prop_map(
            |(program, variables, terminal)| Request {
                program,
                variables,
                terminal,
            },
        )
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_written_and_nothing_after_it(request in requests()) {
            let mut encoded = request.encode();
            encoded.extend_from_slice(b"rest");
            let mut input = &encoded[..];
            prop_assert_eq!(Request::read(&mut input).unwrap(), request);
            prop_assert_eq!(input, b"rest");
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::read(&bytes[..]);
            let _ = Request::decode(&bytes);
        }
    }

    #[test]
    fn the_line_of_a_program_has_its_process() {
        assert_eq!(process_of(hello(17).as_bytes()), Some(17));
        for text in ["", "longshore-ssh 2 17\n", "error: unrecognized subcommand"] {
            assert_eq!(process_of(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_request_that_is_too_long_is_refused_before_it_is_read() {
        let error = Request::read(&[0xff; 8][..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
