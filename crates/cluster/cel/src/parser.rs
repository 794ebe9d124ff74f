//! Parses expressions. Macros become separate kinds of nodes.

use crate::{
    ast::{Comprehension, Expr, Kind, Literal, Macro},
    escape::is_reserved_identifier,
    lexer::{Token, TokenKind, tokens},
    library, signatures,
    source::Problem,
};

/// Maximum height of a syntax tree, and nesting of parentheses.
pub(crate) const MAX_DEPTH: usize = 250;

/// Maximum length of an expression in characters.
const MAX_LENGTH: usize = 100_000;

const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Binary operators with their precedence, and the functions that they call.
const BINARY: [(&str, u8, &str); 14] = [
    ("||", 1, "_||_"),
    ("&&", 2, "_&&_"),
    ("<", 3, "_<_"),
    ("<=", 3, "_<=_"),
    (">=", 3, "_>=_"),
    (">", 3, "_>_"),
    ("==", 3, "_==_"),
    ("!=", 3, "_!=_"),
    ("in", 3, "@in"),
    ("+", 4, "_+_"),
    ("-", 4, "_-_"),
    ("*", 5, "_*_"),
    ("/", 5, "_/_"),
    ("%", 5, "_%_"),
];

/// An expression and the number of its nodes.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) nodes: usize,
}

/// Parses an expression.
pub(crate) fn parse(source: &str) -> std::result::Result<Parsed, Vec<Problem>> {
    let length = source.chars().count();
    if length > MAX_LENGTH {
        let message =
            format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(vec![problem(0, message)]);
    }
    let (tokens, mut problems) = tokens(source);
    let mut parser = Parser {
        tokens,
        next: 0,
        nodes: 0,
        depth: 0,
    };
    match parser.whole() {
        Ok(root) if problems.is_empty() => Ok(Parsed {
            root,
            nodes: parser.nodes,
        }),
        Ok(_) => Err(problems),
        Err(problem) => {
            problems.push(problem);
            Err(problems)
        }
    }
}

