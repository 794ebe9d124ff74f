//! Bundles in an S3 store: uploaded once, in parts, and downloaded by a signed URL, with
//! the error message of each failure.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use super::s3::{BUCKET, Fault, S3, SECRET};
use longshore_launcher::{
    Bundle, BundleInfo, PackOptions, Store,
    bootstrap::{BootstrapError, Places, fetch_into},
    bundle::pack,
    pod::{Download, PodBundle, PodConfig, PodRole},
    store::{DeliverOptions, Delivery, Sent, SignedUrl, StoreError, again, deliver},
};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Two parts and a remainder.
const SIZE: usize = (16 << 20) + 1000;

/// A bundle of this size. Packing it is slow, so concurrent tests share it; the last one
/// removes its file.
fn large() -> Arc<Bundle> {
    static LARGE: Mutex<Weak<Bundle>> = Mutex::new(Weak::new());
    let mut shared = LARGE.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let made = Arc::new(bundle(SIZE));
        *shared = Arc::downgrade(&made);
        made
    })
}

/// A bundle with an incompressible file of this many bytes.
fn bundle(bytes: usize) -> Bundle {
    let folder = tempfile::tempdir().unwrap();
    let mut data = vec![0; bytes];
    StdRng::seed_from_u64(7).fill_bytes(&mut data);
    fs::write(folder.path().join("data"), data).unwrap();
    pack(folder.path(), &PackOptions::default(), |_| {}).unwrap()
}

fn store() -> Store {
    Store::parse(&format!("s3://{BUCKET}/team/a")).unwrap()
}

fn options(server: &S3) -> DeliverOptions {
    DeliverOptions {
        settings: server.settings(),
        ..DeliverOptions::default()
    }
}

async fn send(server: &S3, bundle: &Bundle) -> Result<BundleInfo, StoreError> {
    deliver(bundle, Some(&store()), options(server)).await
}

fn object(bundle: &Bundle) -> String {
    format!("team/a/bundles/{}.tar.gz", bundle.sha256)
}

fn url(info: &BundleInfo) -> &SignedUrl {
    match &info.delivery {
        Delivery::Url(url) => url,
        other => panic!("delivered by {other:?}"),
    }
}

/// Downloads a bundle as a pod does.
fn fetch(info: &BundleInfo) -> Result<tempfile::TempDir, BootstrapError> {
    let pod = tempfile::tempdir().unwrap();
    let places = Places {
        home: pod.path().join("home"),
        config: pod.path().join("config"),
        bundle: pod.path().join("nothing-is-mounted"),
        data: pod.path().join("data"),
    };
    fs::create_dir(&places.home).unwrap();
    fs::create_dir(&places.config).unwrap();
    let config = PodConfig {
        run: "demo-ab2cd".into(),
        scheduled: false,
        sweep: None,
        restarts: Default::default(),
        idle: None,
        data: Vec::new(),
        data_cache_limit: None,
        roles: vec![PodRole {
            name: "main".into(),
            tasks: vec!["localhost:1".into()],
            env: BTreeMap::new(),
            accelerators: 0,
            service: false,
            grace: 30,
            links: BTreeMap::new(),
        }],
        peer_timeout: 0,
        bundle: Some(PodBundle {
            sha256: info.sha256.clone(),
            file: "bundle.tar.gz".into(),
            download: Some(Download {
                url: url(info).clone(),
                size: info.size,
            }),
        }),
    };
    let text = serde_json::to_vec(&config).unwrap();
    fs::write(places.config.join("run.json"), text).unwrap();
    fetch_into(&places).map(|()| pod)
}

/// The error message, which must not contain a secret.
#[track_caller]
fn error_message(info: &BundleInfo) -> String {
    let error = fetch(info).unwrap_err();
    let text = format!("{error}");
    let signature = url(info).secret().split_once('?').unwrap().1;
    for hidden in [signature, "X-Amz-Signature", SECRET] {
        assert!(!format!("{text} {error:?}").contains(hidden), "{error:?}");
    }
    text
}

fn with<'a>(seen: &'a [String], word: &str) -> Vec<&'a String> {
    seen.iter().filter(|line| line.contains(word)).collect()
}

