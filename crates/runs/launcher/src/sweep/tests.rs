//! Tests of the expressions, combinations, placeholders and rows of sweeps.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use longshore_diagnosis::evidence::JobEvidence;
use proptest::prelude::*;
use serde_json::json;

use super::{rows::TaskRun, *};

fn parameter(name: &str, values: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        values: parse_values(values).unwrap(),
    }
}

fn parameters(texts: &[(&str, &str)]) -> Vec<Parameter> {
    let texts = texts.iter();
    texts
        .map(|(name, values)| parameter(name, values))
        .collect()
}

fn list(text: &str) -> Vec<String> {
    match parse_values(text).unwrap() {
        Values::List(list) => list,
        Values::Range(range) => panic!("{range:?}"),
    }
}

#[test]
fn values_are_lists_and_ranges() {
    assert_eq!(list("0.1, 0.01"), ["0.1", "0.01"]);
    assert_eq!(list("1..3,7"), ["1", "2", "3", "7"]);
    for text in ["../data", "a..b", "adam", "-", "v1..v2"] {
        assert_eq!(list(text), [text]);
    }
    let range = |text: &str| match parse_values(text).unwrap() {
        Values::Range(range) => range,
        Values::List(list) => panic!("{list:?}"),
    };
    let (from, to, log) = (-2, 2, false);
    assert_eq!(range("-2..2"), Range::Integers { from, to, log });
    let (from, to, log) = (1e-4, 0.1, true);
    assert_eq!(range("1e-4..0.1:log"), Range::Numbers { from, to, log });
}

