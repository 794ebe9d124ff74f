//! Termination messages: a file that a container writes, or the end of its log.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::MESSAGES_DIR;

/// The default of `terminationMessagePath`, which the API server sets.
pub(crate) const DEFAULT_PATH: &str = "/dev/termination-log";
/// Maximum number of bytes of a message.
const MAX_MESSAGE: usize = 4096;
/// Maximum number of bytes of the messages of all containers of a pod.
const MAX_POD_MESSAGES: usize = 12 * 1024;
/// Maximum number of bytes of a message that is the end of a log.
const MAX_LOG_MESSAGE: usize = 2048;
/// Maximum number of lines of a message that is the end of a log.
const MAX_LOG_LINES: usize = 80;

/// Returns the path of a container's message in the container, or `None` if the container has no
/// such file.
///
/// The default path is below `/dev`. To create a file there, the node has to mount every file of
/// `/dev` in the container, so it does this only for init containers, and for other containers
/// whose spec names the path.
pub(super) fn path(pod: &Pod, container: &Container) -> Option<PathBuf> {
    let path = container.termination_message_path.as_deref()?;
    let has_default_path = || is_init(pod, container) || names_default_path(container);
    if path.is_empty() || path == DEFAULT_PATH && !has_default_path() {
        return None;
    }
    Some(Path::new("/").join(path))
}

fn is_init(pod: &Pod, container: &Container) -> bool {
    let inits = pod.spec.iter().flat_map(|spec| &spec.init_containers);
    inits.flatten().any(|init| init.name == container.name)
}

fn names_default_path(container: &Container) -> bool {
    let words = container.command.iter().chain(&container.args).flatten();
    let variables = container.env.iter().flatten();
    let values = variables.filter_map(|variable| variable.value.as_ref());
    words.chain(values).any(|text| text.contains(DEFAULT_PATH))
}

/// Returns the path of a container's message on the machine.
pub(super) fn file(folder: &Path, container: &str) -> PathBuf {
    folder.join(MESSAGES_DIR).join(container)
}

/// Creates an empty file for the message of the next run. Any user of the
/// container can write to it.
pub(super) fn create(folder: &Path, container: &str) -> io::Result<PathBuf> {
    let path = file(folder, container);
    fs::create_dir_all(folder.join(MESSAGES_DIR))?;
    // Removes anything that a container has put there, without opening it.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    Ok(path)
}

/// Returns the message of a run that has ended.
pub(super) fn read(
    folder: &Path,
    pod: &Pod,
    container: &Container,
    code: i32,
    log: &str,
) -> Option<String> {
    let mut message = String::new();
    if path(pod, container).is_some() {
        let file = file(folder, &container.name);
        message = end_of_file(&file).unwrap_or_else(|error| {
            format!(
                "Error on reading termination log {}: {error}",
                file.display()
            )
        });
    }
    let falls_back =
        container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if message.is_empty() && falls_back && code != 0 {
        message = end_of_log(log);
    }
    let limit = limit(pod);
    let end = message.floor_char_boundary(limit);
    message.truncate(end);
    (!message.is_empty()).then_some(message)
}

fn limit(pod: &Pod) -> usize {
    let containers = pod.spec.as_ref().map_or(1, |spec| {
        let inits = spec.init_containers.as_ref().map_or(0, Vec::len);
        let ephemeral = spec.ephemeral_containers.as_ref().map_or(0, Vec::len);
        spec.containers.len() + inits + ephemeral
    });
    MAX_MESSAGE.min(MAX_POD_MESSAGES / containers.max(1))
}