#[tokio::test]
async fn a_large_bundle_is_uploaded_once_in_parts_and_downloaded_without_credentials() {
    let server = S3::start();
    let bundle = large();
    let progress: Arc<Mutex<Vec<Sent>>> = Arc::default();
    let listener = Arc::clone(&progress);
    let options = DeliverOptions {
        progress: Arc::new(move |sent| listener.lock().unwrap().push(sent)),
        ..options(&server)
    };
    let info = deliver(&bundle, Some(&store()), options).await.unwrap();
    let seen = server.seen();
    assert!(seen[0].starts_with("HEAD /"), "{seen:#?}");
    assert_eq!(with(&seen, "partNumber=").len(), 3, "{seen:#?}");
    assert_eq!(server.leftovers(), [""; 0]);
    assert_eq!(
        fs::read(server.file(&object(&bundle))).unwrap(),
        bundle.bytes().unwrap()
    );
    let progress = std::mem::take(&mut *progress.lock().unwrap());
    assert_eq!(progress.len(), 3);
    assert!(progress.is_sorted_by_key(|sent| sent.bytes), "{progress:?}");
    assert_eq!(progress.last().unwrap().bytes, bundle.size);

    let again = send(&server, &bundle).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "asked and looked, sent nothing: {seen:#?}");
    assert!(with(&seen, "PUT").is_empty() && with(&seen, "POST").is_empty());

    // The pod's side works the same with and without a runtime.
    let pod = fetch(&again).unwrap();
    let data = fs::read(pod.path().join("home/work/data")).unwrap();
    assert_eq!(data.len(), SIZE);
    assert!(!pod.path().join("home/bundle.tar.gz").exists());
    assert_eq!((info.size, &info.sha256), (bundle.size, &bundle.sha256));
}

#[tokio::test]
async fn a_small_bundle_is_uploaded_in_one_request_and_replaced_if_its_size_differs() {
    let server = S3::start();
    let bundle = bundle(1000);
    send(&server, &bundle).await.unwrap();
    let seen = server.seen();
    assert_eq!(with(&seen, "PUT").len(), 1, "{seen:#?}");
    assert_eq!(with(&seen, "POST").len(), 0, "{seen:#?}");
    fs::write(server.file(&object(&bundle)), "cut").unwrap();
    let info = send(&server, &bundle).await.unwrap();
    assert_eq!(with(&server.seen(), "PUT").len(), 1);
    fetch(&info).unwrap();
}

#[tokio::test]
async fn a_bundle_is_packed_only_if_the_store_does_not_have_it() {
    let server = S3::start();
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("code");
    fs::create_dir(&code).unwrap();
    let mut data = vec![0; 6 << 20];
    StdRng::seed_from_u64(8).fill_bytes(&mut data);
    fs::write(code.join("data"), data).unwrap();
    let remembered = PackOptions {
        cache: Some(folder.path().join("cache")),
        ..PackOptions::default()
    };
    // The packing cache ignores files that changed in the last two seconds.
    std::thread::sleep(Duration::from_millis(2_100));
    let packed = || pack(&code, &remembered, |_| {}).unwrap();
    let first = packed();
    send(&server, &first).await.unwrap();
    server.seen();

    let again = packed();
    let info = send(&server, &again).await.unwrap();
    assert!(!again.is_packed());
    assert_eq!(info.sha256, first.sha256);
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "asked and looked, sent nothing: {seen:#?}");

    fs::remove_file(server.file(&object(&first))).unwrap();
    let again = packed();
    send(&server, &again).await.unwrap();
    assert!(again.is_packed());
    assert_eq!(
        fs::read(server.file(&object(&first))).unwrap(),
        first.bytes().unwrap()
    );
}

#[tokio::test]
async fn a_bundle_that_was_uploaded_earlier_is_downloaded() {
    let server = S3::start();
    let bundle = bundle(1000);
    let gone = again(&bundle.sha256, &store(), options(&server)).await;
    let gone = gone.unwrap_err();
    assert!(matches!(gone, StoreError::Gone { .. }), "{gone}");
    assert!(gone.to_string().contains(&object(&bundle)), "{gone}");
    let sent = send(&server, &bundle).await.unwrap();
    server.seen();
    let found = again(&bundle.sha256, &store(), options(&server)).await;
    let found = found.unwrap();
    assert_eq!((found.size, &found.sha256), (sent.size, &sent.sha256));
    assert!(with(&server.seen(), "PUT").is_empty());
    fetch(&found).unwrap();
}