#[test]
fn values_with_brackets_are_kept_whole() {
    for (text, expected) in [
        ("[64,64],[128]", &["[64,64]", "[128]"][..]),
        ("[64,64]", &["[64,64]"]),
        (
            r#"{"a": [1,2], "b": "x,y"} , {}"#,
            &[r#"{"a": [1,2], "b": "x,y"}"#, "{}"],
        ),
        (r#"["a]","b\",c"],d"#, &[r#"["a]","b\",c"]"#, "d"]),
        ("(1,2),f(x,y),['a,b']", &["(1,2)", "f(x,y)", "['a,b']"]),
        ("a),b]", &["a)", "b]"]),
        ("it's,that's", &["it's", "that's"]),
        (r#""a","b""#, &[r#""a""#, r#""b""#]),
        ("[1..3],4", &["[1..3]", "4"]),
        ("a,[b", &["a", "[b"]),
        ("a,(b]", &["a", "(b]"]),
        (r#"a,"b"#, &["a", r#""b"#]),
    ] {
        assert_eq!(list(text), expected, "{text}");
    }
    for text in [
        r#""a,b",c"#,
        "'a,b'",
        "[1,2",
        "a[,b",
        "[1,2)",
        r#"["a,b]"#,
        "((1),2",
    ] {
        let error = parse_values(text).unwrap_err();
        assert!(
            error.contains("write a list in longshore.toml"),
            "{text}: {error}"
        );
    }
}

proptest! {
    #[test]
    fn values_are_never_cut_or_invented(text in "[a-c\\[\\](){},\"' .1]{0,12}") {
        // The values are parts of the text, or the text contains a range, or it is refused.
        if let Ok(Values::List(values)) = parse_values(&text)
            && !text.contains("..")
        {
            let parts = values.join(",");
            let plain = |text: &str| text.replace(' ', "");
            prop_assert_eq!(plain(&parts), plain(&text));
            for value in values.iter().filter(|value| value.contains(',')) {
                let (opened, closed) = (value.matches(['[', '(', '{']), value.matches([']', ')', '}']));
                prop_assert!(opened.count() > 0 && closed.count() > 0, "{}", value);
            }
        }
    }
}

#[test]
fn numbers_of_a_file_are_kept_as_written() {
    let text = "{\"n\": 123456789012345678901234, \"m\": 0.10, \"s\": \"a,\\u0062\"}\n";
    let (names, values) = parse_file("a.jsonl", text).unwrap();
    assert_eq!(names, ["m", "n", "s"]);
    assert_eq!(values, [["0.10", "123456789012345678901234", "a,b"]]);
}

#[test]
fn invalid_values_are_refused_with_the_rule() {
    let rule = |text: &str| parse_values(text).unwrap_err();
    insta::assert_snapshot!(rule(""), @"a value is empty: write NAME=VALUE,VALUE; a list in longshore.toml can contain an empty string");
    insta::assert_snapshot!(rule("1,,2"), @"a value is empty: write NAME=VALUE,VALUE; a list in longshore.toml can contain an empty string");
    insta::assert_snapshot!(rule("1..x"), @"1..x is not a range: write FROM..TO, as in 1..5 or 0.1..1.0; a list in longshore.toml can contain any string");
    insta::assert_snapshot!(rule("5..1"), @"5..1: the end of a range must not be below its beginning");
    insta::assert_snapshot!(rule("1..99999999999999999999"), @"1..99999999999999999999: the integers of a range are limited to 64 bits; write 1.0..1e30 for real numbers");
    insta::assert_snapshot!(rule("0..1:log"), @"0..1:log: a logarithmic scale needs a beginning above 0");
    insta::assert_snapshot!(rule("1..2:cubic"), @r#"unknown scale "cubic" in 1..2:cubic: write 1..TO:log"#);
    insta::assert_snapshot!(rule("0.1..0.5,1"), @"0.1..0.5 is a range of real numbers, which cannot be combined with other values");
    insta::assert_snapshot!(rule("0,1..99999999999"), @"99999999999 values are too many: use at most 10000, or random samples (--samples)");
    assert!(rule("1..inf").contains("is not a range"));
}

#[test]
fn a_grid_has_all_combinations_and_the_last_parameter_changes_first() {
    let found = grid(&parameters(&[("lr", "0.1,0.01"), ("seed", "1..2")])).unwrap();
    let expected = [["0.1", "1"], ["0.1", "2"], ["0.01", "1"], ["0.01", "2"]];
    assert_eq!(found, expected);
    let rule = |texts: &[(&str, &str)]| grid(&parameters(texts)).unwrap_err();
    insta::assert_snapshot!(rule(&[("a", "1..1000"), ("b", "1..1000")]), @"1000000 combinations are too many: an Indexed Job and the objects of a run hold 10000; use fewer values, or random samples (--samples)");
    insta::assert_snapshot!(rule(&[("a", "0.1..1.0")]), @"a: a range of real numbers is for random samples: add --samples N (`samples`), or list the values");
    insta::assert_snapshot!(rule(&[("a", "1,1")]), @r#"a: the value "1" is given twice"#);
    let many: Vec<Parameter> = (0..100)
        .map(|n| parameter(&format!("p{n}"), "1..9999"))
        .collect();
    assert!(grid(&many).unwrap_err().contains("too many"));
}

#[test]
fn samples_are_those_of_the_seed_and_differ() {
    let parameters = parameters(&[
        ("lr", "0.0001..0.1:log"),
        ("layers", "1..8"),
        ("act", "relu,gelu"),
    ]);
    // These values must not change, because the seed of a run makes it reproducible.
    let found = sample(&parameters, 3, 7).unwrap();
    let expected = [
        ["0.00147737", "1", "gelu"],
        ["0.00560778", "4", "relu"],
        ["0.00253431", "3", "relu"],
    ];
    assert_eq!(found, expected);
    assert_eq!(sample(&parameters, 3, 7).unwrap(), found);
    assert_ne!(sample(&parameters, 3, 8).unwrap(), found);
    let few = super::tests::parameters(&[("a", "1..3"), ("b", "x,y")]);
    insta::assert_snapshot!(sample(&few, 7, 0).unwrap_err(), @"there are only 6 combinations: use --samples 6 (`samples`) or fewer, or omit it for all");
    let all: BTreeSet<_> = sample(&few, 6, 0).unwrap().into_iter().collect();
    assert_eq!(all, grid(&few).unwrap().into_iter().collect());
    let wide = [parameter("n", &format!("{}..{}", i64::MIN, i64::MAX))];
    assert_eq!(sample(&wide, 100, 1).unwrap().len(), 100);
    assert!(sample(&few, 0, 0).is_err() && sample(&wide, 10_001, 0).is_err());
}

#[test]
fn names_and_sizes_are_limited() {
    let check = |names: &[&str], combinations: Vec<Vec<String>>| {
        let sweep = Sweep {
            parameters: names.iter().map(ToString::to_string).collect(),
            combinations,
            ..Sweep::default()
        };
        sweep.check()
    };
    let one = || vec![vec!["1".to_owned(); 2]];
    assert_eq!(check(&["a", "b"], one()), Ok(()));
    insta::assert_snapshot!(check(&["a", "a"], one()).unwrap_err(), @"the parameter a is given twice");
    insta::assert_snapshot!(check(&["a-b", "A.b"], one()).unwrap_err(), @"the parameters a-b and A.b have the same variable LONGSHORE_PARAM_A_B: rename one");
    insta::assert_snapshot!(check(&["1a", "b"], one()).unwrap_err(), @r#"the name "1a": use letters, digits, '_', '-' and '.', not beginning with a digit, and at most 63 characters"#);
    insta::assert_snapshot!(check(&["a"], vec![]).unwrap_err(), @"a sweep needs a combination");
    assert!(
        check(&["a"], vec![vec!["x".repeat(LARGEST_SWEEP)]])
            .unwrap_err()
            .contains("768 KiB")
    );
    assert!(
        check(&["a"], vec![vec!["\0".to_owned()]])
            .unwrap_err()
            .contains("NUL")
    );
}

#[test]
fn files_have_combinations() {
    let expected = (
        vec!["lr".to_owned(), "note".to_owned()],
        vec![
            vec!["0.1".to_owned(), "a, \"b\"\nc".to_owned()],
            vec!["2".to_owned(), String::new()],
        ],
    );
    let csv = "\u{feff}lr,note\r\n0.1,\"a, \"\"b\"\"\nc\"\r\n\n2,\"\"\n";
    assert_eq!(parse_file("a.CSV", csv).unwrap(), expected);
    let json = "{\"note\": \"a, \\\"b\\\"\\nc\", \"lr\": 0.1}\n\n{\"lr\": 2, \"note\": \"\"}";
    assert_eq!(parse_file("a.jsonl", json).unwrap(), expected);
    let error = |name: &str, text: &str| parse_file(name, text).unwrap_err();
    insta::assert_snapshot!(error("a.txt", ""), @"use a file whose name ends with .csv or .jsonl");
    insta::assert_snapshot!(error("a.csv", ""), @"the file is empty");
    insta::assert_snapshot!(error("a.csv", "a,b\n1,2\n1\n"), @"line 3: it has 1 values, and the first line has 2 names");
    insta::assert_snapshot!(error("a.csv", "a\n\"1\"2\n"), @"line 2: a comma must follow the quotation mark");
    insta::assert_snapshot!(error("a.csv", "a\n\"1\n"), @"line 2: a quotation mark is not closed");
    insta::assert_snapshot!(error("a.jsonl", "{\"a\": 1}\n{\"b\": 1}"), @"line 2: its keys are not those of the first line: a");
    insta::assert_snapshot!(error("a.jsonl", "{\"a\": [1]}"), @"line 1: a: use a string, a number, true or false");
    assert!(error("a.jsonl", "[]").starts_with("line 1: "));
    assert!(error("a.csv", &format!("a\n{}", "1\n".repeat(10_001))).contains("more than 10000"));
}

#[test]
fn placeholders_are_names_in_braces() {
    assert_eq!(
        names("{lr}/{model.size}{{x}} ${HOME} {\"a\": 1} { lr } {} {1a}"),
        ["lr", "model.size"]
    );
    let value = |name: &str| match name {
        "lr" => Some("{x}"),
        _ => None,
    };
    assert_eq!(fill("ä{lr}ö{x}{{lr}}{{{lr}}}", value), "ä{x}ö{x}{lr}{{lr}}");
    assert_eq!(fill("{{lr}", value), "{{x}");
}

fn job(spec: serde_json::Value, status: serde_json::Value) -> JobEvidence {
    serde_json::from_value(json!({"spec": spec, "status": status})).unwrap()
}

fn run(name: &str, count: usize, job: JobEvidence, retry: Option<Retry>) -> SweepRun {
    SweepRun {
        run: name.to_owned(),
        role: "main".to_owned(),
        sweep: Sweep {
            parameters: vec!["n".to_owned()],
            combinations: (0..count).map(|n| vec![n.to_string()]).collect(),
            retry,
            ..Sweep::default()
        },
        job,
        ..SweepRun::default()
    }
}

fn states(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().map(|row| row.state.as_str()).collect()
}

#[test]
fn states_come_from_pods_and_from_the_status_of_the_job() {
    let status = json!({"completedIndexes": "0", "failedIndexes": "1"});
    let mut first = run(
        "a",
        7,
        job(json!({"backoffLimitPerIndex": 1}), status.clone()),
        None,
    );
    let failed = TaskRun {
        has_started: true,
        has_failed: true,
        failures: 1,
        ..TaskRun::default()
    };
    let started = TaskRun {
        has_started: true,
        ..TaskRun::default()
    };
    first.tasks = [
        (2, started.clone()),
        (3, failed.clone()),
        (
            4,
            TaskRun {
                failures: 2,
                ..failed
            },
        ),
        (
            5,
            TaskRun {
                has_succeeded: true,
                ..started
            },
        ),
    ]
    .into();
    let expected = [
        "succeeded",
        "failed",
        "running",
        "pending",
        "failed",
        "succeeded",
        "pending",
    ];
    assert_eq!(states(&combine(&first, &[])), expected);
    first.job = job(json!({"suspend": true}), status);
    assert_eq!(states(&combine(&first, &[]))[6], "pending", "in a queue");
    let stopped = "2026-01-02T03:04:05Z: a task could not start".to_owned();
    let annotations = &mut first.job.metadata.annotations;
    annotations.insert("longshore.dev/stopped".to_owned(), stopped);
    let expected = [
        "succeeded",
        "failed",
        "cancelled",
        "failed",
        "failed",
        "succeeded",
        "cancelled",
    ];
    assert_eq!(states(&combine(&first, &[])), expected);
}

#[test]
fn a_retry_replaces_the_combinations_that_it_runs() {
    let first = run(
        "a",
        3,
        job(
            json!({}),
            json!({"completedIndexes": "1", "failedIndexes": "0,2"}),
        ),
        None,
    );
    let retry = |name: &str, indices: &[u32], status| {
        let retry = Retry {
            of: "a".to_owned(),
            indices: indices.to_vec(),
        };
        run(name, indices.len(), job(json!({}), status), Some(retry))
    };
    let retries = [
        retry(
            "b",
            &[0, 2, 9],
            json!({"completedIndexes": "1", "failedIndexes": "0"}),
        ),
        retry("c", &[0], json!({})),
    ];
    let rows = combine(&first, &retries);
    assert_eq!(states(&rows), ["pending", "succeeded", "succeeded"]);
    let names: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}/{} {:?}", row.index, row.run, row.task, row.values))
        .collect();
    assert_eq!(
        names,
        [
            "0 c/main/0 [\"0\"]",
            "1 a/main/1 [\"1\"]",
            "2 b/main/1 [\"2\"]"
        ]
    );
}

proptest! {
    #[test]
    fn no_text_of_values_panics(text in "[0-9a-z.,:+-]{0,24}") {
        if let Ok(values) = parse_values(&text) {
            let parameter = Parameter { name: "a".to_owned(), values };
            let _ = grid(std::slice::from_ref(&parameter));
            let _ = sample(&[parameter], 3, 1);
        }
    }

    #[test]
    fn a_grid_has_the_product_of_the_numbers_of_values(
        counts in prop::collection::vec(1_usize..6, 1..5),
    ) {
        let parameters: Vec<Parameter> = (0..).zip(&counts)
            .map(|(n, count): (u32, _)| parameter(&format!("p{n}"), &format!("1..{count}")))
            .collect();
        let found = grid(&parameters).unwrap();
        prop_assert_eq!(found.len(), counts.iter().product::<usize>());
        let different: BTreeSet<_> = found.iter().collect();
        prop_assert_eq!(different.len(), found.len());
        prop_assert_eq!(&grid(&parameters).unwrap(), &found);
    }

    #[test]
    fn samples_are_within_their_ranges(
        seed: u64, from in -100_i64..100, width in 0_i64..100, samples in 1_u32..50,
    ) {
        let to = from + width;
        let parameters = parameters(&[
            ("n", &format!("{from}..{to}")),
            ("x", &format!("{from}.5..{}.0", to + 1)),
        ]);
        let parameters = if from < 0 { &parameters[..1] } else { &parameters[..] };
        match sample(parameters, samples, seed) {
            Ok(found) => {
                prop_assert_eq!(found.len(), samples as usize);
                prop_assert_eq!(&sample(parameters, samples, seed).unwrap(), &found);
                for combination in found {
                    let number: i64 = combination[0].parse().unwrap();
                    prop_assert!((from..=to).contains(&number));
                    if let Some(real) = combination.get(1) {
                        let real: f64 = real.parse().unwrap();
                        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
                        let ends = (from as f64 + 0.5, to as f64 + 1.0);
                        prop_assert!((ends.0..=ends.1).contains(&real));
                    }
                }
            }
            Err(_) => prop_assert!(i64::from(samples) > width + 1),
        }
    }

    #[test]
    fn a_sweep_survives_its_record(
        values in prop::collection::vec(prop::collection::vec("\\PC{0,8}", 2), 1..5), seed: Option<u64>,
    ) {
        let sweep = Sweep {
            parameters: vec!["a".to_owned(), "b".to_owned()],
            combinations: values,
            seed,
            ..Sweep::default()
        };
        let text = serde_json::to_string(&sweep).unwrap();
        prop_assert_eq!(serde_json::from_str::<Sweep>(&text).unwrap(), sweep);
    }

    #[test]
    fn text_without_placeholders_stays(word in "[^{]{0,20}") {
        prop_assert_eq!(fill(&word, |_| Some("x")), word);
    }

    #[test]
    fn any_text_can_be_a_file(text in "[\\PC\n\"{}:,=NaIinfty-]{0,80}") {
        let _ = (parse_file("a.csv", &text), parse_file("a.jsonl", &text), names(&text));
    }
}
