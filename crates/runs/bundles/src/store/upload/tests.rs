//! Tests of uploads, with a store in memory.
#![allow(clippy::unwrap_used)]

use std::{future::pending, sync::Mutex};

use object_store::memory::InMemory;

use super::{super::journal::Journals, *};

/// Three parts and one byte.
const SIZE: u64 = 3 * PART + 1;
/// The value of every byte of a bundle.
const SENT: u8 = 7;
/// The value of every byte of a part that an earlier process uploaded, so that the sender is
/// visible.
const EARLIER: u8 = 9;

fn path() -> Path {
    Path::from("bundles/ab.tar.gz")
}

struct Tried {
    done: Result<(), UploadError>,
    reports: Vec<Sent>,
}

/// Uploads a bundle of `said` announced bytes, but this number of actual bytes.
async fn send(
    objects: &InMemory,
    (there, said): (u64, u64),
    journal: Option<Journal>,
    stop: impl Future<Output = ()>,
) -> Tried {
    let reports = Mutex::new(Vec::new());
    let progress = |sent: Sent| reports.lock().unwrap().push(sent);
    let open = || -> io::Result<Reader> { Ok(Box::new(io::repeat(SENT).take(there))) };
    let path = path();
    let place = Place {
        objects,
        multipart: objects,
        path: &path,
    };
    let done = upload(place, open, said, || journal, &progress, stop).await;
    let reports = reports.into_inner().unwrap();
    Tried { done, reports }
}

/// The object in the store: the first byte of each part, and the size.
async fn kept(objects: &InMemory) -> Option<(Vec<u8>, u64)> {
    let got = objects.get(&path()).await.ok()?.bytes().await.unwrap();
    let parts = got.chunks(usize::try_from(PART).unwrap());
    Some((parts.map(|part| part[0]).collect(), got.len() as u64))
}

fn journals() -> (tempfile::TempDir, Journals) {
    let folder = tempfile::tempdir().unwrap();
    let journals = Journals::new(folder.path().to_owned(), "memory");
    (folder, journals)
}

fn is_empty(folder: &tempfile::TempDir) -> bool {
    std::fs::read_dir(folder.path()).unwrap().count() == 0
}

/// The state after a process was killed when these parts were uploaded.
async fn killed(objects: &InMemory, journals: &Journals, parts: &[usize]) -> String {
    let cut = Cut::of(SIZE);
    let id = objects.create_multipart(&path()).await.unwrap();
    let mut journal = journals.open("ab").unwrap();
    journal.begin(&id, cut.part, cut.size);
    for part in parts {
        let bytes = vec![EARLIER; usize::try_from(cut.length(*part)).unwrap()];
        let arrived = objects.put_part(&path(), &id, *part, bytes.into()).await;
        journal.arrived(*part, &arrived.unwrap().content_id);
    }
    id
}

/// Returns true if the store has an upload.
async fn is_open(objects: &InMemory, id: &str) -> bool {
    let (path, id) = (path(), id.to_owned());
    objects.put_part(&path, &id, 0, "x".into()).await.is_ok()
}

#[tokio::test]
async fn progress_ends_with_the_last_part() {
    for (size, parts) in [(10, 1), (2 * PART + 1, 3)] {
        let objects = InMemory::new();
        let tried = send(&objects, (size, size), None, pending()).await;
        assert!(tried.done.is_ok(), "{:?}", tried.done);
        assert_eq!(kept(&objects).await, Some((vec![SENT; parts], size)));
        assert_eq!(tried.reports.len(), parts);
        let last = tried.reports.last().unwrap();
        assert_eq!((last.bytes, last.earlier), (size, 0));
    }
}

#[tokio::test]
async fn a_truncated_bundle_is_not_kept() {
    for size in [10, 2 * PART] {
        let objects = InMemory::new();
        let (_folder, journals) = journals();
        let tried = send(&objects, (size - 1, size), journals.open("ab"), pending()).await;
        assert!(
            matches!(tried.done, Err(UploadError::Read(_))),
            "{:?}",
            tried.done
        );
        assert_eq!(kept(&objects).await, None);
        assert_eq!(journals.open("ab").unwrap().found(), None);
    }
}

#[tokio::test]
async fn a_stopped_upload_is_not_kept() {
    for size in [10, 2 * PART] {
        let objects = InMemory::new();
        let stop = std::future::ready(());
        let tried = send(&objects, (size, size), None, stop).await;
        assert!(
            matches!(tried.done, Err(UploadError::Stopped)),
            "{:?}",
            tried.done
        );
        assert_eq!(kept(&objects).await, None);
    }
    // The upload of an earlier process is removed, too.
    let objects = InMemory::new();
    let (folder, journals) = journals();
    let id = killed(&objects, &journals, &[0]).await;
    let stop = std::future::ready(());
    let tried = send(&objects, (SIZE, SIZE), journals.open("ab"), stop).await;
    assert!(
        matches!(tried.done, Err(UploadError::Stopped)),
        "{:?}",
        tried.done
    );
    assert!(!is_open(&objects, &id).await && is_empty(&folder));
}

/// Reports the first read, and then waits for the other end of the channel.
struct Blocked {
    begins: Option<tokio::sync::oneshot::Sender<()>>,
    ends: std::sync::mpsc::Receiver<()>,
}

impl io::Read for Blocked {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        if let Some(begins) = self.begins.take() {
            let _ = begins.send(());
        }
        let _ = self.ends.recv();
        Ok(0)
    }
}

