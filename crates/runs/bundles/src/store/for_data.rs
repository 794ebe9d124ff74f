//! The parts of the delivery of bundles that the delivery of data needs.

pub(crate) use super::{
    download::{Wanted, check, fetch_with},
    http::client,
    journal::Journals,
    listing::not_silent,
    options::LONGEST,
    reason::{Cause, reason},
    remote::{Effort, Opened},
    upload::{UploadError, upload},
};
