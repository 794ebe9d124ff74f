//! Arbitrary expressions do not panic and always end.

use std::time::{Duration, Instant};

use longshore_cel::EvalError;
use proptest::prelude::*;

use crate::{environment, object};

const WORDS: [&str; 60] = [
    "self",
    ".list",
    ".str",
    ".labels",
    ".ports",
    ".inner",
    "any",
    "[0]",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "?",
    "1",
    "0",
    "-1",
    "2.5",
    "3u",
    "'a'",
    "'aaaa'",
    "b'x'",
    "true",
    "false",
    "null",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " == ",
    " < ",
    " in ",
    " && ",
    " || ",
    "!",
    "-",
    ".all(x, ",
    ".map(y, ",
    ".filter(x, ",
    ".exists(x, ",
    "x",
    "y",
    ".size()",
    ".?str",
    ".optMap(x, ",
    ".replace('', 'aa')",
    ".split('')",
    ".join('b')",
    ".findAll('.*')",
    "lists.range(",
    ".flatten()",
    ".sort()",
    "string(",
    "has(self.str)",
    ".transformMap(x, y, ",
    "'%s'.format([",
];

fn run(source: &str) {
    let Ok(program) = environment().compile(source) else {
        return;
    };
    let object = object();
    let _ = program.max_cost();
    let inputs = [("self", Some(&object)), ("any", Some(&object))];
    let _ = program.evaluate(&inputs, 50_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_words_never_panic(words in prop::collection::vec(0..WORDS.len(), 1..40)) {
        let source: String = words.iter().map(|index| WORDS[*index]).collect();
        run(&source);
    }

    #[test]
    fn arbitrary_text_never_panics(source in ".{0,60}") {
        run(&source);
    }

    #[test]
    fn nested_expressions_never_panic(depth in 0usize..600, which in 0usize..12) {
        let (open, inner, close) = [
            ("(", "1", ")"),
            ("[", "", "]"),
            ("{'a': ", "1", "}"),
            ("!", "true", ""),
            ("-", "x", ""),
            ("true ? ", "1", " : 2"),
            ("[1].map(x, ", "x", ")"),
            ("[1].all(x, ", "true", ")"),
            ("size(", "''", ")"),
            ("optional.of(1).optMap(x, ", "x", ")"),
            ("1 + (", "1", ")"),
            ("has(self.", "str", ")"),
        ][which];
        run(&format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)));
    }

    #[test]
    fn chains_never_panic(length in 0usize..2000, which in 0usize..6) {
        let (first, next) = [
            ("1", " + 1"), ("true", " && true"), ("any", ".a"), ("any", "[0]"), ("1", " == 1"),
            ("[1]", ".map(x, [x, x])"),
        ][which];
        run(&format!("{first}{}", next.repeat(length)));
    }
}

/// Expressions whose results would be far larger than the budget allows.
#[test]
fn expensive_expressions_end() {
    for source in [
        "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, true)))",
        "lists.range(100000000000) == []",
        "lists.range(20).map(x, 'aaaaaaaaaa').join().replace('', lists.range(1000).map(x, 'a').join()).replace('', 'aaaaaaaaaaaaaaaaaaaaaaa').size() > 0",
        "['a'].map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, [x,x,x,x]).map(x, '%s'.format([x])).size() > 0",
        "lists.range(100000).all(x, string(x).matches('(a' + string(x) + '{10}){10}') || true)",
        "lists.range(10000).all(x, lists.range(10000).sort() == lists.range(10000))",
        "lists.range(3000).all(x, lists.range(3000).distinct() == [])",
        "'%.1000f'.format([1.0]).size() > 0 && lists.range(1000000).all(x, '%.1000f'.format([1.0]) != '')",
    ] {
        let start = Instant::now();
        let evaluation = crate::evaluate(source, 200_000);
        assert!(start.elapsed() < Duration::from_secs(60), "{source}");
        assert!(
            !matches!(evaluation.result, Err(EvalError::NoSuchOverload)),
            "{source}"
        );
    }
}