#[tokio::test]
async fn an_upload_that_is_stopped_while_it_reads_is_not_kept() {
    for size in [10, 2 * PART] {
        let objects = InMemory::new();
        let (begins, begun) = tokio::sync::oneshot::channel();
        let (end, ends) = std::sync::mpsc::channel();
        let reader = Mutex::new(Some(Blocked {
            begins: Some(begins),
            ends,
        }));
        let open = || -> io::Result<Reader> {
            let blocked = reader.lock().unwrap().take();
            Ok(blocked.map_or_else(|| Box::new(io::empty()) as Reader, |one| Box::new(one)))
        };
        let path = path();
        let place = Place {
            objects: &objects,
            multipart: &objects,
            path: &path,
        };
        let stop = async { begun.await.unwrap() };
        let done = upload(place, open, size, || None, &|_| (), stop).await;
        assert!(matches!(done, Err(UploadError::Stopped)), "{done:?}");
        assert_eq!(kept(&objects).await, None);
        drop(end);
    }
}

#[tokio::test]
async fn the_parts_of_a_killed_process_are_not_uploaded_again() {
    let cases: [(&[usize], [u8; 4]); 4] = [
        (&[], [SENT, SENT, SENT, SENT]),
        (&[1], [SENT, EARLIER, SENT, SENT]),
        (&[0, 3], [EARLIER, SENT, SENT, EARLIER]),
        (&[2, 1, 0, 3], [EARLIER, EARLIER, EARLIER, EARLIER]),
    ];
    for (there, expected) in cases {
        let objects = InMemory::new();
        let (folder, journals) = journals();
        let id = killed(&objects, &journals, there).await;
        let tried = send(&objects, (SIZE, SIZE), journals.open("ab"), pending()).await;
        assert!(tried.done.is_ok(), "{:?}", tried.done);
        assert_eq!(kept(&objects).await, Some((expected.to_vec(), SIZE)));
        assert!(!is_open(&objects, &id).await && is_empty(&folder));
        let earlier = there.iter().map(|part| Cut::of(SIZE).length(*part)).sum();
        let reports = &tried.reports;
        assert!(
            reports.iter().all(|sent| sent.earlier == earlier),
            "{reports:?}"
        );
        assert!(reports[0].bytes >= earlier && reports.is_sorted_by_key(|sent| sent.bytes));
        assert_eq!(reports.last().unwrap().bytes, SIZE);
    }
}

#[tokio::test]
async fn an_unknown_upload_is_restarted() {
    let objects = InMemory::new();
    let (folder, journals) = journals();
    let id = killed(&objects, &journals, &[0, 1]).await;
    objects.abort_multipart(&path(), &id).await.unwrap();
    let tried = send(&objects, (SIZE, SIZE), journals.open("ab"), pending()).await;
    assert!(tried.done.is_ok(), "{:?}", tried.done);
    assert_eq!(kept(&objects).await, Some((vec![SENT; 4], SIZE)));
    assert!(is_empty(&folder));
}

#[tokio::test]
async fn a_missing_part_restarts_the_upload() {
    let objects = InMemory::new();
    let (folder, journals) = journals();
    killed(&objects, &journals, &[0]).await;
    let mut journal = journals.open("ab").unwrap();
    journal.found();
    journal.arrived(2, "never-sent");
    drop(journal);
    let tried = send(&objects, (SIZE, SIZE), journals.open("ab"), pending()).await;
    assert!(tried.done.is_ok(), "{:?}", tried.done);
    assert_eq!(kept(&objects).await, Some((vec![SENT; 4], SIZE)));
    assert!(is_empty(&folder));
}

#[tokio::test]
async fn a_journal_of_other_sizes_or_parts_is_ignored() {
    let cases = [(PART, SIZE - 1, 0), (PART / 2, SIZE, 0), (PART, SIZE, 4)];
    for (part_size, size, part) in cases {
        let objects = InMemory::new();
        let (_folder, journals) = journals();
        let id = killed(&objects, &journals, &[0]).await;
        let mut journal = journals.open("ab").unwrap();
        journal.begin(&id, part_size, size);
        journal.arrived(part, "");
        drop(journal);
        let tried = send(&objects, (SIZE, SIZE), journals.open("ab"), pending()).await;
        assert!(tried.done.is_ok(), "{:?}", tried.done);
        assert_eq!(kept(&objects).await, Some((vec![SENT; 4], SIZE)));
        assert!(!is_open(&objects, &id).await, "it is taken back");
    }
}

#[tokio::test]
async fn two_processes_have_separate_uploads() {
    let objects = InMemory::new();
    let (folder, journals) = journals();
    let other = journals.open("ab").unwrap();
    assert!(journals.open("ab").is_none());
    let tried = send(&objects, (SIZE, SIZE), None, pending()).await;
    assert!(tried.done.is_ok(), "{:?}", tried.done);
    drop(other);
    assert!(!is_empty(&folder), "the other's journal is the other's");
}

#[test]
fn the_part_size_grows_to_limit_the_number_of_parts() {
    for size in [1, PART, 80 << 30, 81 << 30, 4 << 40] {
        let cut = Cut::of(size);
        assert!(cut.part >= PART && cut.parts() <= 10_000, "{size}");
        let lengths = (0..cut.parts()).map(|part| cut.length(part));
        assert_eq!(lengths.sum::<u64>(), size);
    }
    assert_eq!(Cut::of(10 * PART).part, PART);
}
