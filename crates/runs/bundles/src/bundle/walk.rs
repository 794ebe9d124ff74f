//! Finds the files to pack: all files of a folder, sorted, without the ignored ones.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use ignore::{Match, gitignore::Gitignore};

use super::{
    BundleError, EXAMPLES, PackOptions,
    entry::{Found, Kind, Stamp},
    environment::{is_environment, is_part},
    git::{Patterns, Repository, Scope, Variables, Verdict},
    rules::{DEFAULT_IGNORES, IGNORE_FILE, from_file, is_cache, rules},
};

#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) entries: Vec<Found>,
    pub(super) left_out: u64,
    pub(super) examples: Vec<String>,
    /// The first virtual environments among the excluded folders, with the same limit as the
    /// examples.
    pub(super) environments: Vec<String>,
    pub(super) warnings: Vec<String>,
    /// The maximum number of examples.
    named: usize,
}

impl Walked {
    fn leave_out(&mut self, path: &Path, kind: Excluded) {
        self.left_out += 1;
        let slash = match kind {
            Excluded::Other => "",
            Excluded::Environment | Excluded::Folder => "/",
        };
        let name = || format!("{}{slash}", path.display());
        if self.examples.len() < self.named {
            self.examples.push(name());
        }
        if kind == Excluded::Environment && self.environments.len() < EXAMPLES {
            self.environments.push(name());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excluded {
    Environment,
    Folder,
    Other,
}

/// The part of an entry to pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Pack,
    /// A folder that git ignores, with files that git tracks.
    PackTracked,
    LeaveOut(Excluded),
}

pub(super) fn walk(folder: &Path, options: &PackOptions) -> Result<Walked, BundleError> {
    walk_with(folder, options, &|name| std::env::var_os(name))
}

/// Walks a folder with other environment variables.
pub(super) fn walk_with(
    folder: &Path,
    options: &PackOptions,
    variables: &Variables<'_>,
) -> Result<Walked, BundleError> {
    // Patterns match by path prefix, so all paths need the same root.
    let root = folder
        .canonicalize()
        .map_err(|source| read(folder, source))?;
    let defaults: Vec<String> = DEFAULT_IGNORES.iter().map(ToString::to_string).collect();
    let mut walk = Walk {
        defaults: rules(&root, "the defaults", &defaults)?,
        flags: rules(&root, "the `ignore` setting", &options.ignore)?,
        own: Vec::new(),
        scopes: Vec::new(),
        walked: Walked {
            named: match options.names_all {
                true => usize::MAX,
                false => EXAMPLES,
            },
            ..Walked::default()
        },
        stop: &options.stop,
        variables,
        is_environment: is_environment(&root),
        root,
    };
    let scope = Scope::of_folder(&walk.root, variables);
    walk.enter_scope(scope);
    walk.all()?;
    Ok(walk.walked)
}

/// A repository whose files are being walked, with the patterns of the folders above them.
struct Inner {
    scope: Scope,
    patterns: Vec<Patterns>,
}

/// A folder whose entries are being walked, and the additions of its files to the rules.
struct Level {
    path: PathBuf,
    names: std::vec::IntoIter<OsString>,
    packs_tracked_only: bool,
    has_scope: bool,
    has_patterns: bool,
    has_own: bool,
}

/// A walk through a folder, without recursion, because a folder can be deeper than the stack.
struct Walk<'a> {
    root: PathBuf,
    /// True if the folder to pack is a virtual environment that also contains the code.
    is_environment: bool,
    defaults: Gitignore,
    flags: Gitignore,
    /// The project's own ignore files, lowest precedence first.
    own: Vec<Gitignore>,
    /// The repositories around the current folder, outermost first. Never empty.
    scopes: Vec<Inner>,
    walked: Walked,
    stop: &'a AtomicBool,
    variables: &'a Variables<'a>,
}

impl Walk<'_> {
    fn all(&mut self) -> Result<(), BundleError> {
        let is_ignored = self.inner().scope.is_ignored;
        let mut levels = vec![self.enter(PathBuf::new(), is_ignored)?];
        while let Some(level) = levels.last_mut() {
            let Some(name) = level.names.next() else {
                if let Some(level) = levels.pop() {
                    self.leave(&level);
                }
                continue;
            };
            let path = level.path.join(name);
            let packs_tracked_only = level.packs_tracked_only;
            if let Some(inside) = self.entry(path, packs_tracked_only)? {
                levels.push(inside);
            }
        }
        Ok(())
    }

