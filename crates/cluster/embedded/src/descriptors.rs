//! Raises the limit of open files, because a server with many clients needs many files and the
//! default limit of shells is low.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to the maximum. If that fails, the limit is
/// unchanged and the server can serve fewer clients.
pub(crate) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "cannot raise the limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_the_maximum() {
        raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
