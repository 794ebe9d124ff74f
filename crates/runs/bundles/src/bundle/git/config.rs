//! The syntax of git's configuration files.

/// A variable of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// The section and the name, in lower case: `core.bare`.
    pub(super) key: String,
    /// The subsection, such as the condition of `includeIf`.
    pub(super) subsection: Option<Vec<u8>>,
    /// The value. `None` if there is no `=`, which means true.
    pub(super) value: Option<Vec<u8>>,
}

impl Variable {
    /// The value as a boolean. `None` if it is not a boolean.
    pub(super) fn boolean(&self) -> Option<bool> {
        let Some(value) = &self.value else {
            return Some(true);
        };
        match value.to_ascii_lowercase().as_slice() {
            b"true" | b"yes" | b"on" => Some(true),
            b"" | b"false" | b"no" | b"off" => Some(false),
            number => {
                let number = std::str::from_utf8(number).ok()?;
                number.parse::<i64>().ok().map(|number| number != 0)
            }
        }
    }
}

/// The variables of a file, in order. Parsing stops at the first invalid line; the second value is
/// the number of this line.
pub(super) fn parse(text: &[u8]) -> (Vec<Variable>, Option<usize>) {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut parser = Parser {
        text,
        at: 0,
        line: 1,
    };
    let mut variables = Vec::new();
    let complete = parser.variables(&mut variables).is_some();
    (variables, (!complete).then_some(parser.line))
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Parser<'_> {
    /// Parses all variables. `None` if a line is invalid.
    fn variables(&mut self, variables: &mut Vec<Variable>) -> Option<()> {
        let mut section: Option<(String, Option<Vec<u8>>)> = None;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => {}
                b'#' | b';' => self.skip_line(),
                b'[' => section = Some(self.section()?),
                byte if byte.is_ascii_whitespace() => {}
                byte if byte.is_ascii_alphabetic() => {
                    let (name, subsection) = section.clone()?;
                    let (variable, value) = self.variable(byte)?;
                    variables.push(Variable {
                        key: format!("{name}.{variable}"),
                        subsection,
                        value,
                    });
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// The next byte. `\r\n` is read as a newline.
    fn next(&mut self) -> Option<u8> {
        let mut byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            byte = b'\n';
        }
        self.line += usize::from(byte == b'\n');
        Some(byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// The rest of a header: `core]` or `includeIf "gitdir:~/work/"]`.
    fn section(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => break,
                byte @ (b' ' | b'\t') => return self.subsection(name, byte),
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                _ => return None,
            }
        }
        // The old form of a subsection.
        Some(match name.split_once('.') {
            Some((section, rest)) => (section.to_owned(), Some(rest.as_bytes().to_vec())),
            None => (name, None),
        })
    }

    fn subsection(&mut self, name: String, mut byte: u8) -> Option<(String, Option<Vec<u8>>)> {
        while matches!(byte, b' ' | b'\t') {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        let mut subsection = Vec::new();
        loop {
            match self.next()? {
                b'\n' => return None,
                b'"' => break,
                b'\\' => subsection.push(self.next().filter(|byte| *byte != b'\n')?),
                byte => subsection.push(byte),
            }
        }
        (self.next()? == b']').then_some((name, Some(subsection)))
    }

    /// The name that begins with a byte, and the value.
    fn variable(&mut self, first: u8) -> Option<(String, Option<Vec<u8>>)> {
        let mut name = String::from(char::from(first.to_ascii_lowercase()));
        loop {
            match self.next() {
                None | Some(b'\n') => return Some((name, None)),
                Some(b'=') => return Some((name, Some(self.value()?))),
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' => {
                    name.push(char::from(byte.to_ascii_lowercase()));
                }
                Some(b' ' | b'\t') => break,
                Some(_) => return None,
            }
        }
        loop {
            match self.next() {
                None | Some(b'\n') => return Some((name, None)),
                Some(b' ' | b'\t') => {}
                Some(b'=') => return Some((name, Some(self.value()?))),
                Some(b'#' | b';') => {
                    self.skip_line();
                    return Some((name, None));
                }
                Some(_) => return None,
            }
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut quoted) = (Vec::new(), false);
        // The length without trailing spaces.
        let mut length = 0;
        loop {
            match self.next() {
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => {
                    quoted = !quoted;
                    length = value.len();
                    continue;
                }
                Some(b'\\') => match self.next()? {
                    b'\n' => continue,
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                Some(byte) if byte.is_ascii_whitespace() && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                Some(byte) => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        (!quoted).then_some(value)
    }
}