fn problem(at: usize, message: impl Into<String>) -> Problem {
    Problem {
        at,
        message: message.into(),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    nodes: usize,
    depth: usize,
}

type Result<T> = std::result::Result<T, Problem>;

impl Parser {
    /// Parses an expression that must extend to the end of the source.
    fn whole(&mut self) -> Result<Expr> {
        let root = self.expr()?;
        let token = self.peek();
        if token.kind == TokenKind::End {
            return Ok(root);
        }
        let next = self.tokens.get(self.next + 1);
        let is_last = next.is_none_or(|next| next.kind == TokenKind::End);
        let kind = if is_last { "extraneous" } else { "mismatched" };
        let message = format!(
            "Syntax error: {kind} input '{}' expecting <EOF>",
            token.text
        );
        Err(problem(token.at, message))
    }

    fn peek(&self) -> &Token {
        // The last token is `End`, which is never consumed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        if token.kind != TokenKind::End {
            self.next += 1;
        }
        token
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(&self.peek().kind, TokenKind::Symbol(found) if *found == symbol)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<usize> {
        let token = self.peek();
        let at = token.at;
        if !self.is(symbol) {
            let expected = match symbol {
                "]" => "{']', ','}".to_owned(),
                symbol => format!("'{symbol}'"),
            };
            let message = match (&token.kind, symbol) {
                (TokenKind::End, ")") => format!("Syntax error: missing {expected} at '<EOF>'"),
                _ => format!(
                    "Syntax error: mismatched input '{}' expecting {expected}",
                    token.text
                ),
            };
            return Err(problem(at, message));
        }
        self.next += 1;
        Ok(at)
    }

    fn node(&mut self, at: usize, kind: Kind) -> Result<Expr> {
        let mut node = Expr {
            id: self.nodes,
            at,
            height: 0,
            is_constant: false,
            kind,
        };
        self.nodes += 1;
        let below = node.children().iter().map(|child| child.height).max();
        node.height = below.map_or(1, |height| height + 1);
        node.is_constant = match &node.kind {
            Kind::Literal(_) => true,
            Kind::List(_) | Kind::Map(_) => node.children().iter().all(|c| c.is_constant),
            Kind::Call {
                function,
                target: None,
                args,
            } => library::is_conversion(function) && args.iter().all(|arg| arg.is_constant),
            _ => false,
        };
        if node.height > MAX_DEPTH {
            return Err(too_deep(at));
        }
        Ok(node)
    }

    fn call(&mut self, at: usize, function: &str, args: Vec<Expr>) -> Result<Expr> {
        let function = function.to_owned();
        self.node(
            at,
            Kind::Call {
                function,
                target: None,
                args,
            },
        )
    }

    fn expr(&mut self) -> Result<Expr> {
        let at = self.peek().at;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep(at));
        }
        let mut expr = self.binary(1)?;
        if self.is("?") {
            let at = self.take().at;
            let right = self.binary(1)?;
            self.expect(":")?;
            let wrong = self.expr()?;
            expr = self.call(at, "_?_:_", vec![expr, right, wrong])?;
        }
        self.depth -= 1;
        Ok(expr)
    }

    fn operator(&self) -> Option<(u8, &'static str)> {
        let (TokenKind::Symbol(_) | TokenKind::Ident(_)) = self.peek().kind else {
            return None;
        };
        let text = &self.peek().text;
        let row = BINARY.iter().find(|(symbol, ..)| symbol == text)?;
        Some((row.1, row.2))
    }

    fn binary(&mut self, least: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        while let Some((precedence, function)) = self.operator().filter(|(p, _)| *p >= least) {
            let at = self.take().at;
            let right = self.binary(precedence + 1)?;
            // A chain of conditions is one node, so that it may be long.
            left = match left.kind {
                Kind::Call {
                    function: name,
                    target: None,
                    mut args,
                } if precedence <= 2 && name == function && left.height < MAX_DEPTH => {
                    args.push(right);
                    self.call(left.at, function, args)?
                }
                _ => self.call(at, function, vec![left, right])?,
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let at = self.peek().at;
            let mut count = 0usize;
            while self.accept(symbol) {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            if symbol == "-"
                && count == 1
                && let TokenKind::Int(_) | TokenKind::Double(_) = self.peek().kind
            {
                return self.member(Some(at));
            }
            // `!-x` and `-!x` are not valid expressions, but `!!x` is.
            let operand = self.member(None)?;
            return match count % 2 {
                0 => Ok(operand),
                _ => self.call(at, function, vec![operand]),
            };
        }
        self.member(None)
    }

    fn member(&mut self, minus: Option<usize>) -> Result<Expr> {
        let mut expr = self.primary(minus)?;
        loop {
            if self.is(".") {
                let at = self.take().at;
                let optional = self.accept("?");
                let token = self.take();
                let TokenKind::Ident(name) = &token.kind else {
                    let message = match token.text.as_str() {
                        "`" => "unsupported syntax: '`'".to_owned(),
                        "<EOF>" => "Syntax error: no viable alternative at input '.'".to_owned(),
                        text => format!("Syntax error: no viable alternative at input '.{text}'"),
                    };
                    return Err(problem(token.at, message));
                };
                if !optional && self.is("(") {
                    let at = self.take().at;
                    let args = self.args(")")?;
                    expr = self.method(at, expr, name, args)?;
                    continue;
                }
                expr = self.select(at, expr, name, optional)?;
            } else if self.is("[") {
                let at = self.take().at;
                let function = if self.accept("?") { "_[?_]" } else { "_[_]" };
                let index = self.expr()?;
                self.expect("]")?;
                expr = self.call(at, function, vec![expr, index])?;
            } else if self.is("{") && expr.qualified_name().is_some() {
                let name = expr.qualified_name().unwrap_or_default();
                expr = self.construction(name)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn select(&mut self, at: usize, operand: Expr, field: &str, optional: bool) -> Result<Expr> {
        let node = self.node(
            at,
            Kind::Select {
                operand: Box::new(operand),
                field: field.to_owned(),
                test: false,
                optional,
            },
        )?;
        match node.qualified_name() {
            Some(name) if signatures::type_named(&name).is_some() => {
                self.node(at, Kind::Ident(name))
            }
            _ => Ok(node),
        }
    }

    fn args(&mut self, end: &str) -> Result<Vec<Expr>> {
        let mut args = Vec::new();
        while !self.accept(end) {
            if !args.is_empty() {
                self.expect(",")?;
            }
            args.push(self.expr()?);
        }
        Ok(args)
    }

    fn primary(&mut self, minus: Option<usize>) -> Result<Expr> {
        let token = self.take();
        let at = minus.unwrap_or(token.at);
        let sign = if minus.is_some() { "-" } else { "" };
        match token.kind {
            TokenKind::Int(text) => {
                let number =
                    integer(sign, &text).ok_or_else(|| problem(at, "invalid int literal"))?;
                self.node(at, Kind::Literal(Literal::Int(number)))
            }
            TokenKind::Uint(text) => {
                let number = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16),
                    None => text.parse(),
                };
                let number = number.map_err(|_| problem(at, "invalid uint literal"))?;
                self.node(at, Kind::Literal(Literal::Uint(number)))
            }
            TokenKind::Double(text) => {
                let number = format!("{sign}{text}").parse::<f64>().ok();
                let number = number.filter(|number| number.is_finite());
                let number = number.ok_or_else(|| problem(at, "invalid double literal"))?;
                self.node(at, Kind::Literal(Literal::Double(number)))
            }
            TokenKind::String(text) => self.node(at, Kind::Literal(Literal::String(text))),
            TokenKind::Bytes(bytes) => self.node(at, Kind::Literal(Literal::Bytes(bytes))),
            TokenKind::Ident(name) => self.ident(at, &name),
            TokenKind::Symbol("(") => {
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Symbol("[") => self.list(at),
            TokenKind::Symbol("{") => self.map(at),
            TokenKind::Symbol(".") => {
                let token = self.take();
                match token.kind {
                    TokenKind::Ident(name) => self.ident(token.at, &name),
                    _ => Err(problem(
                        token.at,
                        format!("Syntax error: missing IDENTIFIER at '{}'", token.text),
                    )),
                }
            }
            TokenKind::Symbol(_) | TokenKind::End => Err(problem(
                token.at,
                format!(
                    "Syntax error: mismatched input '{}' expecting {OPERAND}",
                    token.text
                ),
            )),
        }
    }

    fn list(&mut self, at: usize) -> Result<Expr> {
        let mut items = Vec::new();
        while !self.accept("]") {
            let optional = self.accept("?");
            items.push((self.expr()?, optional));
            if !self.accept(",") && !self.is("]") {
                self.expect("]")?;
            }
        }
        self.node(at, Kind::List(items))
    }

    fn map(&mut self, at: usize) -> Result<Expr> {
        let mut entries = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let key = self.expr()?;
            self.expect(":")?;
            entries.push((key, self.expr()?, optional));
            if !self.accept(",") && !self.is("}") {
                self.expect("}")?;
            }
        }
        self.node(at, Kind::Map(entries))
    }

    /// The fields of a construction, `Name{field: value}`.
    fn construction(&mut self, name: String) -> Result<Expr> {
        let at = self.expect("{")?;
        let mut fields = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let token = self.take();
            let field = match token.kind {
                TokenKind::Ident(field) => field,
                _ => {
                    let message = format!(
                        "Syntax error: mismatched input '{}' expecting {{'}}', '?', ',', IDENTIFIER}}",
                        token.text
                    );
                    return Err(problem(token.at, message));
                }
            };
            self.expect(":")?;
            fields.push((field, self.expr()?, optional));
            if !self.accept(",") && !self.is("}") {
                self.expect("}")?;
            }
        }
        self.node(at, Kind::Struct { name, fields })
    }

    fn ident(&mut self, at: usize, name: &str) -> Result<Expr> {
        let literal = match name {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            _ => None,
        };
        if let Some(literal) = literal {
            return self.node(at, Kind::Literal(literal));
        }
        if is_reserved_identifier(name) {
            return Err(problem(at, format!("reserved identifier: {name}")));
        }
        if name == "in" {
            let message = format!("Syntax error: mismatched input 'in' expecting {OPERAND}");
            return Err(problem(at, message));
        }
        if !self.is("(") {
            return self.node(at, Kind::Ident(name.to_owned()));
        }
        let open = self.take().at;
        let mut args = self.args(")")?;
        if name == "has" && args.len() == 1 {
            let mut arg = args.remove(0);
            if let Kind::Select {
                test,
                optional: false,
                ..
            } = &mut arg.kind
                && !*test
            {
                *test = true;
                return Ok(arg);
            }
            return Err(problem(arg.at, "invalid argument to has() macro"));
        }
        self.call(open, name, args)
    }

    /// A call of a method, of a macro or of a function with a qualified name.
    fn method(&mut self, at: usize, target: Expr, name: &str, mut args: Vec<Expr>) -> Result<Expr> {
        if matches!(name, "optMap" | "optFlatMap") && args.len() == 2 {
            let body = Box::new(args.remove(1));
            return self.node(
                at,
                Kind::OptMap {
                    var: variable(&args[0])?,
                    target: Box::new(target),
                    body,
                    flat: name == "optFlatMap",
                },
            );
        }
        if let Some(found) = find_macro(name, args.len()) {
            return self.comprehension(at, target, found, args);
        }
        if let Some(prefix) = target.qualified_name() {
            let qualified = format!("{prefix}.{name}");
            if signatures::is_function(&qualified) {
                return self.call(at, &qualified, args);
            }
        }
        self.node(
            at,
            Kind::Call {
                function: name.to_owned(),
                target: Some(Box::new(target)),
                args,
            },
        )
    }

    fn comprehension(
        &mut self,
        at: usize,
        range: Expr,
        (name, two, filtered): (Macro, bool, bool),
        args: Vec<Expr>,
    ) -> Result<Expr> {
        let mut args = args.into_iter();
        let mut next = || args.next().ok_or_else(|| problem(at, "missing argument"));
        let first = next()?;
        let var = variable(&first).map_err(|error| match name {
            Macro::Map | Macro::Filter => problem(first.at, "argument is not an identifier"),
            _ => error,
        })?;
        let var2 = match two {
            true => Some(variable(&next()?)?),
            false => None,
        };
        if var2.as_ref() == Some(&var) {
            let message = format!("duplicate variable name: {var}");
            return Err(problem(at, message));
        }
        let filter = if filtered { Some(next()?) } else { None };
        let body = next()?;
        let inner = Comprehension {
            name,
            range,
            var,
            var2,
            filter,
            body,
        };
        self.node(at, Kind::Comprehension(Box::new(inner)))
    }
}

fn too_deep(at: usize) -> Problem {
    problem(
        at,
        format!("expression recursion limit exceeded: {MAX_DEPTH}"),
    )
}

fn integer(sign: &str, text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok(),
        None => format!("{sign}{text}").parse().ok(),
    }
}

