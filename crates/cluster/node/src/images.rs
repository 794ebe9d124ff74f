//! User-supplied configuration of images: entrypoints and users. Images are not
//! pulled, so the node cannot know them.

use std::str::FromStr;

/// Registries that image references omit.
const DEFAULT_REGISTRIES: [&str; 4] = [
    "docker.io/library/",
    "index.docker.io/library/",
    "docker.io/",
    "index.docker.io/",
];

/// The command that containers of an image run if they specify none.
///
/// ```
/// use longshore_node::ImageEntrypoint;
///
/// let entrypoint: ImageEntrypoint = "nginx=nginx -g 'daemon off;'".parse().unwrap();
/// assert!(entrypoint.is_of("docker.io/library/nginx:1.29"));
/// assert_eq!(entrypoint.command(), ["nginx", "-g", "daemon off;"]);
/// assert!("nginx".parse::<ImageEntrypoint>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageEntrypoint {
    image: String,
    command: Vec<String>,
    text: String,
}

/// The error for a text without the form `IMAGE=COMMAND`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not of the form IMAGE=COMMAND, as in \"nginx=nginx -g 'daemon off;'\": {why}")]
pub struct ImageEntrypointError {
    text: String,
    why: &'static str,
}

impl ImageEntrypoint {
    /// Returns true if a container's image matches, with any tag unless this entrypoint specifies
    /// one.
    #[must_use]
    pub fn is_of(&self, image: &str) -> bool {
        is_of(&self.image, image)
    }

    /// Returns the arguments of the command.
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Returns the original text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for ImageEntrypoint {
    type Err = ImageEntrypointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = |why| ImageEntrypointError {
            text: text.to_owned(),
            why,
        };
        let (image, command) = text.split_once('=').ok_or_else(|| fault("it has no '='"))?;
        if image.is_empty() || image.contains(char::is_whitespace) {
            return Err(fault("before the '=' stands no image"));
        }
        let command = shlex::split(command).ok_or_else(|| fault("a quote is not closed"))?;
        if command.is_empty() {
            return Err(fault("the command is empty"));
        }
        Ok(Self {
            image: image.to_owned(),
            command,
            text: text.to_owned(),
        })
    }
}

/// The configured entrypoints; the last match wins.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImageEntrypoints(pub(crate) Vec<ImageEntrypoint>);

impl ImageEntrypoints {
    /// Returns the command of an image.
    pub(crate) fn find(&self, image: &str) -> Option<&[String]> {
        let mut known = self.0.iter().rev();
        let found = known.find(|entrypoint| entrypoint.is_of(image))?;
        Some(found.command())
    }
}

/// The user of an image, as the instruction `USER` of a Dockerfile sets it. The
/// containers of the image run as this user unless the pod sets `runAsUser`.
///
/// ```
/// use longshore_node::ImageUser;
///
/// let user: ImageUser = "quay.io/jetstack/cert-manager-webhook=1000:1000".parse().unwrap();
/// assert_eq!(user.as_str(), "quay.io/jetstack/cert-manager-webhook=1000:1000");
/// assert!("nginx=www-data".parse::<ImageUser>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUser {
    image: String,
    ids: UserIds,
    text: String,
}

/// The number of a user, and the number of the user's group if the image sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserIds {
    pub(crate) user: u32,
    pub(crate) group: Option<u32>,
}

/// The error for a text without the form `IMAGE=UID[:GID]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not of the form IMAGE=UID[:GID], as in \"nginx=101:101\": {why}")]
pub struct ImageUserError {
    text: String,
    why: &'static str,
}

impl ImageUser {
    /// Returns the original text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for ImageUser {
    type Err = ImageUserError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = |why| ImageUserError {
            text: text.to_owned(),
            why,
        };
        let (image, ids) = text.split_once('=').ok_or_else(|| fault("it has no '='"))?;
        if image.is_empty() || image.contains(char::is_whitespace) {
            return Err(fault("before the '=' stands no image"));
        }
        let number = |id: &str| {
            // The largest number means "no change" to the kernel.
            let number = id.parse().ok().filter(|number| *number != u32::MAX);
            number.ok_or_else(|| fault("an id is not a number"))
        };
        let (user, group) = match ids.split_once(':') {
            Some((user, group)) => (user, Some(number(group)?)),
            None => (ids, None),
        };
        Ok(Self {
            image: image.to_owned(),
            ids: UserIds {
                user: number(user)?,
                group,
            },
            text: text.to_owned(),
        })
    }
}

