//! The uploads of tasks' outputs to a store: signed URLs in the run's Secret, one for each object,
//! whose keys depend only on the task.

use std::{
    collections::BTreeMap,
    io::{self, Read as _, Write as _},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};

use super::{
    OutputRequest,
    packed::{MOST_PARTS, PART_LIMIT},
};
use crate::store::SignedUrl;

/// The file's name in the run's Secret.
pub(crate) const UPLOADS_FILE: &str = "outputs.json.gz";
/// The maximum size of the file. A Secret holds 1 MiB, and also contains the run's configuration.
pub(crate) const LARGEST_UPLOADS: usize = 960 * 1024;
/// The maximum size of the uncompressed content.
const LARGEST_CONTENT: u64 = 256 << 20;

/// The uploads of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Uploads {
    /// The roles that have outputs.
    pub(crate) roles: BTreeMap<String, RoleUploads>,
}

/// The uploads of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RoleUploads {
    pub(crate) request: OutputRequest,
    /// The uploads of the tasks, by index. Empty if the tasks write to a claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tasks: Vec<TaskUploads>,
}

/// The uploads of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskUploads {
    /// The URLs for an ended attempt: first of the object with the list, then of the objects before
    /// it.
    pub(crate) ended: Vec<SignedUrl>,
    /// The URL for a running attempt.
    pub(crate) running: SignedUrl,
}

/// The path at which tasks mount the claim for their outputs.
pub(crate) const CLAIM_DIR: &str = "/longshore/outputs";
/// The name prefix of incomplete files in the claim.
pub(crate) const PART: &str = ".part-";
/// The name of the claim's volume.
pub(crate) const CLAIM_VOLUME: &str = "longshore-outputs";

/// The folder of a run's objects, with which their keys begin.
pub(crate) fn folder(namespace: &str, run: &str) -> String {
    format!("outputs/{namespace}/{run}")
}

/// The name of an object of an ended attempt: the object with the list, or an earlier part.
pub(crate) fn ended(role: &str, index: u32, part: usize) -> String {
    match part {
        0 => format!("{role}.{index}.ended"),
        part => format!("{role}.{index}.ended.{part}"),
    }
}

/// The name of the object of a running attempt.
pub(crate) fn running(role: &str, index: u32) -> String {
    format!("{role}.{index}.running")
}

/// The maximum number of objects of an ended task.
pub(crate) fn parts(request: &OutputRequest) -> u64 {
    request.max_bytes.div_ceil(PART_LIMIT).clamp(1, MOST_PARTS)
}

impl Uploads {
    /// The names of all objects of a role's tasks, in the order in which [`RoleUploads::of`]
    /// expects their URLs.
    pub(crate) fn names(role: &str, count: u32, request: &OutputRequest) -> Vec<String> {
        let parts = usize::try_from(parts(request)).unwrap_or(1);
        let names = (0..count).flat_map(|index| {
            let ended = (0..parts).map(move |part| ended(role, index, part));
            std::iter::once(running(role, index)).chain(ended)
        });
        names.collect()
    }

    /// The content of the file.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut file = GzEncoder::new(Vec::new(), Compression::best());
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        file.finish()
    }

    /// Reads the content of the file.
    pub(crate) fn parse(bytes: &[u8]) -> io::Result<Self> {
        let mut text = Vec::new();
        let file = GzDecoder::new(bytes);
        file.take(LARGEST_CONTENT).read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

impl RoleUploads {
    /// The uploads with the URLs of [`Uploads::names`].
    pub(crate) fn of(request: OutputRequest, urls: &[SignedUrl]) -> Self {
        let parts = usize::try_from(parts(&request)).unwrap_or(1);
        let tasks = urls.chunks(parts + 1).filter_map(|urls| {
            let (running, ended) = urls.split_first()?;
            Some(TaskUploads {
                ended: ended.to_vec(),
                running: running.clone(),
            })
        });
        Self {
            tasks: tasks.collect(),
            request,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_task_has_its_urls_and_thousands_fit_a_secret() {
        let request = OutputRequest {
            patterns: vec!["a".to_owned()],
            max_bytes: PART_LIMIT + 1,
            max_files: 10,
            scheduled: false,
            store: Some("s3://b/p".to_owned()),
            claim: None,
            every: None,
        };
        let names = Uploads::names("main", 1500, &request);
        assert_eq!(
            names[3..6],
            ["main.1.running", "main.1.ended", "main.1.ended.1"]
        );
        let url = |(number, name): (usize, &String)| {
            // Signatures look random.
            let signature = crate::bundle::hexadecimal(&<sha2::Sha256 as sha2::Digest>::digest(
                number.to_le_bytes(),
            ));
            SignedUrl::new(format!(
                "https://s3.example/b/p/{name}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature={signature}"
            ))
        };
        let urls: Vec<_> = names.iter().enumerate().map(url).collect();
        let role = RoleUploads::of(request, &urls);
        assert_eq!(role.tasks.len(), 1500);
        assert_eq!(role.tasks[1].ended, urls[4..6]);
        let uploads = Uploads {
            roles: [("main".to_owned(), role)].into(),
        };
        let bytes = uploads.to_bytes().unwrap();
        assert!(bytes.len() < LARGEST_UPLOADS, "{}", bytes.len());
        assert_eq!(Uploads::parse(&bytes).unwrap(), uploads);
    }
}
