//! Open files: a server with many clients needs many, and the limit that
//! shells set by default is low.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files as far as it may be raised. Where that
/// fails it stays as it is: fewer clients find room then.
pub(crate) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
