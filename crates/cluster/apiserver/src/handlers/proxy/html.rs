//! Finds the links of an HTML page while it is received, and rewrites them. Pure.
//!
//! The parser splits tags like the HTML standard, and copies all other text. Its memory is bounded
//! by the length of the longest link.

use super::links::Links;

/// Maximum length in bytes of an attribute's value. Longer values are copied unchanged.
const VALUE_LIMIT: usize = 16 << 10;

/// Maximum length in bytes of names that are compared with elements and attributes.
const NAME_LIMIT: usize = 16;

/// Elements with attributes that contain a URL. Kubernetes rewrites the same attributes.
const LINKS: [(&str, &[&str]); 25] = [
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// Elements whose content has no tags.
const RAW: [&str; 9] = [
    "iframe",
    "noembed",
    "noframes",
    "plaintext",
    "script",
    "style",
    "textarea",
    "title",
    "xmp",
];

/// The position of the next byte in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// After `<`.
    Open,
    /// After `<!`, with the number of dashes that follow it.
    Declaration(u8),
    /// In a comment, with the number of dashes before the next byte, at most two.
    Comment(u8),
    /// In a tag or declaration without links, until `>`.
    Skipped,
    Element,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    /// In a value, until this quote; without a quote, until a space or `>`.
    Value(Option<u8>),
    /// In the content of an element of [`RAW`], after this many bytes of `</`.
    Raw(u8),
    /// In the content of an element of [`RAW`], after `</` and part of a name.
    RawEnd,
}

/// Rewrites the links of one page.
#[derive(Debug)]
pub(super) struct Page {
    links: Links,
    state: State,
    /// The name of the last element.
    element: Name,
    /// The name of the last attribute, or of an end tag in raw content.
    name: Name,
    value: Vec<u8>,
}

/// The part of a name that is compared, in lowercase.
#[derive(Debug, Default)]
struct Name(Vec<u8>);

impl Name {
    fn begin(&mut self, first: u8) {
        self.0.clear();
        self.push(first);
    }

    fn push(&mut self, byte: u8) {
        if self.0.len() < NAME_LIMIT {
            self.0.push(byte.to_ascii_lowercase());
        }
    }

    fn is(&self, name: &str) -> bool {
        self.0 == name.as_bytes()
    }
}

impl Page {
    pub(super) fn new(links: Links) -> Self {
        Self {
            links,
            state: State::Text,
            element: Name::default(),
            name: Name::default(),
            value: Vec::new(),
        }
    }

    /// Reads a part of the page, and returns the part that can be sent.
    pub(super) fn write(&mut self, part: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(part.len());
        for byte in part {
            self.byte(*byte, &mut out);
        }
        out
    }