#[tokio::test]
async fn only_a_failed_part_is_uploaded_again() {
    let server = S3::start();
    server.fail("partNumber=2", &[Fault::Answer(503), Fault::Answer(500)]);
    send(&server, &large()).await.unwrap();
    let seen = server.seen();
    let counts = [1, 2, 3].map(|part| with(&seen, &format!("partNumber={part}")).len());
    assert_eq!((counts, server.faults()), ([1, 3, 1], 0), "{seen:#?}");
}

#[tokio::test]
async fn a_failed_upload_leaves_nothing_behind() {
    let (server, bundle) = (S3::start(), large());
    server.fail("partNumber=3", &[Fault::Answer(403)]);
    let error = send(&server, &bundle).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    let seen = server.seen();
    assert_eq!(with(&seen, "DELETE").len(), 1, "{seen:#?}");
    assert_eq!(server.leftovers(), [""; 0]);
    assert!(!server.file(&object(&bundle)).exists());
}

#[tokio::test]
async fn a_cancelled_upload_leaves_nothing_behind() {
    let (server, bundle) = (S3::start(), large());
    server.fail("partNumber=2", &[Fault::Silence]);
    let (stop, mut stopped) = tokio::sync::mpsc::unbounded_channel();
    let options = DeliverOptions {
        progress: Arc::new(move |_| stop.send(()).unwrap_or_default()),
        stop: Box::pin(async move { stopped.recv().await.unwrap() }),
        ..options(&server)
    };
    let error = deliver(&bundle, Some(&store()), options).await.unwrap_err();
    assert!(matches!(error, StoreError::Stopped), "{error:?}");
    let seen = server.seen();
    assert_eq!(with(&seen, "DELETE").len(), 1, "{seen:#?}");
    assert!(!server.file(&object(&bundle)).exists());
}

/// Like [`options`], with a folder for upload journals.
fn with_journals(server: &S3, cache: &Path) -> DeliverOptions {
    DeliverOptions {
        cache: Some(cache.to_owned()),
        ..options(server)
    }
}

/// The journals in the folder.
fn journals(cache: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(cache).into_iter().flatten();
    files.map(|file| file.unwrap().path()).collect()
}

/// Uploads one of three parts, like a process that is then killed.
async fn send_a_part(server: &S3, bundle: &Bundle, cache: &Path) {
    server.take_parts(1);
    let (report, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let options = DeliverOptions {
        progress: Arc::new(move |_| report.send(()).unwrap_or_default()),
        ..with_journals(server, cache)
    };
    let store = store();
    tokio::select! {
        delivered = deliver(bundle, Some(&store), options) => panic!("{delivered:?}"),
        _ = progress.recv() => {}
    }
    server.take_all();
    let seen = server.seen();
    assert_eq!(with(&seen, "partNumber=").len(), 1, "{seen:#?}");
    assert!(!server.file(&object(bundle)).exists());
    assert_eq!((journals(cache).len(), server.leftovers().len()), (1, 2));
}

#[tokio::test]
async fn an_upload_resumes_after_the_store_was_unreachable() {
    let (server, bundle) = (S3::start(), large());
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    server.take_parts(1);
    let lost = deliver(&bundle, Some(&store()), with_journals(&server, cache)).await;
    let text = lost.unwrap_err().to_string();
    assert!(
        text.contains("the next attempt resumes the upload"),
        "{text}"
    );
    let [journal] = &journals(cache)[..] else {
        panic!("{:?}", journals(cache))
    };
    let kept = fs::read_to_string(journal).unwrap();
    let [id, key] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| {
        let settings = server.settings();
        let setting = settings.iter().find(|(key, _)| key == name);
        setting.unwrap().1.clone()
    });
    assert!(!kept.contains(&id) && !kept.contains(&key), "{kept}");

    // An unreachable store keeps the journal as well.
    deliver(&bundle, Some(&store()), with_journals(&server, cache))
        .await
        .unwrap_err();
    assert_eq!(journals(cache).len(), 1);
    server.take_all();
    let seen = server.seen();
    assert_eq!(with(&seen, "partNumber=").len(), 1, "{seen:#?}");

    let progress: Arc<Mutex<Vec<Sent>>> = Arc::default();
    let listener = Arc::clone(&progress);
    let options = DeliverOptions {
        progress: Arc::new(move |sent| listener.lock().unwrap().push(sent)),
        ..with_journals(&server, cache)
    };
    let info = deliver(&bundle, Some(&store()), options).await.unwrap();
    let seen = server.seen();
    let counts = ["partNumber=", "uploads", "POST"].map(|word| with(&seen, word).len());
    assert_eq!(counts, [2, 0, 1], "{seen:#?}");
    let progress = std::mem::take(&mut *progress.lock().unwrap());
    assert!(
        progress[0].bytes > 0 && progress[0].bytes < bundle.size,
        "{progress:?}"
    );
    assert!(
        progress
            .iter()
            .all(|sent| sent.earlier == progress[0].bytes),
        "{progress:?}"
    );
    assert_eq!(progress.last().unwrap().bytes, bundle.size);
    assert_eq!(journals(cache), [""; 0].map(std::path::PathBuf::from));
    assert_eq!(server.leftovers(), [""; 0]);
    let sent = fs::read(server.file(&object(&bundle))).unwrap();
    assert_eq!(sent, bundle.bytes().unwrap());
    fetch(&info).unwrap();
}

