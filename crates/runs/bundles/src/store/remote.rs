//! Connects to an object store, with credentials and endpoint from the environment, as read by
//! `from_env` of the `object_store` crate.

use std::{sync::Arc, time::Duration};

use object_store::{
    ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    multipart::MultipartStore,
    path::Path,
    signer::Signer,
};

use super::{
    Remote, Service, SignedUrl, StoreError,
    connector::RetryAfterConnector,
    http::choose_tls,
    reason::{Cause, reason},
    upload::Place,
};

/// The variables for the timeout of a request.
const TIMEOUTS: [&str; 3] = ["AWS_TIMEOUT", "GOOGLE_TIMEOUT", "AZURE_TIMEOUT"];

/// The effort to retry a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// For the first request, so that a wrong name is reported soon.
    Little,
    /// For outputs, which may exist nowhere else.
    Some,
    /// For the parts of a bundle, so that uploaded data is not lost.
    Much,
}

impl Effort {
    /// The timeout of a request. Uploading a part over a slow connection takes time.
    fn timeout(self) -> &'static str {
        match self {
            Self::Little | Self::Some => "20 seconds",
            Self::Much => "5 minutes",
        }
    }

    fn retries(self) -> RetryConfig {
        let (max_retries, seconds) = match self {
            Self::Little => (2, 10),
            Self::Some => (5, 30),
            Self::Much => (8, 120),
        };
        RetryConfig {
            max_retries,
            retry_timeout: Duration::from_secs(seconds),
            ..RetryConfig::default()
        }
    }
}

/// An object store and its signer.
pub(crate) struct Opened {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(super) multipart: Arc<dyn MultipartStore>,
    pub(super) signer: Arc<dyn Signer>,
    /// The identity of the store, because several services can have buckets of the same name.
    pub(crate) identity: String,
}

impl Opened {
    fn of<T: ObjectStore + MultipartStore + Signer>(store: T, identity: String) -> Self {
        let store = Arc::new(store);
        Self {
            objects: store.clone(),
            multipart: store.clone(),
            signer: store,
            identity,
        }
    }

    /// The place of an object in the store.
    pub(crate) fn place<'a>(&'a self, path: &'a Path) -> Place<'a> {
        Place {
            objects: self.objects.as_ref(),
            multipart: self.multipart.as_ref(),
            path,
        }
    }
}

