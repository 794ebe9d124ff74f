//! The machine's package sources, turned into ones of source packages. The
//! system's own files stay as they are: apt is given these by options.

/// A file in the format of `*.sources`: each stanza offers sources.
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

/// A file in the format of `sources.list`: a line each.
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
    fn stanzas_offer_sources() {
        let text = "Types: deb\nURIs: mirror\nSuites: one two\n\n# more\ntypes: deb deb-src\n";
        let expected = "Types: deb-src\nURIs: mirror\nSuites: one two\n\n# more\nTypes: deb-src\n";
        assert_eq!(stanzas(text), expected);
    }

    #[test]
    fn lines_offer_sources() {
        let text = "# comment\ndeb [signed-by=/k] mirror one main\ndeb-src mirror one main\n";
        assert_eq!(lines(text), "deb-src [signed-by=/k] mirror one main\n");
    }
}