/// The configured users; the last match wins.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImageUsers(pub(crate) Vec<ImageUser>);

impl ImageUsers {
    /// Returns the user of a container's image.
    pub(crate) fn find(&self, image: Option<&str>) -> Option<UserIds> {
        let image = image?;
        let mut known = self.0.iter().rev();
        Some(known.find(|user| is_of(&user.image, image))?.ids)
    }
}

/// Returns true if a configured image, with or without a tag, matches a container's image.
fn is_of(known: &str, image: &str) -> bool {
    let image = without_default_registry(image);
    let without_digest = image.split('@').next().unwrap_or(image);
    [image, without_digest, without_tag(without_digest)].contains(&without_default_registry(known))
}

/// Removes a default registry.
fn without_default_registry(image: &str) -> &str {
    let mut registries = DEFAULT_REGISTRIES.iter();
    registries
        .find_map(|registry| image.strip_prefix(registry))
        .unwrap_or(image)
}

/// A colon before a slash belongs to a port.
fn without_tag(image: &str) -> &str {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn image_references_match() {
        let is_of = |known: &str, image: &str| {
            let known: ImageEntrypoint = format!("{known}=true").parse().unwrap();
            known.is_of(image)
        };
        assert!(is_of("nginx", "nginx"));
        assert!(is_of("nginx", "nginx:1.29@sha256:00"));
        assert!(is_of("nginx", "docker.io/library/nginx@sha256:00"));
        assert!(is_of("docker.io/nginx", "nginx:1"));
        assert!(is_of("localhost:5000/a", "localhost:5000/a:2"));
        assert!(is_of("nginx:1.29", "nginx:1.29@sha256:00"));
        assert!(is_of("nginx@sha256:00", "nginx@sha256:00"));
        assert!(!is_of("nginx:1.29", "nginx"));
        assert!(!is_of("nginx", "bitnami/nginx"));
        assert!(!is_of("a", "localhost:5000/a"));
    }

    #[test]
    fn the_last_entrypoint_wins_and_invalid_ones_are_rejected() {
        let known = ["a=one", "a:2=two three"].map(|text| text.parse().unwrap());
        let known = ImageEntrypoints(known.to_vec());
        assert_eq!(known.find("a:1").unwrap(), ["one"]);
        assert_eq!(known.find("a:2").unwrap(), ["two", "three"]);
        assert_eq!(known.find("b"), None);
        for (text, why) in [
            ("a", "it has no '='"),
            ("=b", "before the '=' stands no image"),
            ("a=", "the command is empty"),
            ("a='b", "a quote is not closed"),
        ] {
            let error = text.parse::<ImageEntrypoint>().unwrap_err().to_string();
            assert!(error.ends_with(why), "{error}");
        }
    }

    #[test]
    fn the_last_user_wins_and_invalid_ones_are_rejected() {
        let known = ["a=1000", "a:2=1001:44"].map(|text| text.parse().unwrap());
        let known = ImageUsers(known.to_vec());
        let ids = |user, group| Some(UserIds { user, group });
        assert_eq!(known.find(Some("docker.io/a:1")), ids(1000, None));
        assert_eq!(known.find(Some("a:2@sha256:00")), ids(1001, Some(44)));
        assert_eq!(known.find(Some("b")), None);
        assert_eq!(known.find(None), None);
        for (text, why) in [
            ("a", "it has no '='"),
            ("=1", "before the '=' stands no image"),
            ("a=www-data", "an id is not a number"),
            ("a=1:", "an id is not a number"),
            ("a=4294967295", "an id is not a number"),
        ] {
            let error = text.parse::<ImageUser>().unwrap_err().to_string();
            assert!(error.ends_with(why), "{error}");
        }
    }
}