    /// Returns the rest at the end of the page.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.value)
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        use State as S;
        if let S::Value(quote) = self.state {
            return self.in_value(quote, byte, out);
        }
        out.push(byte);
        self.state = match self.state {
            S::Text if byte == b'<' => S::Open,
            S::Text => S::Text,
            S::Open => match byte {
                b'<' => S::Open,
                b'!' => S::Declaration(0),
                b'/' | b'?' => S::Skipped,
                byte if byte.is_ascii_alphabetic() => {
                    self.element.begin(byte);
                    S::Element
                }
                _ => S::Text,
            },
            S::Declaration(dashes) => match (byte, dashes) {
                (b'-', 0) => S::Declaration(1),
                // `<!-->` is a whole comment.
                (b'-', _) => S::Comment(2),
                (b'>', _) => S::Text,
                _ => S::Skipped,
            },
            S::Comment(dashes) => match byte {
                b'-' => S::Comment(dashes.saturating_add(1).min(2)),
                b'>' if dashes == 2 => S::Text,
                _ => S::Comment(0),
            },
            S::Skipped if byte == b'>' => S::Text,
            S::Skipped => S::Skipped,
            S::Element | S::BeforeName | S::Name | S::AfterName | S::BeforeValue => {
                self.in_tag(byte, out)
            }
            S::Raw(seen) => match (byte, seen) {
                (b'<', _) => S::Raw(1),
                (b'/', 1) => {
                    self.name.0.clear();
                    S::RawEnd
                }
                _ => S::Raw(0),
            },
            S::RawEnd => match byte {
                b'>' if self.name.0 == self.element.0 => S::Text,
                b'<' => S::Raw(1),
                byte if byte.is_ascii_alphabetic() => {
                    self.name.push(byte);
                    S::RawEnd
                }
                byte if (is_space(byte) || byte == b'/') && self.name.0 == self.element.0 => {
                    S::Skipped
                }
                _ => S::Raw(0),
            },
            value @ S::Value(_) => value,
        };
    }

    /// Returns the state after a byte of a tag outside of values.
    fn in_tag(&mut self, byte: u8, out: &mut Vec<u8>) -> State {
        match (self.state, byte) {
            (State::BeforeValue, space) if is_space(space) => State::BeforeValue,
            (State::BeforeValue, b'"' | b'\'') => State::Value(Some(byte)),
            (_, b'>') => self.tag_end(),
            (State::BeforeValue, _) => {
                // The first byte of the value waits for the rest.
                out.pop();
                self.value.push(byte);
                State::Value(None)
            }
            (State::Name | State::AfterName, b'=') => State::BeforeValue,
            (State::Name, space) if is_space(space) => State::AfterName,
            (State::AfterName, space) if is_space(space) => State::AfterName,
            (_, b'/') => State::BeforeName,
            (_, space) if is_space(space) => State::BeforeName,
            (State::Element, _) => {
                self.element.push(byte);
                State::Element
            }
            (State::Name, _) => {
                self.name.push(byte);
                State::Name
            }
            (_, _) => {
                self.name.begin(byte);
                State::Name
            }
        }
    }

    fn in_value(&mut self, quote: Option<u8>, byte: u8, out: &mut Vec<u8>) {
        let is_end = match quote {
            Some(quote) => byte == quote,
            None => byte == b'>' || is_space(byte),
        };
        if is_end {
            self.end_value(out);
            out.push(byte);
            self.state = match (quote, byte) {
                (None, b'>') => self.tag_end(),
                _ => State::BeforeName,
            };
            return;
        }
        self.value.push(byte);
        if self.value.len() > VALUE_LIMIT {
            out.append(&mut self.value);
            // The rest of the value is not the beginning of a URL.
            self.name.0.clear();
        }
    }

    /// Sends the value of an attribute.
    fn end_value(&mut self, out: &mut Vec<u8>) {
        let value = std::mem::take(&mut self.value);
        let mut found = LINKS.iter().filter(|(element, _)| self.element.is(element));
        let is_link = found.any(|(_, attributes)| attributes.iter().any(|name| self.name.is(name)));
        let url = std::str::from_utf8(&value).ok().filter(|_| is_link);
        match url.and_then(|url| self.links.rewrite(url)) {
            Some(rewritten) => out.extend_from_slice(rewritten.as_bytes()),
            None => out.extend_from_slice(&value),
        }
    }

    fn tag_end(&self) -> State {
        match RAW.iter().any(|name| self.element.is(name)) {
            true => State::Raw(0),
            false => State::Text,
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn page() -> Page {
        Page::new(Links {
            prefix: "/p".into(),
            pod: "127.1.2.3:80".into(),
            client: None,
        })
    }

    fn rewritten(text: &str) -> String {
        let mut page = page();
        let mut out = page.write(text.as_bytes());
        out.extend(page.finish());
        // The result does not depend on the parts in which a page is received.
        let (mut page, mut bytewise) = (self::page(), Vec::new());
        for byte in text.bytes() {
            bytewise.extend(page.write(&[byte]));
        }
        bytewise.extend(page.finish());
        assert_eq!(bytewise, out, "{text}");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn links_of_elements_are_rewritten() {
        for (text, expected) in [
            (r#"<a href="/x">t</a>"#, r#"<a href="/p/x">t</a>"#),
            ("<A HREF='/x' id=/y>", "<A HREF='/p/x' id=/y>"),
            ("<a href=/x>", "<a href=/p/x>"),
            (
                "<a\n href = /x\tid=a><a href=/y>",
                "<a\n href = /p/x\tid=a><a href=/p/y>",
            ),
            (
                "<img alt=\"a > b\" src=\"/i\"/>",
                "<img alt=\"a > b\" src=\"/p/i\"/>",
            ),
            ("<link/href='/s'>", "<link/href='/p/s'>"),
            ("<a disabled href='/x'>", "<a disabled href='/p/x'>"),
            (
                "<script src=/s></script><a href=/x>",
                "<script src=/p/s></script><a href=/p/x>",
            ),
            (
                "<a href='http://127.1.2.3:80/?a=1&amp;b'>",
                "<a href='/p/?a=1&amp;b'>",
            ),
            ("<<a href='/x'>", "<<a href='/p/x'>"),
            (
                "<!DOCTYPE html><a href='/x'>",
                "<!DOCTYPE html><a href='/p/x'>",
            ),
            ("<!-- - --><a href='/x'>", "<!-- - --><a href='/p/x'>"),
            ("<!--><a href='/x'>", "<!--><a href='/p/x'>"),
            ("</b ><a href='/x'>", "</b ><a href='/p/x'>"),
            (
                "<title><a href='/x'></titles></title ><a href='/x'>",
                "<title><a href='/x'></titles></title ><a href='/p/x'>",
            ),
        ] {
            assert_eq!(rewritten(text), expected);
        }
    }

    #[test]
    fn everything_else_is_copied() {
        for text in [
            "",
            "plain /x",
            "<",
            "<a",
            "<a href=\"/unfinished",
            "<a href=",
            "<a href=\"x\" HREF2=\"/x\">",
            "<b href=\"/x\">",
            "<abbreviations-are-long href='/x'>",
            "1 < 2 href='/x'",
            "<!-- <a href=\"/x\"> -->",
            "</a href='/x'>",
            "<?a href='/x'?>",
            "<script>'<a href=\"/x\">'</script>",
            "<style></ style><a href='/x'></style>",
            "<textarea></text<a href='/x'></textarea>",
            "<a href='&#47;x'>",
            "<a href=\"//elsewhere/x\">",
        ] {
            assert_eq!(rewritten(text), text);
        }
        let bytes = b"<a href=\"/\xff\">\xff";
        assert_eq!(page().write(bytes), bytes);
    }

    #[test]
    fn long_values_are_not_kept() {
        let mut page = page();
        let long = format!("<a href=\"/{}", "a".repeat(VALUE_LIMIT + 1));
        let mut out = page.write(long.as_bytes());
        assert!(out.len() > VALUE_LIMIT);
        out.extend(page.write(b"/b\"><a href='/x'>"));
        let expected = format!("{long}/b\"><a href='/p/x'>");
        assert!(out == expected.as_bytes());
    }
}
