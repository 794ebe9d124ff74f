//! The states of the folder, and the archives of their differences.

use std::{
    collections::{BTreeSet, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use longshore::launcher::{
    PackOptions,
    bundle::{BundleError, ChangeArchive, Changes, Listing, Manifest},
    dev::{MAX_CHANGE_BYTES, Order, PACKED},
};

/// The number of states to keep for tasks that have lost their connection. Tasks with an older
/// state receive all files.
const STATES: usize = 64;

/// A state of the folder.
#[derive(Debug)]
pub(super) struct State {
    /// The name of the state, which tasks know.
    pub(super) name: String,
    pub(super) manifest: Arc<Manifest>,
}

/// An order with its archive.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) order: Order,
    pub(super) archive: Vec<u8>,
    pub(super) changes: Changes,
}

/// A folder and its states since it was packed.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    options: PackOptions,
    states: Mutex<VecDeque<Arc<State>>>,
    /// All paths that tasks may have, for tasks in an unknown state.
    sent: Mutex<BTreeSet<PathBuf>>,
    /// The last parcel, which most tasks share, by the names of its states.
    last: Mutex<Option<(String, String, Arc<Parcel>)>>,
    /// Files with the output of this program, which no state contains.
    own_output: Mutex<BTreeSet<PathBuf>>,
}