    fn go_on(&self) -> Result<(), BundleError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(BundleError::Stopped),
            false => Ok(()),
        }
    }

    /// Reads the names and the rules of a folder.
    fn enter(&mut self, path: PathBuf, packs_tracked_only: bool) -> Result<Level, BundleError> {
        let full = self.root.join(&path);
        let mut names = Vec::new();
        for entry in fs::read_dir(&full).map_err(|source| read(&full, source))? {
            self.go_on()?;
            names.push(entry.map_err(|source| read(&full, source))?.file_name());
        }
        names.sort_unstable();
        let nested = self.nested(&full, &path);
        let has_scope = nested.is_some();
        if let Some(scope) = nested {
            self.enter_scope(scope);
        }
        let patterns = self.inner().scope.read_folder(&full, &path);
        let has_patterns = patterns.is_some();
        if let Some(inner) = self.scopes.last_mut() {
            inner.patterns.extend(patterns);
        }
        let own = from_file(&full, &full.join(IGNORE_FILE))?;
        let has_own = own.is_some();
        self.own.extend(own);
        Ok(Level {
            path,
            names: names.into_iter(),
            packs_tracked_only: packs_tracked_only && !has_scope,
            has_scope,
            has_patterns,
            has_own,
        })
    }

    fn leave(&mut self, level: &Level) {
        if level.has_own {
            self.own.pop();
        }
        if level.has_patterns
            && let Some(inner) = self.scopes.last_mut()
        {
            inner.patterns.pop();
        }
        if level.has_scope {
            self.scopes.pop();
        }
    }

    fn enter_scope(&mut self, mut scope: Scope) {
        self.walked.warnings.append(&mut scope.problems);
        self.scopes.push(Inner {
            scope,
            patterns: Vec::new(),
        });
    }

    /// The repository in a folder, whose files git does not see from outside.
    fn nested(&self, full: &Path, path: &Path) -> Option<Scope> {
        if path.as_os_str().is_empty() || !self.inner().scope.is_separate(path) {
            return None;
        }
        Scope::of_nested(&Repository::at(full)?, path, self.variables)
    }

    fn inner(&self) -> &Inner {
        &self.scopes[self.scopes.len() - 1]
    }

    /// Adds or excludes an entry. Returns a folder to walk.
    fn entry(
        &mut self,
        path: PathBuf,
        packs_tracked_only: bool,
    ) -> Result<Option<Level>, BundleError> {
        self.go_on()?;
        let full = self.root.join(&path);
        let metadata = full
            .symlink_metadata()
            .map_err(|source| read(&full, source))?;
        let kind = if metadata.is_dir() {
            Kind::Folder
        } else if metadata.is_file() {
            Kind::File
        } else if metadata.is_symlink() {
            Kind::Link
        } else {
            self.walked.leave_out(&path, Excluded::Other);
            return Ok(None);
        };
        let choice = self.choose(&full, &path, kind, packs_tracked_only);
        if let Choice::LeaveOut(kind) = choice {
            self.walked.leave_out(&path, kind);
            return Ok(None);
        }
        self.walked
            .entries
            .push(found(path.clone(), kind, &metadata));
        match kind {
            Kind::Folder => self.enter(path, choice == Choice::PackTracked).map(Some),
            Kind::File | Kind::Link => Ok(None),
        }
    }

    fn choose(&self, full: &Path, path: &Path, kind: Kind, packs_tracked_only: bool) -> Choice {
        let is_folder = kind == Kind::Folder;
        let excluded = match is_folder {
            true => Excluded::Folder,
            false => Excluded::Other,
        };
        let own = std::iter::once(&self.flags).chain(self.own.iter().rev());
        let own = own
            .map(|rules| rules.matched(full, is_folder))
            .find(|found| !found.is_none());
        match own {
            Some(Match::Ignore(_)) => return Choice::LeaveOut(excluded),
            Some(Match::Whitelist(_)) => return Choice::Pack,
            Some(Match::None) | None => {}
        }
        if full.file_name() == Some(OsStr::new(".git")) {
            return Choice::LeaveOut(excluded);
        }
        if kind != Kind::File && is_environment(full) {
            return Choice::LeaveOut(Excluded::Environment);
        }
        let is_tracked = self.inner().scope.tracks(path, is_folder);
        if is_tracked && !is_folder {
            return Choice::Pack;
        }
        let is_part = self.is_environment && is_part(path);
        if !packs_tracked_only && !is_part && !self.is_ignored(full, path, kind) {
            return Choice::Pack;
        }
        match is_tracked {
            true => Choice::PackTracked,
            false => Choice::LeaveOut(excluded),
        }
    }

    /// Applies git's rules, and then the defaults.
    fn is_ignored(&self, full: &Path, path: &Path, kind: Kind) -> bool {
        let is_folder = kind == Kind::Folder;
        let inner = self.inner();
        match inner.scope.matched(path, is_folder, &inner.patterns) {
            Some(Verdict::Ignored) => true,
            Some(Verdict::Included) => false,
            None => {
                // A link to a folder of packages is as useless on other machines as the folder.
                let is_folder_here = is_folder || kind == Kind::Link && full.is_dir();
                self.defaults.matched(full, is_folder_here).is_ignore()
                    || (is_folder && is_cache(full))
            }
        }
    }
}

fn found(path: PathBuf, kind: Kind, metadata: &fs::Metadata) -> Found {
    Found {
        path,
        kind,
        size: match kind {
            Kind::File => metadata.len(),
            Kind::Folder | Kind::Link => 0,
        },
        executable: metadata.permissions().mode() & 0o100 != 0,
        stamp: match kind {
            // A folder is represented by its contents.
            Kind::Folder => Stamp::default(),
            Kind::File | Kind::Link => stamp(metadata),
        },
    }
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

fn read(path: &Path, source: std::io::Error) -> BundleError {
    BundleError::Read {
        path: path.to_owned(),
        source,
    }
}
