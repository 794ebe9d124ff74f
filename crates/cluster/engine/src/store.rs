//! The objects in a redb file. It has two tables: `objects` maps `kind NUL key` to the object's
//! JSON; `meta` contains the format version and the revision. The revision is stored separately
//! because deletes also advance it.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use longshore_files::OpenMode;
use redb::{
    Builder, Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, TableDefinition,
};

use crate::{OpenError, journal::Record};

const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// The format version that this program reads and writes.
const FORMAT_VERSION: u64 = 1;
/// Cache size of the database in bytes. Reads use the file only while it is
/// opened, so only the inner pages of the tree matter.
const CACHE_BYTES: usize = 4 << 20;

/// Converts the error of an unusable file and adds a remedy if one is known.
fn unusable(path: &Path, error: &longshore_files::Error) -> OpenError {
    let problem = match error {
        longshore_files::Error::Untrusted {
            problem, remedy, ..
        } => format!("{problem}; {remedy}"),
        longshore_files::Error::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    OpenError::Storage {
        path: path.to_owned(),
        problem,
    }
}

/// The objects in a redb file.
pub(crate) struct Store {
    database: Database,
}

/// The settings of the database.
pub(crate) fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// A record, and the new value of its object: the value after the record or the value before it.
pub(crate) type Change<'a> = (&'a Record, Option<&'a [u8]>);

/// A callback that receives each object of the file: kind, key, JSON.
pub(crate) type Visit<'a> = dyn FnMut(&str, &str, &[u8]) -> Result<(), OpenError> + 'a;

impl Store {
    /// Wraps a database that has the tables.
    pub(crate) fn of(database: Database) -> Self {
        Self { database }
    }

    /// The stored revision.
    pub(crate) fn revision(&self) -> Result<u64, redb::Error> {
        self.read_meta("revision")
    }

    /// Opens or creates the file, passes every object to `visit` and returns
    /// the revision.
    pub(crate) fn open(path: &Path, visit: &mut Visit<'_>) -> Result<(Self, u64), OpenError> {
        let failed = |error: redb::Error| OpenError::Storage {
            path: path.to_owned(),
            problem: error.to_string(),
        };
        let store = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Self::create(path)?,
            // The file is never created empty.
            Ok(file) if file.is_file() && file.len() == 0 => {
                return Err(OpenError::Storage {
                    path: path.to_owned(),
                    problem: "the file is empty, its objects are lost: replace it by a backup, or remove it to start without objects".to_owned(),
                });
            }
            _ => Self::open_file(path)?,
        };
        match store.read_meta("format").map_err(failed)? {
            FORMAT_VERSION => {}
            found => {
                let path = PathBuf::from(path);
                return Err(OpenError::Format {
                    path,
                    found,
                    expected: FORMAT_VERSION,
                });
            }
        }
        store.load(visit, &failed)?;
        let revision = store.revision().map_err(failed)?;
        Ok((store, revision))
    }

    /// Creates a new file under a temporary name first, so that a killed
    /// process cannot leave an incomplete file.
    fn create(path: &Path) -> Result<Self, OpenError> {
        let io = |problem: std::io::Error| OpenError::Storage {
            path: path.to_owned(),
            problem: problem.to_string(),
        };
        let new = path.with_extension("new");
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let store = Self::open_file(&new)?;
        std::fs::rename(&new, path).map_err(io)?;
        longshore_files::sync_dir(path.parent().unwrap_or(Path::new(".")))
            .map_err(|error| unusable(path, &error))?;
        Ok(store)
    }

    /// Opens a file with mode 0600 and creates its tables if it is empty.
    fn open_file(path: &Path) -> Result<Self, OpenError> {
        let file = longshore_files::open(path, OpenMode::ReadWrite)
            .map_err(|error| unusable(path, &error))?;
        let database = builder().create_file(file).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse {
                path: path.to_owned(),
            },
            error => OpenError::Storage {
                path: path.to_owned(),
                problem: error.to_string(),
            },
        })?;
        let store = Self { database };
        store.prepare().map_err(|error| OpenError::Storage {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        Ok(store)
    }

    /// Creates the tables of a new file.
    fn prepare(&self) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            transaction.open_table(OBJECTS)?;
            let mut meta = transaction.open_table(META)?;
            if meta.get("format")?.is_none() {
                meta.insert("format", FORMAT_VERSION)?;
                meta.insert("revision", 0)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn read_meta(&self, name: &str) -> Result<u64, redb::Error> {
        let meta = self.database.begin_read()?.open_table(META)?;
        Ok(meta.get(name)?.map_or(0, |value| value.value()))
    }

    fn load(
        &self,
        visit: &mut Visit<'_>,
        failed: &dyn Fn(redb::Error) -> OpenError,
    ) -> Result<(), OpenError> {
        let table =
            || -> Result<_, redb::Error> { Ok(self.database.begin_read()?.open_table(OBJECTS)?) };
        let table = table().map_err(failed)?;
        for entry in table.iter().map_err(|error| failed(error.into()))? {
            let (place, value) = entry.map_err(|error| failed(error.into()))?;
            let place = String::from_utf8_lossy(place.value());
            let (kind, key) = place.split_once('\0').unwrap_or(("", &place));
            visit(kind, key, value.value())?;
        }
        Ok(())
    }

    /// Stores the records in order and the revision that they lead to, in one
    /// transaction. With [`Durability::None`], it is on the disk only after a later
    /// transaction that is synced.
    pub(crate) fn write<'a>(
        &self,
        durability: Durability,
        revision: u64,
        records: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut place = Vec::new();
            for (record, value) in records {
                place.clear();
                place.extend_from_slice(record.kind.as_bytes());
                place.push(0);
                place.extend_from_slice(record.key.as_bytes());
                match value {
                    Some(value) => objects.insert(place.as_slice(), value)?,
                    None => objects.remove(place.as_slice())?,
                };
            }
            transaction.open_table(META)?.insert("revision", revision)?;
        }
        transaction.commit()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(key: &str, value: Option<&'static str>) -> Record {
        Record {
            kind: "pods".into(),
            key: key.into(),
            value: value.map(Into::into),
            before: None,
        }
    }

    fn commit(store: &Store, revision: u64, records: &[Record]) {
        let values = records
            .iter()
            .map(|record| (record, record.value.as_deref()));
        store
            .write(Durability::Immediate, revision, values)
            .unwrap();
    }

    fn open(path: &Path) -> Result<(Store, u64, Vec<String>), OpenError> {
        let mut found = Vec::new();
        let (store, revision) = Store::open(path, &mut |kind, key, value| {
            found.push(format!("{kind} {key} {}", String::from_utf8_lossy(value)));
            Ok(())
        })?;
        Ok((store, revision, found))
    }

    #[test]
    fn records_and_revision_survive_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let (store, revision, found) = open(&path).unwrap();
        assert_eq!((revision, found.len()), (0, 0));
        commit(&store, 1, &[record("n/a", Some("1"))]);
        commit(&store, 3, &[record("n/b", Some("2")), record("n/a", None)]);
        drop(store);
        let (_store, revision, found) = open(&path).unwrap();
        assert_eq!((revision, found), (3, vec!["pods n/b 2".to_owned()]));
    }

    #[test]
    fn the_file_is_created_private_and_existing_files_become_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        drop(open(&path).unwrap());
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(open(&path).unwrap());
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let Err(error) = open(&path) else {
            panic!("a world-writable file was accepted");
        };
        assert!(error.to_string().contains("chmod go-w"), "{error}");
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("a.redb"), folder.path().join("b"));
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(matches!(open(&path), Err(OpenError::Storage { .. })));
        assert!(!target.exists());
    }

    #[test]
    fn an_empty_file_is_not_a_new_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        std::fs::write(&path, "").unwrap();
        let Err(OpenError::Storage { problem, .. }) = open(&path) else {
            panic!("an empty file was accepted");
        };
        assert!(problem.contains("its objects are lost"), "{problem}");
        assert_eq!(path.metadata().unwrap().len(), 0, "it was changed");
    }

    #[test]
    fn leftovers_of_a_killed_process_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        std::fs::write(path.with_extension("new"), b"redb, half made").unwrap();
        drop(open(&path).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_in_use_is_a_distinct_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let _first = open(&path).unwrap();
        assert!(matches!(open(&path), Err(OpenError::InUse { .. })));
    }

    #[test]
    fn other_format_versions_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let (store, ..) = open(&path).unwrap();
        let transaction = store.database.begin_write().unwrap();
        transaction
            .open_table(META)
            .unwrap()
            .insert("format", 7)
            .unwrap();
        transaction.commit().unwrap();
        drop(store);
        assert!(matches!(
            open(&path),
            Err(OpenError::Format { found: 7, .. })
        ));
    }
}
