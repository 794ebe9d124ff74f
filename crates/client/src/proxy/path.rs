//! Paths of requests: one text, or components.

use crate::{
    error::{Error, Result},
    transport::escape,
};

/// The path of a request: one text such as `"/api/v1/nodes"`, which is sent as it is, or
/// an array, slice, or `Vec` of components, which are percent-encoded and joined.
///
/// The first component can have several segments, as those of
/// [`View::api_paths`](crate::View::api_paths) do. In all others, a slash is encoded, so
/// that a name never addresses another object. Empty components, `.`, and `..` are
/// [`Error::Invalid`].
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
    /// The absolute path, percent-encoded.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the component.
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
        for wrong in [&["api", ""][..], &["api", "."], &["api", "..", "x"], &[""]] {
            assert!(wrong.to_path().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn one_path_is_sent_as_it_is() {
        assert_eq!("api/v1/a%2Fb".to_path().unwrap(), "/api/v1/a%2Fb");
        assert_eq!((&&"//version").to_path().unwrap(), "/version");
    }
}
