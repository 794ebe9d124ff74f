//! Tests of uploads, with a store in memory.
#![allow(clippy::unwrap_used)]

use std::{future::pending, sync::Mutex};

use object_store::memory::InMemory;

use super::*;

fn path() -> Path {
    Path::from("bundles/ab.tar.gz")
}

async fn try_upload(there: u64, said: u64) -> (Result<(), UploadError>, Option<u64>, Vec<u64>) {
    let objects = InMemory::new();
    let told = Mutex::new(Vec::new());
    let progress = |sent: Sent| told.lock().unwrap().push(sent.bytes);
    let reader = Box::new(io::repeat(7).take(there));
    let done = upload(&objects, &path(), reader, said, &progress, pending()).await;
    let kept = objects.head(&path()).await.ok().map(|found| found.size);
    (done, kept, told.into_inner().unwrap())
}

#[tokio::test]
async fn progress_ends_with_the_last_part() {
    let (done, kept, told) = try_upload(10, 10).await;
    assert!(done.is_ok() && kept == Some(10) && told == [10], "{told:?}");
    let size = 2 * PART + 1;
    let (done, kept, told) = try_upload(size, size).await;
    assert!(done.is_ok() && kept == Some(size), "{done:?}");
    assert_eq!((told.len(), told.last().copied()), (3, Some(size)));
}

#[tokio::test]
async fn a_bundle_that_ends_too_early_is_not_kept() {
    for size in [10, 2 * PART] {
        let (done, kept, _) = try_upload(size - 1, size).await;
        assert!(matches!(done, Err(UploadError::Read(_))), "{done:?}");
        assert_eq!(kept, None);
    }
}

#[tokio::test]
async fn what_is_stopped_is_not_kept() {
    for size in [10, 2 * PART] {
        let objects = InMemory::new();
        let reader = Box::new(io::repeat(7).take(size));
        let stop = std::future::ready(());
        // The upload is asked first, but waits for the disk.
        let done = upload(&objects, &path(), reader, size, &|_| {}, stop).await;
        assert!(matches!(done, Err(UploadError::Stopped)), "{done:?}");
        assert!(objects.head(&path()).await.is_err());
    }
}

#[test]
fn parts_grow_so_that_they_stay_few() {
    for size in [1, PART, 80 << 30, 81 << 30, 4 << 40] {
        let part = part_size(size);
        assert!(part >= PART && size.div_ceil(part) <= 10_000, "{size}");
    }
    assert_eq!(part_size(10 * PART), PART);
}