/// The reason why changes cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error(transparent)]
    Pack(#[from] BundleError),
    #[error(
        "the changed files have {bytes} bytes, more than {MAX_CHANGE_BYTES}; largest: {largest}; exclude them with .longshoreignore, or start again"
    )]
    TooLarge { bytes: u64, largest: String },
    #[error("the path {} is not UTF-8 and cannot be removed in the tasks", .0.display())]
    Name(PathBuf),
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Folder {
    /// A folder that was packed in this state.
    pub(super) fn packed(path: &Path, options: PackOptions, packed: Manifest) -> Self {
        Self::new(path, options, PACKED.to_owned(), packed)
    }

    /// A folder whose current state gets this name. The tasks' states are learned from the tasks.
    pub(super) fn attached(
        path: &Path,
        options: PackOptions,
        name: String,
    ) -> Result<Self, BundleError> {
        let current = Manifest::of_folder(path, &options)?;
        Ok(Self::new(path, options, name, current))
    }

    fn new(path: &Path, options: PackOptions, name: String, manifest: Manifest) -> Self {
        let sent = manifest.paths().map(Path::to_owned).collect();
        let first = State {
            name,
            manifest: Arc::new(manifest),
        };
        Self {
            path: path.to_owned(),
            options,
            states: Mutex::new([Arc::new(first)].into()),
            sent: Mutex::new(sent),
            last: Mutex::default(),
            own_output: Mutex::default(),
        }
    }

    /// The state that was packed, or in which the session has attached.
    pub(super) fn first(&self) -> Option<Arc<State>> {
        lock(&self.states).front().map(Arc::clone)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the current state of the folder. Blocks.
    pub(super) fn read(&self) -> Result<Manifest, BundleError> {
        let manifest = Manifest::of_folder(&self.path, &self.options)?;
        Ok(match &*lock(&self.own_output) {
            files if files.is_empty() => manifest,
            files => manifest.without(files),
        })
    }

    /// Removes files with the output of this program from all states, also from those that are
    /// read later. Tasks keep the files that they have.
    pub(super) fn set_aside(&self, files: &[PathBuf]) {
        let mut own_output = lock(&self.own_output);
        own_output.extend(files.iter().cloned());
        for state in &mut *lock(&self.states) {
            *state = Arc::new(State {
                name: state.name.clone(),
                manifest: Arc::new(state.manifest.without(&own_output)),
            });
        }
    }

    /// The state of this name.
    pub(super) fn state(&self, name: &str) -> Option<Arc<State>> {
        let states = lock(&self.states);
        states.iter().find(|state| state.name == name).cloned()
    }

    /// Records a new state.
    pub(super) fn add(&self, state: Arc<State>) {
        let paths = state.manifest.paths().map(Path::to_owned);
        lock(&self.sent).extend(paths);
        let mut states = lock(&self.states);
        states.push_back(state);
        if states.len() > STATES {
            // The first state is the state of new pods.
            states.remove(1);
        }
    }

    /// Returns true if the state with this name is known.
    pub(super) fn knows(&self, name: &str) -> bool {
        lock(&self.states).iter().any(|state| state.name == name)
    }

    /// Records the state of a task from a listing of its code, compared with the folder in the
    /// state `now`. The empty name stands for an unknown state, of which only the paths matter.
    /// Blocks.
    pub(super) fn learn(&self, name: String, listing: &Listing, now: &State) {
        lock(&self.sent).extend(listing.paths().map(Path::to_owned));
        if name.is_empty() || self.knows(&name) {
            return;
        }
        let manifest = now.manifest.elsewhere(&self.path, listing);
        self.add(Arc::new(State {
            name,
            manifest: Arc::new(manifest),
        }));
    }

    /// Returns true if the state with this name has the same files as another one.
    pub(super) fn is_in(&self, name: &str, state: &State) -> bool {
        let states = lock(&self.states);
        let found = states.iter().find(|known| known.name == name);
        found.is_some_and(|known| known.manifest == state.manifest)
    }

    /// Replaces the state of the same name: only times of files differ.
    pub(super) fn replace(&self, state: Arc<State>) {
        let mut states = lock(&self.states);
        if let Some(known) = states.iter_mut().find(|known| known.name == state.name) {
            *known = state;
        }
    }

    /// Returns the order that brings a task from its state to this one. Blocks.
    pub(super) fn parcel(
        &self,
        from: &str,
        to: &State,
        restart: bool,
    ) -> Result<Arc<Parcel>, SendError> {
        let known = lock(&self.last).clone();
        if let Some((known_from, known_to, parcel)) = known
            && known_from == from
            && known_to == to.name
            && parcel.order.restart == restart
        {
            return Ok(parcel);
        }
        let before = {
            let states = lock(&self.states);
            let found = states.iter().find(|state| state.name == from);
            found.map(|state| Arc::clone(&state.manifest))
        };
        let mut changes = to
            .manifest
            .changes_since(before.as_deref().unwrap_or(&Manifest::default()));
        if before.is_none() {
            let now: BTreeSet<&Path> = to.manifest.paths().collect();
            let sent = lock(&self.sent);
            let gone = sent.iter().rev();
            let gone = gone.filter(|path| !now.contains(path.as_path()));
            changes.removed = gone.cloned().collect();
        }
        let parcel = Arc::new(self.pack(changes, to, restart)?);
        *lock(&self.last) = Some((from.to_owned(), to.name.clone(), Arc::clone(&parcel)));
        Ok(parcel)
    }

    fn pack(&self, changes: Changes, to: &State, restart: bool) -> Result<Parcel, SendError> {
        if changes.bytes > MAX_CHANGE_BYTES {
            let largest = to.manifest.largest(&changes.changed, 3);
            let largest: Vec<String> = largest
                .iter()
                .map(|(path, size)| format!("{} ({})", path.display(), crate::ui::size(*size)))
                .collect();
            return Err(SendError::TooLarge {
                bytes: changes.bytes,
                largest: largest.join(", "),
            });
        }
        let name = |path: &PathBuf| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| SendError::Name(path.clone()))
        };
        let removed = changes.removed.iter().map(name).collect::<Result<_, _>>()?;
        let archive = match changes.changed.is_empty() {
            true => ChangeArchive {
                bytes: Vec::new(),
                sha256: String::new(),
            },
            false => to
                .manifest
                .pack(&self.path, &changes.changed, &self.options)?,
        };
        Ok(Parcel {
            order: Order {
                state: to.name.clone(),
                size: archive.bytes.len() as u64,
                sha256: archive.sha256,
                removed,
                restart,
            },
            archive: archive.bytes,
            changes,
        })
    }
}
