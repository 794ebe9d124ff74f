//! A client of `longshore ui`, as a browser is.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::Instant,
};

use crate::machine::{Running, TIMEOUT};

/// A running `longshore ui`, and a session with it.
pub(crate) struct Page {
    /// Dropping it would close the output of the program.
    _output: BufReader<std::process::ChildStdout>,
    pub(crate) program: Running,
    address: String,
    /// The token of the link, which is used up.
    pub(crate) token: String,
    pub(crate) base: String,
    cookie: String,
    csrf: String,
}

impl Page {
    /// Starts the program, and opens its link.
    pub(crate) fn start(command: Command) -> Self {
        let mut program = Running::start(command);
        let mut output = BufReader::new(program.output());
        let mut link = String::new();
        output.read_line(&mut link).unwrap();
        let (address, token) = link
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once("/open?token="))
            .unwrap();
        let mut page = Self {
            _output: output,
            program,
            address: address.to_owned(),
            token: token.to_owned(),
            base: String::new(),
            cookie: String::new(),
            csrf: String::new(),
        };
        let (head, _) = page.send("GET", &format!("/open?token={token}"));
        let line = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let (cookie, rest) = line.unwrap().split_once("; Path=").unwrap();
        page.cookie = cookie.to_owned();
        page.base = rest.split_once(';').unwrap().0.to_owned();
        let (_, body) = page.get("");
        let (_, csrf) = body.split_once(r#"name="csrf" content=""#).unwrap();
        page.csrf = csrf.split_once('"').unwrap().0.to_owned();
        page
    }

    /// The head and the body of a response.
    pub(crate) fn send(&self, method: &str, path: &str) -> (String, String) {
        let mut stream = self.request(method, path);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn request(&self, method: &str, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let Self {
            address,
            cookie,
            csrf,
            ..
        } = self;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n\
             cookie: {cookie}\r\nx-longshore-token: {csrf}\r\ncontent-length: 0\r\n\
             connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> (String, String) {
        self.send("GET", &format!("{}{path}", self.base))
    }

    /// Sends the request of a button. The body of the response, which must be a success.
    #[track_caller]
    pub(crate) fn press(&self, path: &str) -> String {
        let (head, body) = self.send("POST", &format!("{}{path}", self.base));
        assert!(head.contains(" 200 "), "{head}: {body}");
        body
    }

    /// Reads a stream of events until a line contains `text`, and closes it. Returns what was read.
    #[track_caller]
    pub(crate) fn events_until(&self, path: &str, text: &str) -> String {
        let stream = self.request("GET", &format!("{}{path}", self.base));
        let (begin, mut read) = (Instant::now(), String::new());
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            read += &line;
            read.push('\n');
            if line.contains(text) {
                return read;
            }
            assert!(begin.elapsed() < TIMEOUT, "never: {text}\n{read}");
        }
        panic!("the stream ended without {text}\n{read}")
    }
}
