//! What the entrypoints of images are, as the user says: images are not pulled,
//! so nothing else can tell.

use std::str::FromStr;

/// Where references to images of this registry leave it out.
const DEFAULT_REGISTRIES: [&str; 4] = [
    "docker.io/library/",
    "index.docker.io/library/",
    "docker.io/",
    "index.docker.io/",
];

/// The command of an image that a container runs which names none.
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

/// A text that is not of the form `IMAGE=COMMAND`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not of the form IMAGE=COMMAND, as in \"nginx=nginx -g 'daemon off;'\": {why}")]
pub struct ImageEntrypointError {
    text: String,
    why: &'static str,
}

impl ImageEntrypoint {
    /// Whether a container's image is meant: with any tag, unless one is named
    /// here.
    #[must_use]
    pub fn is_of(&self, image: &str) -> bool {
        let image = short(image);
        let without_digest = image.split('@').next().unwrap_or(image);
        [image, without_digest, without_tag(without_digest)].contains(&short(&self.image))
    }

    /// The command, in words.
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// As it was written.
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

/// The entrypoints that a node knows; the last one that fits counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImageEntrypoints(pub(crate) Vec<ImageEntrypoint>);

impl ImageEntrypoints {
    /// The command of an image.
    pub(crate) fn find(&self, image: &str) -> Option<&[String]> {
        let mut known = self.0.iter().rev();
        let found = known.find(|entrypoint| entrypoint.is_of(image))?;
        Some(found.command())
    }
}

/// Without the registry that need not be named.
fn short(image: &str) -> &str {
    let mut registries = DEFAULT_REGISTRIES.iter();
    registries
        .find_map(|registry| image.strip_prefix(registry))
        .unwrap_or(image)
}

/// A colon in front of a slash is a port.
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
    fn which_image_is_meant() {
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
    fn the_last_one_counts_and_wrong_ones_say_why() {
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
}
