//! Outputs in an object store or in a claim, to which tasks have uploaded or written them.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Read},
    ops::Range,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use tokio::runtime::Handle;

use super::objects::{ObjectStream, Objects, read};
use crate::{
    outputs::{
        Contents, FetchOptions, Fetched, Manifest, OutputFile, OutputsError,
        packed::{PART_LIMIT, PackedManifest, TRAILER, Trailer},
        uploads::{ended, folder, running},
    },
    run::Run,
    store::{Store, StoreError},
};

/// The number of requests at the same time.
const PARALLEL: usize = 16;
/// The number of bytes at the end of an object that are read in one request. Most lists fit.
const END: u64 = 64 * 1024;
/// The maximum number of bytes to skip instead of starting another request.
const SKIPPED: u64 = 256 * 1024;
/// The number of times to continue reading after a lost connection.
const RETRIES: u32 = 3;

/// The outputs of a run in a store.
#[derive(Debug)]
pub struct StoredOutputs {
    objects: Box<dyn Objects>,
    folder: String,
}

/// The outputs of a task in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    packed: PackedManifest,
    /// The keys of the task's objects, in the order of their contents.
    keys: Vec<String>,
}

impl StoredTask {
    /// The files of the task.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.packed.manifest
    }
}

impl StoredOutputs {
    /// Returns access to the outputs of a run in this store.
    ///
    /// # Errors
    /// The store is not an object store, or its settings are invalid.
    pub fn new(
        store: &str,
        run: &Run,
        settings: &[(String, String)],
    ) -> Result<Self, OutputsError> {
        let Store::Remote(remote) = Store::parse(store)? else {
            return Err(OutputsError::NotKept);
        };
        Ok(Self::of_objects(Box::new(remote.objects(settings)?), run))
    }

