//! The Kubernetes release whose API is implemented: its kinds, fields and
//! rules.

/// The version as reported by the server.
pub const VERSION: &str = "v1.37.0";
/// The major version.
pub const MAJOR: &str = "1";
/// The minor version.
pub const MINOR: &str = "37";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_match_the_version() {
        let version = format!("v{MAJOR}.{MINOR}.");
        assert!(VERSION.starts_with(&version), "{VERSION}");
    }
}
