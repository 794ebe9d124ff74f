//! Sends files of a run's outputs.

use http::{HeaderValue, Response, StatusCode, header};
use longshore_launcher::{
    RunSummary,
    outputs::{FetchOptions, Manifest, OutputFile, OutputsError},
    run_outputs::{LocalOutputs, RunFiles, TaskChoice},
};
use tokio::runtime::Handle;
use tokio_util::io::ReaderStream;

use super::queries;

use crate::{
    app::App,
    body::{Body, streamed, text},
    route::encoded,
};

/// The maximum size of a file of a store, which is written to a temporary file first.
const LARGEST_STORED: u64 = 4 << 30;
/// The name of the temporary file.
const TEMPORARY: &str = "file";

/// Sends a file as a download, regardless of its type.
pub(super) async fn download(
    app: &App,
    run: &RunSummary,
    task: &str,
    path: &str,
) -> Response<Body> {
    let _permit = app.queries.acquire().await;
    let found = match &app.outputs {
        Some(local) => of_node(local, run, task, path).await,
        None => of_store(app, run, task, path).await,
    };
    match found {
        Ok(Some((content, file))) => send(content, &file),
        Ok(None) => text(StatusCode::NOT_FOUND, "There is no such file."),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

type Found = Result<Option<(std::fs::File, OutputFile)>, String>;

const NOT_READ: &str = "The file cannot be read.";

/// A file that the embedded cluster keeps.
async fn of_node(local: &LocalOutputs, run: &RunSummary, task: &str, path: &str) -> Found {
    let outputs = local.outputs.clone();
    let (namespace, name) = (run.run.namespace.clone(), run.run.name.to_string());
    let (task, wanted) = (task.to_owned(), path.to_owned());
    let work = tokio::task::spawn_blocking(move || {
        let found = outputs.of_run(&namespace, &name)?;
        let own = found.iter().filter(|manifest| manifest.task() == task);
        let mut files = own.flat_map(|manifest| &manifest.files);
        let Some(file) = files.find(|file| file.path == wanted) else {
            return Ok(None);
        };
        Ok::<_, OutputsError>(Some((outputs.open(file)?, file.clone())))
    });
    let found = work.await.map_err(|_| NOT_READ.to_owned())?;
    found.map_err(|error| error.to_string())
}

/// A file in a store. It is read into a temporary file, so that its content is verified before
/// the first byte is sent.
async fn of_store(app: &App, run: &RunSummary, task: &str, path: &str) -> Found {
    let Some(choice) = TaskChoice::parse(task) else {
        return Ok(None);
    };
    let files = queries::stored(app, run, &choice).await?;
    let (task, wanted) = (task.to_owned(), path.to_owned());
    let runtime = Handle::current();
    let work = tokio::task::spawn_blocking(move || one(&files, &runtime, &task, &wanted));
    work.await.map_err(|_| NOT_READ.to_owned())?
}

fn one(files: &RunFiles, runtime: &Handle, task: &str, wanted: &str) -> Found {
    let mut tasks = files.tasks.iter();
    let Some(own) = tasks.find(|own| own.manifest().task() == task) else {
        return Ok(None);
    };
    let manifest = own.manifest();
    let Some(file) = manifest.files.iter().find(|file| file.path == wanted) else {
        return Ok(None);
    };
    if file.size > LARGEST_STORED {
        return Err(format!(
            "The file is larger than {} GiB: `longshore outputs {} {task}` fetches it.",
            LARGEST_STORED >> 30,
            manifest.run
        ));
    }
    let folder = tempfile::Builder::new().prefix("longshore-ui-").tempdir();
    let folder = folder.map_err(|error| format!("cannot write a temporary file: {error}"))?;
    let only = Manifest {
        files: vec![OutputFile {
            path: TEMPORARY.to_owned(),
            ..file.clone()
        }],
        left_out: Vec::new(),
        ..manifest.clone()
    };
    let options = FetchOptions {
        to: folder.path().to_owned(),
        force: false,
    };
    let fetched = files.fetch_as(runtime, own, &only, &options);
    fetched.map_err(|error| error.to_string())?;
    // The open file outlives its folder.
    let content = std::fs::File::open(folder.path().join(TEMPORARY));
    let content = content.map_err(|error| format!("cannot read a temporary file: {error}"))?;
    Ok(Some((content, file.clone())))
}

fn send(content: std::fs::File, file: &OutputFile) -> Response<Body> {
    let pieces = ReaderStream::with_capacity(tokio::fs::File::from_std(content), 64 << 10);
    let mut response = streamed("application/octet-stream", pieces);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, file.size.into());
    if let Ok(disposition) = HeaderValue::from_str(&disposition(&file.path)) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// The `Content-Disposition` for a file, with its name only.
fn disposition(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    // A leading period would hide the file.
    let plain: String = plain.collect();
    let plain = match plain.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => plain,
    };
    format!(
        "attachment; filename=\"{plain}\"; filename*=UTF-8''{}",
        encoded(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_downloads_are_safe() {
        assert_eq!(
            disposition("out/model.bin"),
            "attachment; filename=\"model.bin\"; filename*=UTF-8''model%2Ebin"
        );
        let odd = disposition("a/..\"\r\n;x=\u{e9}");
        assert_eq!(
            odd,
            "attachment; filename=\"_.____x__\"; filename*=UTF-8''%2E%2E%22%0D%0A%3Bx%3D%C3%A9"
        );
        assert!(HeaderValue::from_str(&odd).is_ok());
    }
}
