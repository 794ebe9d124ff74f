//! The settings of git that decide which files it ignores.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use gix_ignore::glob::{wildmatch, wildmatch::Mode};

use super::{
    config::{Variable, parse},
    layout::{Repository, path_of, read_regular},
};

/// Reads a variable of the environment.
pub(in crate::bundle) type Variables<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// Files may include others as deep as in git.
const MAX_INCLUDES: usize = 10;
/// The largest configuration file to read.
const MAX_BYTES: u64 = 16 << 20;

/// The settings of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// `core.excludesFile`, or its default in the user's configuration folder.
    pub(super) excludes_file: Option<PathBuf>,
    /// `core.ignoreCase`.
    pub(super) ignores_case: bool,
    /// The folder of files, if `core.worktree` sets another.
    pub(super) worktree: Option<PathBuf>,
    /// True if the repository has no folder of files.
    pub(super) is_bare: bool,
    /// True if object names are SHA-256.
    pub(super) is_sha256: bool,
    /// Files that are not valid.
    pub(super) problems: Vec<String>,
    has_own_file: bool,
}

/// The files that git reads, lowest precedence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    User,
    Repository,
    /// `config.worktree`, for one of the repository's folders of files.
    Worktree,
}

struct Reader<'a> {
    repository: &'a Repository,
    home: Option<PathBuf>,
    settings: Settings,
}

impl Settings {
    pub(super) fn of(repository: &Repository, variables: &Variables<'_>) -> Self {
        let mut reader = Reader {
            repository,
            home: path(variables, "HOME"),
            settings: Self {
                excludes_file: config_folder(variables).map(|folder| folder.join("ignore")),
                ..Self::default()
            },
        };
        for file in user_files(variables) {
            reader.read(&file, Source::User, 0);
        }
        reader.read(&repository.common_dir.join("config"), Source::Repository, 0);
        if reader.settings.has_own_file {
            let own = repository.git_dir.join("config.worktree");
            reader.read(&own, Source::Worktree, 0);
        }
        reader.settings
    }
}

