//! Tests of the delivery of bundles, and of signing for each service.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{super::remote::Effort, *};
use crate::bundle::{PackOptions, pack};

fn bundle(bytes: usize) -> Bundle {
    let folder = tempfile::tempdir().unwrap();
    let mut data = vec![0; bytes];
    StdRng::seed_from_u64(7).fill_bytes(&mut data);
    fs::write(folder.path().join("data"), data).unwrap();
    pack(folder.path(), &PackOptions::default(), |_| {}).unwrap()
}

#[tokio::test]
async fn without_a_store_only_small_bundles_are_delivered() {
    let small = deliver(&bundle(10), None, DeliverOptions::default()).await;
    assert!(matches!(small.unwrap().delivery, Delivery::Secret(_)));
    let large = deliver(&bundle(2 << 20), None, DeliverOptions::default()).await;
    let text = large.unwrap_err().to_string();
    assert!(
        text.contains("s3://…") && text.contains("data (2097152 bytes)"),
        "{text}"
    );
}

#[tokio::test]
async fn a_bundle_is_written_to_a_folder_once_and_atomically() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::Folder(folder.path().to_owned());
    let bundle = bundle(3 << 20);
    let names = |root: &Path| -> Vec<_> {
        let files = fs::read_dir(root.join("bundles")).unwrap();
        files.map(|file| file.unwrap().file_name()).collect()
    };
    let (stop, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let options = DeliverOptions {
        progress: Arc::new(move |_| {
            let _ = stop.send(());
            std::thread::sleep(Duration::from_millis(50));
        }),
        stop: Box::pin(async move { stopped.recv().await.unwrap_or_default() }),
        ..DeliverOptions::default()
    };
    let error = deliver(&bundle, Some(&store), options).await.unwrap_err();
    assert!(matches!(error, StoreError::Stopped), "{error:?}");
    assert!(names(folder.path()).is_empty());

    for times in [4, 0] {
        let calls = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&calls);
        let options = DeliverOptions {
            progress: Arc::new(move |_| *counter.lock().unwrap() += 1),
            ..DeliverOptions::default()
        };
        deliver(&bundle, Some(&store), options).await.unwrap();
        assert_eq!(*calls.lock().unwrap(), times);
    }
    let name = format!("{}.tar.gz", bundle.sha256);
    assert_eq!(names(folder.path()), [name.as_str()]);
    let file = folder.path().join("bundles").join(name);
    assert_eq!(fs::read(&file).unwrap(), bundle.bytes().unwrap());

    // An existing bundle counts as used now, so it is not collected.
    let used = |file: &Path| fs::metadata(file).unwrap().modified().unwrap();
    let begin = std::time::SystemTime::now() - Duration::from_secs(1);
    let opened = fs::File::open(&file).unwrap();
    opened.set_modified(std::time::UNIX_EPOCH).unwrap();
    let options = DeliverOptions::default();
    deliver(&bundle, Some(&store), options).await.unwrap();
    assert!(used(&file) > begin);
}

/// A packed folder whose archive is not in memory.
struct Unchanged {
    folder: tempfile::TempDir,
    options: PackOptions,
}

impl Unchanged {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let code = folder.path().join("code");
        fs::create_dir(&code).unwrap();
        let mut data = vec![0; 6 << 20];
        StdRng::seed_from_u64(7).fill_bytes(&mut data);
        fs::write(code.join("data"), data).unwrap();
        let cache = Some(folder.path().join("cache"));
        let options = PackOptions {
            cache,
            ..PackOptions::default()
        };
        // Recently written files do not count as unchanged.
        std::thread::sleep(Duration::from_millis(2_100));
        let unchanged = Self { folder, options };
        unchanged.pack();
        unchanged
    }

    fn pack(&self) -> Bundle {
        pack(&self.folder.path().join("code"), &self.options, |_| {}).unwrap()
    }

    fn store(&self) -> Store {
        Store::Folder(self.folder.path().join("store"))
    }

    /// The content of the store.
    fn stored(&self) -> Vec<std::path::PathBuf> {
        let files = fs::read_dir(self.folder.path().join("store/bundles")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }
}

#[tokio::test]
async fn an_existing_bundle_is_not_packed_but_a_deleted_one_is() {
    let place = Unchanged::new();
    let (store, counted) = (place.store(), Arc::new(Mutex::new(0)));
    let deliver = async |bundle: &Bundle| {
        *counted.lock().unwrap() = 0;
        let count = Arc::clone(&counted);
        let options = DeliverOptions {
            packing: Arc::new(move |done| *count.lock().unwrap() = done.bytes),
            ..DeliverOptions::default()
        };
        deliver(bundle, Some(&store), options).await.unwrap();
        *counted.lock().unwrap()
    };
    let first = place.pack();
    assert_eq!(deliver(&first).await, 6 << 20);

    let again = place.pack();
    assert_eq!(deliver(&again).await, 0);
    assert!(!again.is_packed());

    // A deleted and a truncated bundle.
    let file = place.stored().remove(0);
    let content = fs::read(&file).unwrap();
    for vanish in [
        |file: &Path| fs::remove_file(file).unwrap(),
        |file: &Path| fs::write(file, "cut off").unwrap(),
    ] {
        vanish(&file);
        assert_eq!(deliver(&place.pack()).await, 6 << 20);
        assert_eq!(fs::read(&file).unwrap(), content);
    }
}

