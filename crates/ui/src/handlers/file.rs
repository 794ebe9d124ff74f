//! Sends files of a run's outputs.

use http::{HeaderValue, Response, StatusCode, header};
use longshore_launcher::{
    RunSummary,
    outputs::{OutputFile, OutputsError},
};
use tokio_util::io::ReaderStream;

use crate::{
    app::App,
    body::{Body, streamed, text},
    route::encoded,
};

/// Sends a file, as a download whatever its content is.
pub(super) async fn download(
    app: &App,
    run: &RunSummary,
    task: &str,
    path: &str,
) -> Response<Body> {
    let Some(local) = &app.outputs else {
        return text(StatusCode::NOT_FOUND, "This cluster keeps no outputs.");
    };
    let outputs = local.outputs.clone();
    let (namespace, name) = (run.run.namespace.clone(), run.run.name.to_string());
    let (task, wanted) = (task.to_owned(), path.to_owned());
    let _permit = app.queries.acquire().await;
    let work = tokio::task::spawn_blocking(move || {
        let found = outputs.of_run(&namespace, &name)?;
        let own = found.iter().filter(|manifest| manifest.task() == task);
        let mut files = own.flat_map(|manifest| &manifest.files);
        let Some(file) = files.find(|file| file.path == wanted) else {
            return Ok(None);
        };
        Ok::<_, OutputsError>(Some((outputs.open(file)?, file.clone())))
    });
    match work.await {
        Ok(Ok(Some((content, file)))) => send(content, &file),
        Ok(Ok(None)) => text(StatusCode::NOT_FOUND, "There is no such file."),
        Ok(Err(error)) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        Err(_) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The file cannot be read.",
        ),
    }
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