impl Reader<'_> {
    fn read(&mut self, file: &Path, source: Source, depth: usize) {
        let Some(text) = read_regular(file, MAX_BYTES) else {
            return;
        };
        let (variables, problem) = parse(&text);
        if let Some(line) = problem {
            self.settings.problems.push(format!(
                "the settings of git after {}:{line} are not used, because this line is not valid",
                file.display()
            ));
        }
        for variable in variables {
            let includes = match variable.key.as_str() {
                "include.path" => variable.subsection.is_none(),
                "includeif.path" => {
                    let condition = variable.subsection.as_deref();
                    condition.is_some_and(|condition| self.holds(condition, file))
                }
                _ => {
                    self.set(&variable, source);
                    false
                }
            };
            if includes && depth < MAX_INCLUDES {
                let included = variable.value.as_deref();
                let included = included.and_then(|value| self.expand(value));
                if let Some(path) = included {
                    let folder = file.parent().unwrap_or(Path::new("/"));
                    self.read(&folder.join(path), source, depth + 1);
                }
            }
        }
    }

    fn set(&mut self, variable: &Variable, source: Source) {
        if variable.subsection.is_some() {
            return;
        }
        let value = variable.value.as_deref().unwrap_or_default();
        let boolean = variable.boolean().unwrap_or(false);
        // A linked worktree does not have these settings of the main one.
        let is_main = self.repository.common_dir == self.repository.git_dir;
        let is_own = source == Source::Worktree || source == Source::Repository && is_main;
        match variable.key.as_str() {
            "core.excludesfile" => {
                // Git runs in the top folder.
                let path = self.expand(value);
                self.settings.excludes_file = path.map(|path| self.repository.folder.join(path));
            }
            "core.ignorecase" => self.settings.ignores_case = boolean,
            "core.bare" if is_own => self.settings.is_bare = boolean,
            "core.worktree" if is_own => {
                let path = Path::new(OsStr::from_bytes(value));
                self.settings.worktree = Some(self.repository.git_dir.join(path));
            }
            "extensions.objectformat" if source == Source::Repository => {
                self.settings.is_sha256 = value.eq_ignore_ascii_case(b"sha256");
            }
            "extensions.worktreeconfig" if source == Source::Repository => {
                self.settings.has_own_file = boolean;
            }
            _ => {}
        }
    }

    /// A path with the user's home folder for `~`. `None` for the home folder of another user.
    fn expand(&self, value: &[u8]) -> Option<PathBuf> {
        match value.strip_prefix(b"~") {
            Some(rest) => {
                let home = self.home.as_ref()?;
                let rest = match rest {
                    b"" => rest,
                    _ => rest.strip_prefix(b"/")?,
                };
                Some(home.join(OsStr::from_bytes(rest)))
            }
            None if value.is_empty() => None,
            None => Some(PathBuf::from(OsStr::from_bytes(value))),
        }
    }

    /// Evaluates a condition of `includeIf` in a file.
    fn holds(&self, condition: &[u8], file: &Path) -> bool {
        if let Some(pattern) = condition.strip_prefix(b"gitdir:") {
            return self.is_git_dir(pattern, Mode::empty(), file);
        }
        if let Some(pattern) = condition.strip_prefix(b"gitdir/i:") {
            return self.is_git_dir(pattern, Mode::IGNORE_CASE, file);
        }
        let Some(pattern) = condition.strip_prefix(b"onbranch:") else {
            return false;
        };
        let head = read_regular(&self.repository.git_dir.join("HEAD"), MAX_BYTES);
        let branch = head.as_deref().map(|head| path_of(head).as_os_str());
        let branch = branch.and_then(|head| head.as_bytes().strip_prefix(b"ref: refs/heads/"));
        let pattern = with_folders(pattern.to_vec());
        branch.is_some_and(|branch| {
            let mode = Mode::NO_MATCH_SLASH_LITERAL;
            wildmatch(pattern.as_slice().into(), branch.into(), mode)
        })
    }

    fn is_git_dir(&self, pattern: &[u8], mode: Mode, file: &Path) -> bool {
        let pattern = if let Some(rest) = pattern.strip_prefix(b"./") {
            let folder = file.parent().unwrap_or(Path::new("/"));
            folder.join(OsStr::from_bytes(rest))
        } else {
            let Some(path) = self.expand(pattern) else {
                return false;
            };
            path
        };
        let mut pattern = with_folders(pattern.into_os_string().into_encoded_bytes());
        if !pattern.starts_with(b"/") {
            pattern.splice(..0, *b"**/");
        }
        let mode = mode | Mode::NO_MATCH_SLASH_LITERAL;
        let git_dir = &self.repository.git_dir;
        let places = [Some(git_dir.clone()), git_dir.canonicalize().ok()];
        places.into_iter().flatten().any(|path| {
            let path = path.as_os_str().as_bytes();
            wildmatch(pattern.as_slice().into(), path.into(), mode)
        })
    }
}

/// A pattern that ends with a slash also matches everything below.
fn with_folders(mut pattern: Vec<u8>) -> Vec<u8> {
    if pattern.ends_with(b"/") {
        pattern.extend(b"**");
    }
    pattern
}

/// The files for all repositories, lowest precedence first.
fn user_files(variables: &Variables<'_>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let skips_system = variables("GIT_CONFIG_NOSYSTEM").is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        !matches!(value.to_str(), Some("" | "0" | "false" | "no" | "off"))
    });
    if !skips_system {
        let path = path(variables, "GIT_CONFIG_SYSTEM");
        files.push(path.unwrap_or_else(|| PathBuf::from("/etc/gitconfig")));
    }
    if let Some(path) = path(variables, "GIT_CONFIG_GLOBAL") {
        files.push(path);
    } else {
        files.extend(config_folder(variables).map(|folder| folder.join("config")));
        files.extend(path(variables, "HOME").map(|home| home.join(".gitconfig")));
    }
    files
}

/// The folder of the user's configuration of git.
fn config_folder(variables: &Variables<'_>) -> Option<PathBuf> {
    let folder = path(variables, "XDG_CONFIG_HOME")
        .or_else(|| path(variables, "HOME").map(|home| home.join(".config")))?;
    Some(folder.join("git"))
}

/// The value of a variable, unless it is empty.
fn path(variables: &Variables<'_>, name: &str) -> Option<PathBuf> {
    let value = variables(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
