//! The programs that envtest of controller-runtime starts: `kube-apiserver` and `etcd`. Under
//! these names, the program `longshore` takes their flags and serves the embedded API server,
//! so that the tests of a Go operator run unchanged.
//!
//! `kube-apiserver` keeps its objects in memory. `etcd` does not store data and only answers health
//! checks. As in envtest, no controllers run, unless [`Assets`] were created with them.

mod apiserver;
mod assets;
mod error;
mod etcd;
mod flags;
mod parent;

use std::{ffi::OsString, path::Path};

pub use assets::{Assets, AssetsError};
pub use error::EnvtestError;
use flags::Flags;

/// The name of the API server's program.
const API_SERVER: &str = "kube-apiserver";
/// The name of the store's program.
const STORE: &str = "etcd";

/// A program of envtest, with its arguments.
#[derive(Debug)]
pub struct Invocation {
    program: Program,
    flags: Flags,
    /// The folder that contains the program.
    folder: std::path::PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    ApiServer,
    Store,
}

impl Invocation {
    /// Reads the command line of a process, whose first element is the program. Returns `None` if
    /// the program is not `kube-apiserver` or `etcd`.
    ///
    /// ```
    /// use longshore_embedded::envtest::Invocation;
    ///
    /// let arguments = ["/assets/kube-apiserver", "--secure-port=6443"];
    /// assert!(Invocation::of(arguments.map(Into::into)).is_some());
    /// assert!(Invocation::of(["longshore".into(), "up".into()]).is_none());
    /// ```
    #[must_use]
    pub fn of(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let path = arguments.next()?;
        let path = Path::new(&path);
        let program = match path.file_name()?.to_str()? {
            API_SERVER => Program::ApiServer,
            STORE => Program::Store,
            _ => return None,
        };
        let arguments = arguments.map(|word| word.to_string_lossy().into_owned());
        Some(Self {
            program,
            flags: Flags::read(arguments),
            folder: path.parent()?.to_owned(),
        })
    }

    /// The program's help, if the command line requests it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        let help = match self.program {
            Program::ApiServer => apiserver::HELP,
            Program::Store => etcd::HELP,
        };
        self.flags.help.then_some(help)
    }

    /// Runs the program until it receives SIGTERM or SIGINT, or the process that started it ends.
    /// Passes a note about flags without effect to `note`.
    ///
    /// # Errors
    /// A flag has an invalid value, a file cannot be read, or an address is in use.
    pub async fn run(self, note: impl FnOnce(&str)) -> Result<(), EnvtestError> {
        let Self {
            program,
            mut flags,
            folder,
        } = self;
        let end = parent::end()?;
        match program {
            Program::ApiServer => {
                let settings = apiserver::Settings::read(&mut flags)?;
                report_rest(API_SERVER, &flags, note);
                let behavior = apiserver::Behavior {
                    controllers: assets::runs_controllers(&folder),
                    latency: assets::latency(&folder),
                };
                apiserver::serve(settings, behavior, end).await
            }
            Program::Store => {
                let addresses = etcd::addresses(&mut flags)?;
                report_rest(STORE, &flags, note);
                etcd::serve(addresses, end).await
            }
        }
    }
}

/// Reports the flags that were not used.
fn report_rest(program: &str, flags: &Flags, note: impl FnOnce(&str)) {
    let names = flags.names();
    if !names.is_empty() {
        let names = names.join(", ");
        note(&format!("{program}: these flags have no effect: {names}"));
    }
}