impl Remote {
    /// Creates the client without sending a request.
    pub(crate) fn open(
        &self,
        effort: Effort,
        settings: &[(String, String)],
    ) -> Result<Opened, StoreError> {
        choose_tls();
        let retries = effort.retries();
        let timeout = (!TIMEOUTS.iter().any(|name| std::env::var_os(name).is_some()))
            .then_some(("timeout", effort.timeout()));
        let settings = settings.iter().map(|(key, value)| (&**key, &**value));
        let settings = timeout.into_iter().chain(settings);
        // Keys of other services are ignored, as in the environment.
        macro_rules! open {
            ($builder:expr, $key:ident, [$($setting:ident),+]) => {{
                let builder = settings
                    .filter_map(|(key, value)| {
                        Some((key.to_ascii_lowercase().parse::<$key>().ok()?, value))
                    })
                    .fold($builder, |builder, (key, value)| {
                        builder.with_config(key, value)
                    })
                    .with_retry(retries)
                    .with_http_connector(RetryAfterConnector);
                let settings = [$(builder.get_config_value(&$key::$setting)),+];
                let identity = format!("{:?} {} {settings:?}", self.service, self.bucket);
                builder.build().map(|store| Opened::of(store, identity))
            }};
        }
        let bucket = &self.bucket;
        let opened = match self.service {
            Service::S3 => open!(
                AmazonS3Builder::from_env().with_bucket_name(bucket),
                AmazonS3ConfigKey,
                [Endpoint]
            ),
            Service::Gcs => open!(
                GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket),
                GoogleConfigKey,
                [BaseUrl]
            ),
            Service::Azure => open!(
                MicrosoftAzureBuilder::from_env().with_container_name(bucket),
                AzureConfigKey,
                [AccountName, Endpoint, UseEmulator]
            ),
        };
        opened.map_err(|error| StoreError::Configuration {
            store: self.to_string(),
            problem: reason(&error).1,
            remedy: self.variables(),
        })
    }

    /// The path of a bundle within the bucket.
    pub(super) fn object(&self, sha256: &str) -> Path {
        Path::from(self.path(sha256))
    }

    /// A signed URL to download a bundle, with this validity.
    pub(crate) async fn sign(
        &self,
        opened: &Opened,
        object: &Path,
        validity: Duration,
    ) -> Result<SignedUrl, StoreError> {
        let url = opened
            .signer
            .signed_url(reqwest::Method::GET, object, validity);
        match url.await {
            Ok(url) => Ok(SignedUrl::new(url)),
            Err(error) => Err(StoreError::Sign {
                store: self.to_string(),
                problem: reason(&error).1,
            }),
        }
    }

    /// Signed URLs to download objects, with this validity, in their order.
    pub(crate) async fn sign_all(
        &self,
        opened: &Opened,
        objects: &[Path],
        validity: Duration,
    ) -> Result<Vec<SignedUrl>, StoreError> {
        let urls = opened
            .signer
            .signed_urls(reqwest::Method::GET, objects, validity);
        match urls.await {
            Ok(urls) => Ok(urls.into_iter().map(SignedUrl::new).collect()),
            Err(error) => Err(StoreError::Sign {
                store: self.to_string(),
                problem: reason(&error).1,
            }),
        }
    }

    /// The error for a failed listing of objects.
    pub(crate) fn unlisted(&self, error: &object_store::Error) -> StoreError {
        match self.refusal(error) {
            StoreError::Refused { problem, .. } => StoreError::NotListed {
                store: self.to_string(),
                problem,
                remedy: self.variables(),
            },
            other => other,
        }
    }

    /// The variables that contain the credentials.
    pub(super) fn variables(&self) -> &'static str {
        match self.service {
            Service::S3 => {
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION (and AWS_ENDPOINT_URL for a server that is not Amazon's)"
            }
            Service::Gcs => "GOOGLE_SERVICE_ACCOUNT (a service account's key file)",
            Service::Azure => "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY",
        }
    }

    /// The setting that permits endpoints without TLS.
    fn allow_http(&self) -> &'static str {
        match self.service {
            Service::S3 => "AWS_ALLOW_HTTP=true",
            Service::Gcs => "GOOGLE_ALLOW_HTTP=true",
            Service::Azure => "AZURE_ALLOW_HTTP=true",
        }
    }

    /// The error for a failed upload.
    pub(crate) fn refusal(&self, error: &object_store::Error) -> StoreError {
        let store = self.to_string();
        let remedy = self.variables();
        let (cause, problem) = reason(error);
        let failed = |remedy: &str| StoreError::Failed {
            store: store.clone(),
            problem: problem.clone(),
            remedy: remedy.to_owned(),
        };
        match cause {
            Cause::NoCredentials => StoreError::NoCredentials {
                store,
                problem,
                remedy,
            },
            Cause::Denied => StoreError::Refused {
                store,
                problem,
                remedy,
            },
            Cause::Missing => StoreError::NoBucket { store, problem },
            Cause::Unreachable => failed(match self.service {
                Service::S3 => "check AWS_ENDPOINT_URL, AWS_REGION and the network",
                Service::Gcs => "check the network, and GOOGLE_BASE_URL if it is set",
                Service::Azure => {
                    "check AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ENDPOINT and the network"
                }
            }),
            Cause::PlainHttp => failed(&format!(
                "the endpoint does not use TLS: use https, or set {}",
                self.allow_http()
            )),
            Cause::Elsewhere => failed("the bucket is in another region: set AWS_REGION"),
            Cause::Redirect => failed(
                "redirects are not followed: give the address that the store redirects to as the endpoint, and check that no proxy or login page is in between",
            ),
            Cause::Full => StoreError::Full { store, problem },
            Cause::Busy | Cause::Other => failed("try again"),
        }
    }

    /// The error for a failed access to an object other than a bundle.
    pub(super) fn no_object(
        &self,
        action: &'static str,
        error: &object_store::Error,
    ) -> StoreError {
        let remedy = match reason(error).0 {
            Cause::NoCredentials | Cause::Missing | Cause::Full => return self.refusal(error),
            Cause::Denied => format!(
                "check {}, and that they permit it (see docs/stores.md)",
                self.variables()
            ),
            Cause::Unreachable => "check the endpoint and the network".to_owned(),
            Cause::PlainHttp => format!("use https, or set {}", self.allow_http()),
            Cause::Elsewhere => "the bucket is in another region: set AWS_REGION".to_owned(),
            Cause::Redirect => "redirects are not followed: check the endpoint".to_owned(),
            Cause::Busy | Cause::Other => "try again".to_owned(),
        };
        StoreError::Object {
            action,
            store: self.to_string(),
            problem: reason(error).1,
            remedy,
        }
    }

    /// The error for an interrupted upload whose parts are kept.
    pub(crate) fn lost(&self, error: &object_store::Error) -> StoreError {
        StoreError::Failed {
            store: self.to_string(),
            problem: reason(error).1,
            remedy: "the uploaded parts are kept; the next attempt resumes the upload".to_owned(),
        }
    }
}
