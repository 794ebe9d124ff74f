//! Sweeps: the values of parameters, files of combinations, placeholders and metrics. Each text is
//! rejected or becomes combinations within the limits. The result is the same each time, and the
//! record of the combinations parses to equal ones. Metrics of any text are within their limits.

use longshore_launcher::{
    metrics::Metrics,
    sweep::{
        MOST_COMBINATIONS, Parameter, Sweep, fill, grid, names, parse_file, parse_values, sample,
    },
};

pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parameters = text.lines().take(4).filter_map(|line| {
        let (name, values) = line.split_once('=')?;
        Some(Parameter {
            name: name.to_owned(),
            values: parse_values(values).ok()?,
        })
    });
    let parameters: Vec<Parameter> = parameters.collect();
    // Larger grids take longer and test nothing more.
    let names_of = || {
        parameters
            .iter()
            .map(|parameter| parameter.name.clone())
            .collect()
    };
    if let Ok(combinations) = grid(&parameters) {
        check_sweep(names_of(), combinations);
    }
    if let Ok(samples) = sample(&parameters, 20, 7) {
        assert_eq!(sample(&parameters, 20, 7).as_ref(), Ok(&samples));
        assert_eq!(samples.len(), 20);
        check_sweep(names_of(), samples);
    }
    for file in ["a.csv", "a.jsonl"] {
        if let Ok((names, combinations)) = parse_file(file, &text) {
            check_sweep(names, combinations);
        }
    }
    // A text without braces has no placeholders.
    let filled = fill(&text, |_| Some(""));
    assert!(filled.len() <= text.len());
    assert!(text.contains('{') || (names(&text).is_empty() && filled == text));
    let mut metrics = Metrics::default();
    metrics.read_json_lines(&text);
    metrics.read_log(&["loss".to_owned()], &text);
    assert!(metrics.iter().count() <= 101);
    for (name, _) in metrics.iter() {
        assert!(!name.contains(char::is_control));
    }
    serde_json::to_string(&metrics.to_json()).unwrap();
}

fn check_sweep(parameters: Vec<String>, combinations: Vec<Vec<String>>) {
    assert!(combinations.len() <= MOST_COMBINATIONS);
    assert!(
        combinations
            .iter()
            .all(|values| values.len() == parameters.len())
    );
    let sweep = Sweep {
        parameters,
        combinations,
        ..Sweep::default()
    };
    if sweep.check().is_ok() {
        let record = serde_json::to_string(&sweep).unwrap();
        assert_eq!(serde_json::from_str::<Sweep>(&record).unwrap(), sweep);
    }
}