fn end_of_file(path: &Path) -> io::Result<String> {
    let mut options = File::options();
    // Without mounts, a container can put anything at this path.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let mut file = match options.read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?,
    };
    let maximum = MAX_MESSAGE as u64;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let length = metadata.len();
    file.seek(SeekFrom::Start(length.saturating_sub(maximum)))?;
    let mut bytes = Vec::new();
    file.take(maximum).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn end_of_log(log: &str) -> String {
    let start = log.len().saturating_sub(MAX_LOG_MESSAGE);
    let log = &log[log.ceil_char_boundary(start)..];
    let without_end = log.strip_suffix('\n').unwrap_or(log);
    let cut = without_end.rmatch_indices('\n').nth(MAX_LOG_LINES - 1);
    cut.map_or(log, |(at, _)| &log[at + 1..]).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    fn container(fields: Value) -> Container {
        let mut container = json!({"name": "c", "terminationMessagePath": DEFAULT_PATH});
        for (name, value) in fields.as_object().unwrap() {
            container[name] = value.clone();
        }
        serde_json::from_value(container).unwrap()
    }

    fn pod(containers: usize) -> Pod {
        let containers: Vec<_> = (0..containers)
            .map(|index| json!({"name": format!("c{index}")}))
            .collect();
        serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap()
    }

    #[test]
    fn a_container_has_a_file_if_its_spec_names_the_path() {
        let of_pod = pod(1);
        let path = |fields| path(&of_pod, &container(fields));
        assert_eq!(path(json!({})), None);
        let found = Some(PathBuf::from(DEFAULT_PATH));
        let inits = json!({"spec": {"containers": [], "initContainers": [{"name": "c"}]}});
        let of_init = serde_json::from_value(inits).unwrap();
        assert_eq!(super::path(&of_init, &container(json!({}))), found);
        assert_eq!(
            path(json!({"args": ["echo x > /dev/termination-log"]})),
            found
        );
        let variable = json!({"name": "A", "value": "/dev/termination-log"});
        assert_eq!(path(json!({"env": [variable]})), found);
        let own = path(json!({"terminationMessagePath": "tmp/message"}));
        assert_eq!(own, Some(PathBuf::from("/tmp/message")));
    }

    #[test]
    fn messages_are_limited() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let own = container(json!({"terminationMessagePath": "/tmp/message"}));
        let file = create(folder, "c").unwrap();
        let read = |pod: &Pod, code| read(folder, pod, &own, code, "log");
        assert_eq!(read(&pod(1), 1), None);
        fs::write(&file, format!("begin{}", "x".repeat(4096))).unwrap();
        assert_eq!(read(&pod(1), 0), Some("x".repeat(4096)));
        assert_eq!(read(&pod(6), 0), Some("x".repeat(2048)));
        fs::write(&file, "why").unwrap();
        assert_eq!(read(&pod(1), 0), Some("why".to_owned()));
        create(folder, "c").unwrap();
        assert_eq!(read(&pod(1), 0), None);
    }

    #[test]
    fn a_container_cannot_lead_the_agent_elsewhere_by_its_message() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, secret) = (folder.path(), folder.path().join("secret"));
        fs::write(&secret, "secret").unwrap();
        let own = container(json!({"terminationMessagePath": "/tmp/message"}));
        let path = create(folder, "c").unwrap();
        let replaced_by = |make: &dyn Fn(&Path)| {
            fs::remove_file(&path).unwrap();
            make(&path);
            let message = read(folder, &pod(1), &own, 0, "").unwrap();
            assert!(message.starts_with("Error on reading"), "{message}");
            // The next run has an empty file.
            create(folder, "c").unwrap();
            assert_eq!(read(folder, &pod(1), &own, 0, ""), None);
            assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        };
        let mode = rustix::fs::Mode::RWXU;
        replaced_by(&|path| rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap());
        replaced_by(&|path| std::os::unix::fs::symlink(&secret, path).unwrap());
        replaced_by(&|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()));
    }

    #[test]
    fn the_end_of_the_log_is_the_message_of_a_failure_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let own = container(json!({"terminationMessagePolicy": "FallbackToLogsOnError"}));
        let read = |code, log: &str| read(folder.path(), &pod(1), &own, code, log);
        assert_eq!(read(0, "log"), None);
        assert_eq!(read(1, "a\nb\n"), Some("a\nb\n".to_owned()));
        assert_eq!(read(1, &"x".repeat(5000)), Some("x".repeat(2048)));
        let lines = read(1, &"x\n".repeat(100)).unwrap();
        assert_eq!(lines, "x\n".repeat(80));
    }
}
