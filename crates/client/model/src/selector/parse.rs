//! Parses label selectors. The grammar and the error messages are the same as in Kubernetes'
//! `labels.Parse`.

use crate::name;

use super::condition::Condition;

/// Parses a text into requirements: pairs of a key and a condition.
pub(super) fn requirements(text: &str) -> Result<Vec<(String, Condition)>, Problem> {
    let mut parser = Parser {
        tokens: tokens(text),
        next: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Word(_) | Token::Symbol("!") => {}
            Token::End => return Ok(requirements),
            other => {
                let expected = "!, identifier, or 'end of string'";
                return Err(Problem::Around(found(other, expected)));
            }
        }
        requirements.push(parser.requirement().map_err(Problem::Within)?);
        match parser.take() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => match parser.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                other => return Err(Problem::Around(found(other, "identifier after ','"))),
            },
            other => {
                return Err(Problem::Around(found(other, "',' or 'end of string'")));
            }
        }
    }
}

/// The reason why a selector is invalid.
pub(super) enum Problem {
    /// A requirement in the set is invalid.
    Within(String),
    /// The text between the requirements is invalid.
    Around(String),
}

/// The operators between a key and a value, in the order in which Kubernetes
/// lists them.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";
const SYMBOLS: &[&str] = &["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while !rest.is_empty() {
        let length = match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => {
                tokens.push(Token::Symbol(symbol));
                symbol.len()
            }
            None => {
                let end = |c| is_blank(c) || "=!(),><".contains(c);
                let length = rest.find(end).unwrap_or(rest.len());
                tokens.push(Token::Word(&rest[..length]));
                length
            }
        };
        rest = rest[length..].trim_start_matches(is_blank);
    }
    tokens
}

fn found(token: Token<'_>, expected: &str) -> String {
    format!("found '{}', expected: {expected}", literal(token))
}

fn literal(token: Token<'_>) -> &str {
    match token {
        Token::Word(word) => word,
        Token::Symbol(symbol) => symbol,
        Token::End => "",
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.next).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn requirement(&mut self) -> Result<(String, Condition), String> {
        let is_absent = self.peek() == Token::Symbol("!");
        if is_absent {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(found(other, "identifier")),
        };
        if let Some(problem) = key_problem(key) {
            return Err(format!("<nil>: Invalid value: {key:?}: {problem}"));
        }
        let condition = if is_absent {
            Condition::Absent
        } else if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            Condition::Exists
        } else {
            self.condition(key)?
        };
        Ok((key.to_owned(), condition))
    }

    fn condition(&mut self, key: &str) -> Result<Condition, String> {
        let make: fn(Vec<String>) -> Condition = match self.take() {
            Token::Word("in") => return self.set(key).map(Condition::In),
            Token::Word("notin") => return self.set(key).map(Condition::NotIn),
            Token::Symbol("=" | "==") => Condition::In,
            Token::Symbol("!=") => Condition::NotIn,
            Token::Symbol(">") => return self.number(key).map(Condition::Greater),
            Token::Symbol("<") => return self.number(key).map(Condition::Less),
            other => return Err(found(other, OPERATORS)),
        };
        let value = self.value()?;
        check_values(key, vec![value], Vec::new()).map(make)
    }

    /// Parses one value; a missing value is the empty value.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Word(value) => {
                self.take();
                Ok(value.to_owned())
            }
            other => Err(found(other, "identifier")),
        }
    }

    fn number(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value()?;
        let number = value.parse();
        let problems = match number {
            Ok(_) => Vec::new(),
            Err(_) => vec![format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            )],
        };
        check_values(key, vec![value], problems)?;
        Ok(number.unwrap_or_default())
    }

    /// Parses `(a,b)` and sorts the values. Between two commas, or next to a
    /// parenthesis, there is an empty value.
    fn set(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", literal(other))),
        }
        let mut values = Vec::new();
        match self.peek() {
            Token::Symbol(")") => values.push(String::new()),
            Token::Word(_) | Token::Symbol(",") => self.items(&mut values)?,
            other => return Err(found(other, "',', ')' or identifier")),
        }
        self.take();
        values.sort();
        values.dedup();
        check_values(key, values, Vec::new())
    }

    /// Parses the items of a set up to its closing parenthesis.
    fn items(&mut self, values: &mut Vec<String>) -> Result<(), String> {
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.push(value.to_owned());
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(()),
                        other => return Err(found(other, "',' or ')'")),
                    }
                }
                Token::Symbol(",") => {
                    let next = self.peek();
                    let is_last = next == Token::Symbol(")");
                    if values.is_empty() || is_last || next == Token::Symbol(",") {
                        values.push(String::new());
                    }
                    if is_last {
                        return Ok(());
                    }
                }
                other => return Err(found(other, "',', or identifier")),
            }
        }
    }
}

/// Returns the values if they are valid label values; otherwise returns all
/// problems, including those already known.
fn check_values(
    key: &str,
    values: Vec<String>,
    mut problems: Vec<String>,
) -> Result<Vec<String>, String> {
    for (index, value) in values.iter().enumerate() {
        if let Some(problem) = value_problem(value) {
            problems.push(format!(
                "values[{index}][{key}]: Invalid value: {value:?}: {problem}"
            ));
        }
    }
    match problems.as_slice() {
        [] => Ok(values),
        [problem] => Err(problem.clone()),
        _ => Err(format!("[{}]", problems.join(", "))),
    }
}

const CHARACTERS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns what is wrong with a label key, with the message of Kubernetes.
fn key_problem(key: &str) -> Option<String> {
    name::label_key(key).err()?;
    let (prefix, own) = match key.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            return Some(format!(
                "a qualified name {CHARACTERS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
        Some((prefix, own)) => (Some(prefix), own),
        None => (None, key),
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if prefix.len() > 253 {
                problems.push("prefix part must be no more than 253 bytes".to_owned());
            }
            if !prefix.split('.').all(name::is_dns_part) {
                problems.push(format!("prefix part {SUBDOMAIN}"));
            }
        }
        None => {}
    }
    if own.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if own.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !name::is_qualified(own) {
        problems.push(format!("name part {CHARACTERS}"));
    }
    Some(problems.join("; "))
}

/// Returns what is wrong with a label value, with the message of Kubernetes.
fn value_problem(value: &str) -> Option<String> {
    name::label_value(value).err()?;
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes");
    }
    if !name::is_qualified(value) {
        problems.push(VALUE);
    }
    Some(problems.join("; "))
}
