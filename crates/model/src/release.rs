//! The release of Kubernetes whose API is implemented here: its kinds, their fields
//! and rules.

/// The version, as a server tells it.
pub const VERSION: &str = "v1.37.0";
/// Its first number.
pub const MAJOR: &str = "1";
/// Its second number.
pub const MINOR: &str = "37";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_those_of_the_version() {
        let version = format!("v{MAJOR}.{MINOR}.");
        assert!(VERSION.starts_with(&version), "{VERSION}");
    }
}
