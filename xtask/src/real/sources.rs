//! Converts the apt sources of this machine to sources of source packages. The files of the
//! system are not changed: options of apt select the converted ones.

/// Converts a file in the deb822 format (`*.sources`).
pub(super) fn stanzas(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        match line.split_once(':') {
            Some((field, _)) if field.eq_ignore_ascii_case("types") => {
                out.push_str("Types: deb-src");
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// Converts a file in the one-line format (`sources.list`).
pub(super) fn lines(text: &str) -> String {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("deb "))
        .map(|rest| format!("deb-src {rest}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_are_converted() {
        let text = "Types: deb\nURIs: mirror\nSuites: one two\n\n# more\ntypes: deb deb-src\n";
        let expected = "Types: deb-src\nURIs: mirror\nSuites: one two\n\n# more\nTypes: deb-src\n";
        assert_eq!(stanzas(text), expected);
    }

    #[test]
    fn lines_are_converted() {
        let text = "# comment\ndeb [signed-by=/k] mirror one main\ndeb-src mirror one main\n";
        assert_eq!(lines(text), "deb-src [signed-by=/k] mirror one main\n");
    }
}