#[tokio::test]
async fn a_delivery_can_be_stopped_while_packing() {
    let place = Unchanged::new();
    let bundle = place.pack();
    let (stop, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let options = DeliverOptions {
        packing: Arc::new(move |_| {
            let _ = stop.send(());
            std::thread::sleep(Duration::from_millis(50));
        }),
        progress: Arc::new(|_| panic!("nothing is sent")),
        stop: Box::pin(async move { stopped.recv().await.unwrap_or_default() }),
        ..DeliverOptions::default()
    };
    let stopped = deliver(&bundle, Some(&place.store()), options).await;
    assert!(matches!(stopped, Err(StoreError::Stopped)), "{stopped:?}");
    assert!(place.stored().is_empty());
    assert!(!bundle.is_packed());

    // Dropping the future also ends the work.
    let (begun, packs) = (Arc::new(AtomicBool::new(false)), Arc::new(()));
    let (flag, witness) = (Arc::clone(&begun), Arc::clone(&packs));
    let options = DeliverOptions {
        packing: Arc::new(move |_| {
            let _ = &witness;
            flag.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(50));
        }),
        ..DeliverOptions::default()
    };
    let store = place.store();
    let delivery = deliver(&bundle, Some(&store), options);
    let begins = async {
        while !begun.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = delivery => panic!("it is not done"),
        () = begins => {}
    }
    // The packing thread drops the progress callback.
    let ends = async {
        while Arc::strong_count(&packs) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ends)
        .await
        .unwrap();
    assert!(!bundle.is_packed());
    assert!(place.stored().is_empty());
}

#[tokio::test]
async fn a_folder_that_changed_before_packing_is_named() {
    let place = Unchanged::new();
    let bundle = place.pack();
    let file = place.folder.path().join("code/data");
    let mut data = fs::read(&file).unwrap();
    data[0] ^= 1;
    fs::write(file, data).unwrap();
    let error = deliver(&bundle, Some(&place.store()), DeliverOptions::default()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, StoreError::Pack(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("code changed before it was packed"), "{text}");
    assert!(place.stored().is_empty());
}

#[test]
fn describing_a_delivery_sends_no_requests() {
    let bundle = bundle(10);
    let store = Store::parse("gs://b/p").unwrap();
    let info = describe(&bundle, Some(&store)).unwrap();
    let place = format!("gs://b/p/bundles/{}.tar.gz", bundle.sha256);
    assert_eq!(info.delivery, Delivery::Url(SignedUrl::new(place)));
}

async fn signed(store: &str, settings: &[(&str, &str)]) -> Result<SignedUrl, StoreError> {
    let Ok(Store::Remote(remote)) = Store::parse(store) else {
        panic!("{store} is not a remote store");
    };
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let opened = remote.open(Effort::Little, &settings)?;
    let day = Duration::from_secs(24 * 3600);
    remote.sign(&opened, &remote.object("ab12"), day).await
}

#[track_caller]
fn assert_signed(url: &SignedUrl, place: &str, parts: &[&str]) {
    assert_eq!(url.place(), place);
    let query = url.secret().split_once('?').unwrap().1;
    for part in parts {
        assert!(query.contains(part), "{part} is not in {query}");
    }
}

#[tokio::test]
async fn amazon_signs() {
    let settings = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("AWS_SESSION_TOKEN", "of-a-session"),
        ("AWS_REGION", "eu-central-1"),
    ];
    let url = signed("s3://bucket/p", &settings).await.unwrap();
    assert_signed(
        &url,
        "https://s3.eu-central-1.amazonaws.com/bucket/p/bundles/ab12.tar.gz",
        &[
            "X-Amz-Expires=86400",
            "X-Amz-Signature=",
            "X-Amz-Security-Token=of-a-session",
        ],
    );
}

#[tokio::test]
async fn azure_signs() {
    let settings = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "acc"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "aHVzaA=="),
    ];
    let url = signed("az://container/p", &settings).await.unwrap();
    assert_signed(
        &url,
        "https://acc.blob.core.windows.net/container/p/bundles/ab12.tar.gz",
        &["sp=r&", "sr=b", "se=", "sig="],
    );
    // A shared access signature cannot sign.
    let settings = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "acc"),
        ("AZURE_STORAGE_SAS_KEY", "sv=1&sig=hush"),
    ];
    let error = signed("az://container/p", &settings).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("use credentials that can sign"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}

#[tokio::test]
async fn google_signs() {
    let key = include_str!("../gcs-key-of-tests.json");
    let settings = [("GOOGLE_SERVICE_ACCOUNT_KEY", key)];
    let url = signed("gs://bucket/p", &settings).await.unwrap();
    assert_signed(
        &url,
        "https://storage.googleapis.com/bucket/p/bundles/ab12.tar.gz",
        &[
            "X-Goog-Expires=86400",
            "X-Goog-Signature=",
            "X-Goog-Credential=tester",
        ],
    );
}

#[tokio::test]
async fn an_incomplete_configuration_is_reported_with_its_variables() {
    let cases = [
        (
            "s3://b",
            ("AWS_ACCESS_KEY_ID", "AKID"),
            "AWS_SECRET_ACCESS_KEY",
        ),
        (
            "az://b",
            ("AZURE_STORAGE_ACCOUNT_KEY", "aHVzaA=="),
            "AZURE_STORAGE_ACCOUNT_NAME",
        ),
        (
            "gs://b",
            ("GOOGLE_SERVICE_ACCOUNT", "/no/such/file"),
            "GOOGLE_SERVICE_ACCOUNT",
        ),
    ];
    for (store, setting, variable) in cases {
        let error = signed(store, &[setting]).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Configuration { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(variable), "{error}");
    }
}
