//! The requests that prepare and start a session. Pure.

use super::session::Order;
use crate::{
    Program, Request, Terminal,
    wire::{Fields, Malformed},
};

/// The maximum length of all variables in bytes.
const MAX_VARIABLES: usize = 1 << 20;

/// A session that has not been started.
#[derive(Debug, Default)]
pub(super) struct Setup {
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    length: usize,
    terminal: Option<Terminal>,
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Set,
    Refused,
    Start(Request),
}

impl Setup {
    pub(super) fn ask(&mut self, name: &[u8], fields: Fields<'_>) -> Result<Asked, Malformed> {
        let mut fields = fields;
        let program = match name {
            b"env" => return self.set(fields.string()?, fields.string()?),
            b"pty-req" => {
                self.terminal = Some(terminal(fields)?);
                return Ok(Asked::Set);
            }
            // Before the session starts, this changes the size of the terminal in its settings.
            b"window-change" => {
                let size = (side(&mut fields)?, side(&mut fields)?);
                return Ok(match &mut self.terminal {
                    Some(terminal) => {
                        terminal.size = size;
                        Asked::Set
                    }
                    None => Asked::Refused,
                });
            }
            b"shell" => Program::Shell,
            b"exec" => Program::Command(fields.string()?.to_vec()),
            b"subsystem" if fields.string()? == b"sftp" => Program::Sftp,
            _ => return Ok(Asked::Refused),
        };
        let is_text = program != Program::Sftp;
        Ok(Asked::Start(Request {
            program,
            variables: std::mem::take(&mut self.variables),
            // Files are not transferred through a terminal.
            terminal: self.terminal.take().filter(|_| is_text),
        }))
    }

    fn set(&mut self, name: &[u8], value: &[u8]) -> Result<Asked, Malformed> {
        let length = self.length.saturating_add(name.len() + value.len() + 8);
        let is_valid = !name.is_empty() && !name.contains(&b'=') && length <= MAX_VARIABLES;
        if !is_valid || name.contains(&0) || value.contains(&0) {
            return Ok(Asked::Refused);
        }
        self.length = length;
        self.variables.push((name.to_vec(), value.to_vec()));
        Ok(Asked::Set)
    }
}

/// The order to a running session; `None` for other requests.
pub(super) fn order(name: &[u8], mut fields: Fields<'_>) -> Result<Option<Order>, Malformed> {
    Ok(match name {
        b"window-change" => Some(Order::Resize(side(&mut fields)?, side(&mut fields)?)),
        b"signal" => {
            let name = fields.text()?;
            let is_name = !name.is_empty()
                && name.len() <= 8
                && name
                    .bytes()
                    .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
            is_name.then(|| Order::Signal(name.to_owned()))
        }
        _ => None,
    })
}

/// A side of the terminal, limited to `u16::MAX`.
fn side(fields: &mut Fields<'_>) -> Result<u16, Malformed> {
    Ok(u16::try_from(fields.number()?).unwrap_or(u16::MAX))
}

fn terminal(mut fields: Fields<'_>) -> Result<Terminal, Malformed> {
    let name = fields.string()?.to_vec();
    let size = (side(&mut fields)?, side(&mut fields)?);
    let pixels = (side(&mut fields)?, side(&mut fields)?);
    let mut encoded = Fields::new(fields.string()?);
    let mut modes = Vec::new();
    // 0 ends the list. The length of a value is unknown for opcodes from 160 on.
    while let Ok(mode @ 1..160) = encoded.byte() {
        modes.push((mode, encoded.number()?));
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
    use crate::wire::Put as _;

    fn strings(texts: &[&str]) -> Vec<u8> {
        let mut message = Vec::new();
        for text in texts {
            message.put_string(text);
        }
        message
    }

    fn ask(setup: &mut Setup, name: &str, message: &[u8]) -> Asked {
        setup.ask(name.as_bytes(), Fields::new(message)).unwrap()
    }

    #[test]
    fn a_session_starts_with_its_variables_and_its_terminal() {
        let mut setup = Setup::default();
        assert_eq!(ask(&mut setup, "env", &strings(&["A", "1"])), Asked::Set);
        for wrong in [["", "1"], ["A=B", "1"], ["A", "1\0"]] {
            assert_eq!(ask(&mut setup, "env", &strings(&wrong)), Asked::Refused);
        }
        let mut pty = strings(&["xterm"]);
        for side in [80, 24, 0, 70_000] {
            pty.put_number(side);
        }
        pty.put_string([53, 0, 0, 0, 1, 0]);
        assert_eq!(ask(&mut setup, "pty-req", &pty), Asked::Set);
        assert_eq!(ask(&mut setup, "x11-req", &[]), Asked::Refused);
        let Asked::Start(request) = ask(&mut setup, "exec", &strings(&["ls"])) else {
            panic!("not started");
        };
        assert_eq!(request.program, Program::Command(b"ls".to_vec()));
        assert_eq!(request.variables, [(b"A".to_vec(), b"1".to_vec())]);
        let terminal = request.terminal.unwrap();
        assert_eq!((terminal.size, terminal.pixels), ((80, 24), (0, u16::MAX)));
        assert_eq!(terminal.modes, [(53, 1)]);
    }

    #[test]
    fn only_the_subsystem_for_files_is_known() {
        let start = |name| ask(&mut Setup::default(), "subsystem", &strings(&[name]));
        assert!(matches!(start("sftp"), Asked::Start(_)));
        assert_eq!(start("netconf"), Asked::Refused);
    }

    #[test]
    fn signals_have_plain_names() {
        let order = |name| order(b"signal", Fields::new(&strings(&[name]))).unwrap();
        assert!(matches!(order("TERM"), Some(Order::Signal(name)) if name == "TERM"));
        for wrong in ["", "term", "-9", "TERM; id", "VERYLONGNAME"] {
            assert!(order(wrong).is_none(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_request_is_handled_without_a_panic(
            name in "env|pty-req|window-change|shell|exec|subsystem|signal|x",
            bytes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let _ = Setup::default().ask(name.as_bytes(), Fields::new(&bytes));
            let _ = order(name.as_bytes(), Fields::new(&bytes));
        }
    }
}
