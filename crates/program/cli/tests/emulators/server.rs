//! The interface of a server for the checks.

use crate::process::Emulator;

/// The bucket, or the container, of the tests.
pub(crate) const BUCKET: &str = "bundles-of-tests";

pub(crate) trait Server {
    /// `az` or `gs`.
    fn scheme(&self) -> &'static str;

    /// The variables with its endpoint and credentials.
    fn settings(&self) -> Vec<(String, String)>;

    /// Words that must not be printed.
    fn secrets(&self) -> Vec<String>;

    /// Writes an object, without the program.
    fn put(&self, key: &str, content: &[u8]);

    /// The keys and sizes of all objects, without the program.
    fn objects(&self) -> Vec<(String, usize)>;

    /// The emulator.
    fn emulator(&self) -> &Emulator;

    /// The URL of a prefix.
    fn url(&self, prefix: &str) -> String {
        format!("{}://{BUCKET}/{prefix}", self.scheme())
    }

    /// The keys of the objects below a prefix.
    fn below(&self, prefix: &str) -> Vec<String> {
        let keys = self.objects().into_iter().map(|(key, _)| key);
        keys.filter(|key| key.starts_with(prefix)).collect()
    }
}