fn variable(expr: &Expr) -> Result<String> {
    match &expr.kind {
        Kind::Ident(name) => Ok(name.clone()),
        _ => Err(problem(expr.at, "argument must be a simple name")),
    }
}

/// The macro, with flags that are set if it has two variables and if it has a condition.
fn find_macro(name: &str, args: usize) -> Option<(Macro, bool, bool)> {
    Some(match (name, args) {
        ("all", 2) => (Macro::All, false, false),
        ("all", 3) => (Macro::All, true, false),
        ("exists", 2) => (Macro::Exists, false, false),
        ("exists", 3) => (Macro::Exists, true, false),
        ("exists_one", 2) => (Macro::ExistsOne, false, false),
        ("exists_one" | "existsOne", 3) => (Macro::ExistsOne, true, false),
        ("filter", 2) => (Macro::Filter, false, false),
        ("map", 2) => (Macro::Map, false, false),
        ("map", 3) => (Macro::Map, false, true),
        ("transformList", 3) => (Macro::Map, true, false),
        ("transformList", 4) => (Macro::Map, true, true),
        ("transformMap", 3) => (Macro::TransformMap, true, false),
        ("transformMap", 4) => (Macro::TransformMap, true, true),
        ("transformMapEntry", 3) => (Macro::TransformMapEntry, true, false),
        ("transformMapEntry", 4) => (Macro::TransformMapEntry, true, true),
        ("sortBy", 2) => (Macro::SortBy, false, false),
        _ => return None,
    })
}
