//! The file `resolv.conf`. Pure, except for reading the file.

use std::{fs::File, io::Read as _, path::Path};

/// The maximum size of the file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// The settings of a resolver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolverConfig {
    /// The addresses of name servers.
    pub nameservers: Vec<String>,
    /// The domains in which short names are searched.
    pub searches: Vec<String>,
    /// Options such as `ndots:5`.
    pub options: Vec<String>,
}

impl ResolverConfig {
    /// Reads a file; a file that does not exist or cannot be read has no settings.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
        if let Err(error) = read {
            tracing::debug!(?path, %error, "cannot read the settings of the resolver");
        }
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Parses the text of a file like the kubelet: the last `search` counts, and the last value of
    /// each option.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut config = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => config.nameservers.extend(words.next().map(str::to_owned)),
                Some("search") => {
                    config.searches = words
                        .filter(|word| *word != ".")
                        .map(|word| word.strip_suffix('.').unwrap_or(word).to_owned())
                        .collect();
                }
                Some("options") => words.for_each(|word| config.set_option(word.to_owned())),
                _ => {}
            }
        }
        config
    }

    /// Adds an option, or replaces the option of the same name.
    pub fn set_option(&mut self, option: String) {
        fn name(option: &str) -> &str {
            option.split(':').next().unwrap_or(option)
        }
        let earlier = self.options.iter_mut();
        match { earlier }.find(|earlier| name(earlier) == name(&option)) {
            Some(earlier) => *earlier = option,
            None => self.options.push(option),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_counts() {
        let text = "# comment\nnameserver 10.0.0.1\nnameserver 10.0.0.2 # second\nnameserver\n\
                    search a.example\nsearch b.example. . c.example\n\
                    options ndots:1 edns0\noptions ndots:2\ndomain d.example\n";
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let expected = ResolverConfig {
            nameservers: words(&["10.0.0.1", "10.0.0.2"]),
            searches: words(&["b.example", "c.example"]),
            options: words(&["ndots:2", "edns0"]),
        };
        assert_eq!(ResolverConfig::parse(text), expected);
        assert_eq!(ResolverConfig::parse(""), ResolverConfig::default());
    }
}