    /// Returns access to the outputs of a run among these objects.
    #[must_use]
    pub fn of_objects(objects: Box<dyn Objects>, run: &Run) -> Self {
        Self {
            objects,
            folder: folder(&run.namespace, run.name.as_str()),
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The objects of the run by name, with their sizes.
    async fn sizes(&self, tasks: &[(String, u32)]) -> Result<BTreeMap<String, u64>, OutputsError> {
        if let Some(found) = self.objects.list(&self.folder).await? {
            return Ok(found.into_iter().collect());
        }
        // The permission to list is missing.
        let names = tasks
            .iter()
            .flat_map(|(role, index)| [ended(role, *index, 0), running(role, *index)]);
        let names: Vec<String> = names.collect();
        let sizes = stream::iter(names).map(|name| async move {
            let size = self.objects.size(&self.key(&name)).await;
            (name, size)
        });
        let sizes: Vec<_> = sizes.buffered(PARALLEL).collect().await;
        let (mut found, mut denied) = (BTreeMap::new(), None);
        for (name, size) in sizes {
            match size {
                Ok(Some(size)) => drop(found.insert(name, size)),
                Ok(None) => {}
                // A store may also respond like this if an object does not exist.
                Err(error @ OutputsError::Store(StoreError::NotListed { .. })) => {
                    denied = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match denied {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// The outputs of tasks: of the last attempt that has ended, otherwise of the running one. Also
    /// returns the errors of damaged outputs.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn of_tasks(
        &self,
        tasks: Vec<(String, u32)>,
    ) -> Result<(Vec<StoredTask>, Vec<OutputsError>), OutputsError> {
        let sizes = self.sizes(&tasks).await?;
        let found = tasks.into_iter().filter_map(|(role, index)| {
            let names = [ended(&role, index, 0), running(&role, index)];
            let mut names = names.into_iter();
            let (name, size) =
                names.find_map(|name| sizes.get(&name).map(|size| (name.clone(), *size)))?;
            Some(async move { self.current(role, index, &name, size).await })
        });
        let mut read = stream::iter(found).buffered(PARALLEL);
        let (mut tasks, mut damaged) = (Vec::new(), Vec::new());
        while let Some(task) = read.next().await {
            match task {
                Ok(task) => tasks.push(task),
                Err(error @ OutputsError::Damaged { .. }) => damaged.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok((tasks, damaged))
    }

    /// Reads the list of a task, and repeats this if the task replaces the object at the same time.
    async fn current(
        &self,
        role: String,
        index: u32,
        name: &str,
        mut size: u64,
    ) -> Result<StoredTask, OutputsError> {
        let mut retries = 0;
        loop {
            let read = self.task(role.clone(), index, name, size).await;
            if !matches!(read, Err(OutputsError::Damaged { .. })) || retries >= RETRIES {
                return read;
            }
            match self.objects.size(&self.key(name)).await? {
                Some(found) if found != size => size = found,
                // The object is damaged.
                _ => return read,
            }
            retries += 1;
        }
    }

    /// Reads the list of a task.
    async fn task(
        &self,
        role: String,
        index: u32,
        name: &str,
        size: u64,
    ) -> Result<StoredTask, OutputsError> {
        let key = self.key(name);
        let damaged = |problem: String| OutputsError::Damaged {
            path: name.to_owned(),
            problem,
        };
        let begin = size.saturating_sub(END);
        let end = read(&*self.objects, &key, begin..size).await?;
        let trailer = end
            .len()
            .saturating_sub(usize::try_from(TRAILER).unwrap_or_default());
        let trailer = Trailer::parse(&end[trailer..], size).map_err(damaged)?;
        let list_begin = size - TRAILER - trailer.length;
        let list = match list_begin.checked_sub(begin) {
            Some(from) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                let to = end.len() - usize::try_from(TRAILER).unwrap_or_default();
                end.slice(from..to)
            }
            None => read(&*self.objects, &key, list_begin..size - TRAILER).await?,
        };
        let packed = trailer.read(&list).map_err(damaged)?;
        let last = packed.parts.last().copied();
        if last != Some(list_begin) {
            return Err(damaged("it has not the contents of its list".to_owned()));
        }
        let manifest = &packed.manifest;
        if (&manifest.role, manifest.index) != (&role, index) {
            return Err(damaged(format!("it is of {}", manifest.task())));
        }
        let count = packed.parts.len();
        if packed.parts[..count - 1]
            .iter()
            .any(|part| *part > PART_LIMIT)
        {
            return Err(damaged("a part is too large".to_owned()));
        }
        let mut keys: Vec<String> = (1..count)
            .map(|part| self.key(&ended(&role, index, part)))
            .collect();
        keys.push(key);
        Ok(StoredTask { packed, keys })
    }

    /// Writes all or some files of a task to a folder, like
    /// [`Outputs::fetch`](crate::outputs::Outputs::fetch). Must not be called by a task of the
    /// runtime that handles its requests.
    ///
    /// # Errors
    /// The same as `Outputs::fetch`. Also if the store does not answer.
    pub fn fetch(
        &self,
        runtime: &Handle,
        task: &StoredTask,
        manifest: &Manifest,
        options: &FetchOptions,
    ) -> Result<Fetched, OutputsError> {
        let files = task.manifest().files.iter();
        let offsets = files.zip(&task.packed.offsets);
        let mut contents = StoredContents {
            offsets: offsets
                .map(|(file, offset)| (file.sha256.as_str(), *offset))
                .collect(),
            outputs: self,
            task,
            runtime,
            open: None,
        };
        let fetched = crate::outputs::fetch_from(&mut contents, manifest, options);
        if matches!(fetched, Err(OutputsError::Damaged { .. }))
            && runtime.block_on(self.is_replaced(task))
        {
            return Err(OutputsError::Replaced {
                task: task.manifest().task(),
            });
        }
        fetched
    }

    /// Returns true if a task has replaced its outputs since its list was read.
    async fn is_replaced(&self, task: &StoredTask) -> bool {
        let manifest = task.manifest();
        let own = (manifest.role.clone(), manifest.index);
        match self.of_tasks(vec![own]).await {
            Ok((found, _)) => found.iter().any(|found| found != task),
            Err(_) => false,
        }
    }

    /// The last bytes of a file.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn tail(
        &self,
        task: &StoredTask,
        path: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, OutputsError> {
        let files = task.manifest().files.iter().zip(&task.packed.offsets);
        let Some((file, offset)) = files.into_iter().find(|(file, _)| file.path == path) else {
            return Ok(None);
        };
        let end = offset + file.size;
        let begin = end.saturating_sub(limit).max(*offset);
        let mut text = Vec::new();
        for (part, range) in in_parts(&task.packed.parts, begin..end) {
            text.extend(read(&*self.objects, &task.keys[part], range).await?);
        }
        Ok(Some(text))
    }

    /// Deletes all objects of the run. Returns the number of freed bytes.
    ///
    /// # Errors
    /// The store does not answer, or the client is not permitted to list or delete.
    pub async fn remove(&self, tasks: &[(String, u32)]) -> Result<u64, OutputsError> {
        let sizes = self.sizes(tasks).await?;
        let mut freed: u64 = 0;
        for (name, size) in sizes {
            self.objects.delete(&self.key(&name)).await?;
            freed = freed.saturating_add(size);
        }
        Ok(freed)
    }
}

/// The ranges of a stream's contents in its objects.
fn in_parts(parts: &[u64], range: Range<u64>) -> Vec<(usize, Range<u64>)> {
    let (mut begin, mut found) = (0, Vec::new());
    for (part, size) in parts.iter().enumerate() {
        let end = begin + size;
        let (from, to) = (range.start.max(begin), range.end.min(end));
        if from < to {
            found.push((part, from - begin..to - begin));
        }
        begin = end;
    }
    found
}

/// Reads the contents of files in the order of their positions, with as few requests as possible.
struct StoredContents<'a> {
    outputs: &'a StoredOutputs,
    task: &'a StoredTask,
    runtime: &'a Handle,
    /// The positions of contents, by their sha256.
    offsets: HashMap<&'a str, u64>,
    open: Option<OpenStream>,
}

/// A response that is being read.
struct OpenStream {
    stream: ObjectStream,
    /// The bytes that were received, but not read.
    rest: Bytes,
    /// The position of `rest` in the contents.
    position: u64,
    /// The end of the object's contents.
    end: u64,
}

impl StoredContents<'_> {
    /// Opens the contents from a position to the end of its object.
    fn open_at(&self, position: u64) -> Result<OpenStream, OutputsError> {
        let mut begin = 0;
        for (part, size) in self.task.packed.parts.iter().enumerate() {
            let end = begin + size;
            if position < end {
                let range = position - begin..*size;
                let stream = self.outputs.objects.stream(&self.task.keys[part], range);
                return Ok(OpenStream {
                    stream: self.runtime.block_on(stream)?,
                    rest: Bytes::new(),
                    position,
                    end,
                });
            }
            begin = end;
        }
        // The list was checked, so that all files are in the contents.
        Ok(OpenStream {
            stream: stream::empty().boxed(),
            rest: Bytes::new(),
            position,
            end: position,
        })
    }

    /// The next bytes at a position.
    fn bytes_at(&mut self, position: u64) -> Result<Bytes, OutputsError> {
        let mut retries = 0;
        loop {
            let is_near = self.open.as_ref().is_some_and(|open| {
                position >= open.position
                    && position < open.end
                    && position - open.position <= SKIPPED
            });
            let mut open = match self.open.take().filter(|_| is_near) {
                Some(open) => open,
                None => self.open_at(position)?,
            };
            let skip = usize::try_from(position - open.position).unwrap_or(usize::MAX);
            if skip < open.rest.len() {
                let bytes = open.rest.split_off(skip);
                open.position = position + bytes.len() as u64;
                open.rest = Bytes::new();
                self.open = Some(open);
                return Ok(bytes);
            }
            open.position += open.rest.len() as u64;
            match self.runtime.block_on(open.stream.next()) {
                Some(Ok(bytes)) => {
                    open.rest = bytes;
                    self.open = Some(open);
                }
                Some(Err(error)) if retries >= RETRIES => return Err(error),
                None if retries >= RETRIES => return Ok(Bytes::new()),
                // Continue with another request.
                Some(Err(_)) | None => retries += 1,
            }
        }
    }

    /// Returns bytes that were not read.
    fn give_back(&mut self, bytes: Bytes) {
        if let Some(open) = &mut self.open {
            open.position -= bytes.len() as u64;
            open.rest = bytes;
        }
    }
}

impl Contents for StoredContents<'_> {
    fn open<'a>(&'a mut self, file: &OutputFile) -> Result<Box<dyn Read + 'a>, OutputsError> {
        let begin = self.offsets.get(file.sha256.as_str());
        let begin = begin.copied().unwrap_or_default();
        Ok(Box::new(FileReader {
            contents: self,
            position: begin,
            end: begin + file.size,
            rest: Bytes::new(),
        }))
    }

    fn name(&self, _file: &OutputFile) -> String {
        self.task.keys.last().cloned().unwrap_or_default()
    }
}

/// Reads a file of a stream.
struct FileReader<'a, 'b> {
    contents: &'a mut StoredContents<'b>,
    position: u64,
    end: u64,
    rest: Bytes,
}

impl Read for FileReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position >= self.end || buffer.is_empty() {
            return Ok(0);
        }
        if self.rest.is_empty() {
            let bytes = self.contents.bytes_at(self.position);
            let mut bytes = bytes.map_err(io::Error::other)?;
            let own = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
            if bytes.len() > own {
                self.contents.give_back(bytes.split_off(own));
            }
            self.rest = bytes;
        }
        let count = self.rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        self.position += count as u64;
        Ok(count)
    }
}
