//! The paths of requests: strings or arrays of components.

use crate::{
    error::{Error, Result},
    transport::escape,
};

/// The path of a request: a string such as `"/api/v1/nodes"`, which is sent unchanged, or an
/// array, slice, or `Vec` of components, which are percent-encoded and joined.
///
/// The first component can have several segments, such as a path from
/// [`View::api_paths`](crate::View::api_paths). In all others, slashes are encoded, so that a name
/// never addresses another object. Empty components, `.`, and `..` are invalid.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// let proxy = cluster.proxy();
/// let by_path = proxy.get("/api/v1/namespaces/default", &[]).await?;
/// let by_components = proxy.get(["api", "v1", "namespaces", "default"], &[]).await?;
/// assert_eq!(by_path, by_components);
///
/// let paths = cluster.namespaces().api_paths().await?;
/// let by_api_path = proxy.get([&*paths[0], "namespaces", "default"], &[]).await?;
/// assert_eq!(by_path, by_api_path);
///
/// let refused = proxy.get(["api", "v1", "namespaces", ""], &[]).await.unwrap_err();
/// assert_eq!(
///     refused.to_string(),
///     r#"invalid path component "": it must not be empty, ".", or "..""#,
/// );
/// # Ok(()) });
/// ```
pub trait ApiPath: sealed::Sealed + Send {
    /// Returns the absolute path, percent-encoded.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid component. The message contains it.
    fn to_path(&self) -> Result<String>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for str {}
    impl Sealed for String {}
    impl<S> Sealed for [S] {}
    impl<S, const N: usize> Sealed for [S; N] {}
    impl<S> Sealed for Vec<S> {}
    impl<P: Sealed + ?Sized> Sealed for &P {}
}

impl ApiPath for str {
    fn to_path(&self) -> Result<String> {
        Ok(format!("/{}", self.trim_start_matches('/')))
    }
}

impl ApiPath for String {
    fn to_path(&self) -> Result<String> {
        self.as_str().to_path()
    }
}

impl<S: AsRef<str> + Send> ApiPath for [S] {
    fn to_path(&self) -> Result<String> {
        let Some((first, others)) = self.split_first() else {
            return Ok("/".to_owned());
        };
        let first = first.as_ref().trim_matches('/').split('/');
        let others = others.iter().map(AsRef::as_ref);
        let mut path = String::new();
        for segment in first.chain(others) {
            if matches!(segment, "" | "." | "..") {
                return Err(Error::Invalid(format!(
                    r#"invalid path component {segment:?}: it must not be empty, ".", or "..""#
                )));
            }
            path.push('/');
            path.push_str(&escape(segment));
        }
        Ok(path)
    }
}

impl<S: AsRef<str> + Send, const N: usize> ApiPath for [S; N] {
    fn to_path(&self) -> Result<String> {
        self.as_slice().to_path()
    }
}

impl<S: AsRef<str> + Send> ApiPath for Vec<S> {
    fn to_path(&self) -> Result<String> {
        self.as_slice().to_path()
    }
}

impl<P: ApiPath + Sync + ?Sized> ApiPath for &P {
    fn to_path(&self) -> Result<String> {
        (**self).to_path()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn components_are_encoded_and_joined() {
        let path = |components: &[&str]| components.to_path().unwrap();
        assert_eq!(path(&["api", "v1", "nodes"]), "/api/v1/nodes");
        assert_eq!(
            path(&["/apis/apps/v1/", "namespaces"]),
            "/apis/apps/v1/namespaces"
        );
        assert_eq!(
            path(&["/api/v1", "secrets", "../a b?c%/é"]),
            "/api/v1/secrets/..%2Fa%20b%3Fc%25%2F%C3%A9"
        );
        assert_eq!(path(&[]), "/");
        assert_eq!(vec!["a".to_owned()].to_path().unwrap(), "/a");
        for invalid in [&["api", ""][..], &["api", "."], &["api", "..", "x"], &[""]] {
            assert!(invalid.to_path().is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn a_string_is_sent_unchanged() {
        assert_eq!("api/v1/a%2Fb".to_path().unwrap(), "/api/v1/a%2Fb");
        assert_eq!((&&"//version").to_path().unwrap(), "/version");
    }
}