#[tokio::test]
async fn an_upload_that_the_store_does_not_know_is_restarted() {
    let (server, bundle) = (S3::start(), large());
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    send_a_part(&server, &bundle, cache).await;
    for name in server.leftovers() {
        fs::remove_file(server.file("..").join(name)).unwrap();
    }
    deliver(&bundle, Some(&store()), with_journals(&server, cache))
        .await
        .unwrap();
    let seen = server.seen();
    assert_eq!(with(&seen, "?uploads").len(), 1, "{seen:#?}");
    let sent = fs::read(server.file(&object(&bundle))).unwrap();
    assert_eq!(sent, bundle.bytes().unwrap());
    assert_eq!(journals(cache).len(), 0);
    assert_eq!(server.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_damaged_journal_is_ignored() {
    let bundle = large();
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let harm: [fn(&str) -> String; 4] = [
        |_| "no json\n".to_owned(),
        |text| text.replace("\"total\":", "\"total\":1"),
        |text| text.replace("\"upload\":\"", "\"upload\":\"../x?y&"),
        // The tag of a different content differs.
        |text| text.replace("\"id\":\"", "\"id\":\"\\u0000\u{fffd}"),
    ];
    for harm in harm {
        let server = S3::start();
        send_a_part(&server, &bundle, cache).await;
        let journal = &journals(cache)[0];
        let text = fs::read_to_string(journal).unwrap();
        let harmed = harm(&text);
        assert_ne!(harmed, text);
        fs::write(journal, &harmed).unwrap();
        let delivered = deliver(&bundle, Some(&store()), with_journals(&server, cache)).await;
        delivered.unwrap_or_else(|error| panic!("{error}: {harmed}"));
        let sent = fs::read(server.file(&object(&bundle))).unwrap();
        assert_eq!(sent, bundle.bytes().unwrap());
        assert_eq!(journals(cache).len(), 0);
    }
}

#[tokio::test]
async fn a_rejected_or_completed_upload_is_not_resumed() {
    let (server, bundle) = (S3::start(), large());
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    send_a_part(&server, &bundle, cache).await;
    server.fail("partNumber=", &[Fault::Answer(403)]);
    let error = deliver(&bundle, Some(&store()), with_journals(&server, cache)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert_eq!(with(&server.seen(), "DELETE").len(), 1);
    assert_eq!((journals(cache).len(), server.leftovers().len()), (0, 0));

    // Another client uploads the bundle meanwhile.
    send_a_part(&server, &bundle, cache).await;
    send(&server, &bundle).await.unwrap();
    assert_eq!(server.leftovers().len(), 2, "the upload, and its part");
    deliver(&bundle, Some(&store()), with_journals(&server, cache))
        .await
        .unwrap();
    assert_eq!((journals(cache).len(), server.leftovers().len()), (0, 0));
}

#[tokio::test]
async fn an_abandoned_upload_is_aborted_after_a_week() {
    let (server, large) = (S3::start(), large());
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    send_a_part(&server, &large, cache).await;
    let send = async || {
        let small = bundle(1000);
        let options = with_journals(&server, cache);
        deliver(&small, Some(&store()), options).await.unwrap();
        (journals(cache).len(), server.leftovers().len())
    };
    assert_eq!(send().await, (1, 2));
    let journal = fs::File::open(&journals(cache)[0]).unwrap();
    let week = Duration::from_secs(7 * 24 * 3600 + 60);
    let then = std::time::SystemTime::now() - week;
    journal.set_modified(then).unwrap();
    assert_eq!(send().await, (0, 0));
}

#[tokio::test]
async fn rejections_explain_the_cause_without_secrets() {
    let server = S3::start();
    let bundle = bundle(1000);
    let with_setting = |key: &str, value: &str| {
        let mut options = options(&server);
        options.settings.push((key.to_owned(), value.to_owned()));
        options
    };
    let url = |url: &str| Store::parse(url).unwrap();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unreachable = format!("http://{}", unused.local_addr().unwrap());
    drop(unused);
    let cases = [
        (
            store(),
            with_setting("AWS_SECRET_ACCESS_KEY", "hush-wrong"),
            "SignatureDoesNotMatch",
            "check AWS_ACCESS_KEY_ID",
        ),
        (
            store(),
            with_setting("AWS_ACCESS_KEY_ID", "AKIDNOBODY"),
            "denies access: ",
            "check AWS_ACCESS_KEY_ID",
        ),
        (
            url("s3://no-such-bucket/a"),
            options(&server),
            "the store s3://no-such-bucket/a does not exist: NoSuchBucket",
            "create the bucket",
        ),
        (
            store(),
            with_setting("AWS_ENDPOINT_URL", &unreachable),
            "Connection refused",
            "check AWS_ENDPOINT_URL",
        ),
        (
            store(),
            with_setting("AWS_ALLOW_HTTP", "false"),
            "URL scheme is not allowed",
            "set AWS_ALLOW_HTTP=true",
        ),
    ];
    for (store, options, problem, remedy) in cases {
        let begin = Instant::now();
        let error = deliver(&bundle, Some(&store), options).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(problem) && text.contains(remedy), "{text}");
        assert!(!format!("{text} {error:?}").contains("hush"), "{error:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{text}");
    }
    assert_eq!(server.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_signed_url_expires() {
    let server = S3::start();
    let options = DeliverOptions {
        validity: Duration::from_secs(5),
        ..options(&server)
    };
    let info = deliver(&bundle(1000), Some(&store()), options).await;
    let info = info.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let text = error_message(&info);
    assert!(
        text.contains("denies access to the bundle http://127.0.0.1"),
        "{text}"
    );
    assert!(
        text.contains("has expired") && text.contains("submit the run again"),
        "{text}"
    );
}

#[tokio::test]
async fn an_interrupted_download_resumes() {
    let server = S3::start();
    let bundle = bundle(1 << 20);
    let info = send(&server, &bundle).await.unwrap();
    server.seen();
    server.fail("GET", &[Fault::Answer(503), Fault::Half, Fault::Half]);
    let pod = fetch(&info).unwrap();
    assert_eq!(server.faults(), 0);
    assert_eq!(server.seen().len(), 4);
    let data = pod.path().join("home/work/data");
    assert_eq!(fs::metadata(data).unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn a_modified_bundle_is_not_unpacked() {
    let server = S3::start();
    let bundle = bundle(1000);
    let info = send(&server, &bundle).await.unwrap();
    let file = server.file(&object(&bundle));
    let overwrite = |file: &Path, bytes: Vec<u8>| fs::write(file, bytes).unwrap();
    let size = usize::try_from(bundle.size).unwrap();
    overwrite(&file, vec![0; size]);
    let text = error_message(&info);
    assert!(text.contains("is damaged: its sha256 is"), "{text}");
    assert!(
        text.contains("delete it from the store and submit"),
        "{text}"
    );
    for other in [size + 1, size - 1] {
        overwrite(&file, vec![0; other]);
        let text = error_message(&info);
        let sizes = format!("it has {other} bytes, not {size}");
        assert!(text.contains(&sizes), "{text}");
    }
    fs::remove_file(&file).unwrap();
    let text = error_message(&info);
    assert!(text.contains("no longer exists in the store"), "{text}");
    assert!(text.contains("NoSuchKey"), "{text}");
}
