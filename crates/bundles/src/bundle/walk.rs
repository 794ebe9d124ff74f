//! Finds the files to pack: all files of a folder, sorted, without the ignored ones.

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::{
    BundleError, EXAMPLES, PackOptions,
    entry::{Found, Kind, Stamp},
};

/// Patterns that are excluded unless an ignore file contains `!pattern`.
pub const DEFAULT_IGNORES: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".DS_Store",
    "__pycache__/",
    "*.pyc",
    ".venv/",
    "venv/",
    "node_modules/",
    ".zenml/",
    ".ipynb_checkpoints/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".tox/",
];

/// The project's own ignore file.
pub(super) const IGNORE_FILE: &str = ".longshoreignore";
/// The file that marks a cache folder (bford.info/cachedir).
const CACHE_MARK: &str = "CACHEDIR.TAG";
const CACHE_SIGNATURE: &[u8; 43] = b"Signature: 8a477f597d28d172789f06886806bc55";

#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) entries: Vec<Found>,
    pub(super) left_out: u64,
    pub(super) examples: Vec<String>,
    /// The maximum number of examples.
    named: usize,
}

impl Walked {
    fn leave_out(&mut self, path: &Path, is_folder: bool) {
        self.left_out += 1;
        if self.examples.len() < self.named {
            let slash = if is_folder { "/" } else { "" };
            self.examples.push(format!("{}{slash}", path.display()));
        }
    }
}

/// The ignore rules that apply to a folder, lowest precedence first.
struct Rules {
    defaults: Gitignore,
    git: Vec<Gitignore>,
    own: Vec<Gitignore>,
    flags: Gitignore,
}

impl Rules {
    fn ignores(&self, full: &Path, is_folder: bool) -> bool {
        let strongest_first = std::iter::once(&self.flags)
            .chain(self.own.iter().rev())
            .chain(self.git.iter().rev())
            .chain(std::iter::once(&self.defaults));
        for rules in strongest_first {
            match rules.matched(full, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

pub(super) fn walk(folder: &Path, options: &PackOptions) -> Result<Walked, BundleError> {
    // Patterns match by path prefix, so all paths need the same root.
    let root = folder
        .canonicalize()
        .map_err(|source| read(folder, source))?;
    let from_lines = |name: &str, lines: &[String]| rules(&root, name, lines);
    let defaults: Vec<String> = DEFAULT_IGNORES.iter().map(ToString::to_string).collect();
    let mut rules = Rules {
        defaults: from_lines("the defaults", &defaults)?,
        git: inherited(&root)?,
        own: Vec::new(),
        flags: from_lines("the `ignore` setting", &options.ignore)?,
    };
    let mut walked = Walked {
        named: match options.names_all {
            true => usize::MAX,
            false => EXAMPLES,
        },
        ..Walked::default()
    };
    descend(&root, Path::new(""), &mut rules, &mut walked, &options.stop)?;
    Ok(walked)
}

fn descend(
    root: &Path,
    folder: &Path,
    rules: &mut Rules,
    walked: &mut Walked,
    stop: &AtomicBool,
) -> Result<(), BundleError> {
    let go_on = || match stop.load(Ordering::Relaxed) {
        true => Err(BundleError::Stopped),
        false => Ok(()),
    };
    let full = root.join(folder);
    let (git, own) = (rules.git.len(), rules.own.len());
    rules
        .git
        .extend(from_file(&full, &full.join(".gitignore"))?);
    rules.own.extend(from_file(&full, &full.join(IGNORE_FILE))?);
    let mut entries = Vec::new();
    for entry in fs::read_dir(&full).map_err(|source| read(&full, source))? {
        go_on()?;
        entries.push(entry.map_err(|source| read(&full, source))?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        go_on()?;
        let full = entry.path();
        let path = folder.join(entry.file_name());
        let metadata = full
            .symlink_metadata()
            .map_err(|source| read(&full, source))?;
        let is_folder = metadata.is_dir();
        if rules.ignores(&full, is_folder) || (is_folder && is_cache(&full)) {
            walked.leave_out(&path, is_folder);
            continue;
        }
        let kind = if is_folder {
            Kind::Folder
        } else if metadata.is_file() {
            Kind::File
        } else if metadata.is_symlink() {
            Kind::Link
        } else {
            walked.leave_out(&path, false);
            continue;
        };
        let size = if kind == Kind::File {
            metadata.len()
        } else {
            0
        };
        let executable = metadata.permissions().mode() & 0o100 != 0;
        walked.entries.push(Found {
            path: path.clone(),
            kind,
            size,
            executable,
            // A folder is represented by its contents.
            stamp: if is_folder {
                Stamp::default()
            } else {
                stamp(&metadata)
            },
        });
        if is_folder {
            descend(root, &path, rules, walked, stop)?;
        }
    }
    rules.git.truncate(git);
    rules.own.truncate(own);
    Ok(())
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    Stamp {
        inode: metadata.ino(),
        modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// The .gitignore files between the root of the git repository and the folder, if it is in
/// one. Files above the root do not apply.
fn inherited(root: &Path) -> Result<Vec<Gitignore>, BundleError> {
    let Some(repository) = root.ancestors().find(|folder| folder.join(".git").exists()) else {
        return Ok(Vec::new());
    };
    let mut rules: Vec<Gitignore> = from_file(repository, &repository.join(".git/info/exclude"))?
        .into_iter()
        .collect();
    let above: Vec<&Path> = root
        .ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(repository))
        .collect();
    for folder in above.into_iter().rev() {
        rules.extend(from_file(folder, &folder.join(".gitignore"))?);
    }
    Ok(rules)
}

fn from_file(folder: &Path, file: &Path) -> Result<Option<Gitignore>, BundleError> {
    if !file.is_file() {
        return Ok(None);
    }
    let mut builder = GitignoreBuilder::new(folder);
    if let Some(error) = builder.add(file) {
        return Err(BundleError::Pattern {
            path: file.to_owned(),
            problem: error.to_string(),
        });
    }
    build(builder, file).map(Some)
}

/// Rules from a setting instead of a file; `name` names the setting in errors.
pub(super) fn rules(root: &Path, name: &str, lines: &[String]) -> Result<Gitignore, BundleError> {
    let mut builder = GitignoreBuilder::new(root);
    for line in lines {
        builder
            .add_line(None, line)
            .map_err(|error| BundleError::Pattern {
                path: PathBuf::from(name),
                problem: error.to_string(),
            })?;
    }
    build(builder, Path::new(name))
}

fn build(builder: GitignoreBuilder, path: &Path) -> Result<Gitignore, BundleError> {
    builder.build().map_err(|error| BundleError::Pattern {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

fn is_cache(folder: &Path) -> bool {
    let mut mark = [0; CACHE_SIGNATURE.len()];
    let file = folder.join(CACHE_MARK);
    // Do not block on a pipe of that name.
    file.is_file()
        && File::open(file).is_ok_and(|mut file| file.read_exact(&mut mark).is_ok())
        && mark == *CACHE_SIGNATURE
}

fn read(path: &Path, source: std::io::Error) -> BundleError {
    BundleError::Read {
        path: path.to_owned(),
        source,
    }
}
