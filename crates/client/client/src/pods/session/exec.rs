//! Runs commands in containers and attaches to containers.

use http::Method;
use tokio::io::AsyncReadExt;

use super::{ExecOptions, Output, Reader, Session};
use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Pod,
    transport::Call,
    view::View,
};

impl View<Pod> {
    /// Runs a command in a container of a pod. The view must have a namespace.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty command, and the server's errors, for example if the pod or
    /// the container does not exist or is not running.
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
    /// use longshore_client::ExecOptions;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// let options = ExecOptions { stdin: true, ..ExecOptions::default() };
    /// let mut session = pods.exec("web", ["tr", "a-z", "A-Z"], &options).await?;
    /// let (mut input, mut output) = (session.stdin().unwrap(), session.stdout().unwrap());
    /// input.write_all(b"hello").await?;
    /// input.shutdown().await?;
    /// let mut text = String::new();
    /// output.read_to_string(&mut text).await?;
    /// assert_eq!((text.as_str(), session.wait().await?), ("HELLO", 0));
    /// # Ok(()) });
    /// ```
    pub async fn exec<C>(
        &self,
        name: &str,
        command: impl IntoIterator<Item = C>,
        options: &ExecOptions,
    ) -> Result<Session>
    where
        C: Into<String>,
    {
        let command: Vec<String> = command.into_iter().map(Into::into).collect();
        if command.is_empty() {
            return Err(Error::Invalid(
                "the command is empty: give a program and its arguments".to_owned(),
            ));
        }
        let query = command.into_iter().map(|arg| ("command".to_owned(), arg));
        let call = self.session_call(name, "exec", options)?.queries(query);
        Session::open(&self.cluster().transport, &call, options).await
    }

    /// Attaches to the main process of a container. Output from before the call is not
    /// included. The process has input only if the container's spec has `stdin: true`.
    ///
    /// # Errors
    /// The same as [`View::exec`].
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("while sleep 0.05; do echo tick; done", async |pods| {
    /// use longshore_client::ExecOptions;
    /// use tokio::io::AsyncReadExt;
    ///
    /// let mut session = pods.attach("web", &ExecOptions::default()).await?;
    /// let mut line = [0; 5];
    /// session.stdout().unwrap().read_exact(&mut line).await?;
    /// assert_eq!(&line, b"tick\n");
    /// # Ok(()) });
    /// ```
    pub async fn attach(&self, name: &str, options: &ExecOptions) -> Result<Session> {
        let call = self.session_call(name, "attach", options)?;
        Session::open(&self.cluster().transport, &call, options).await
    }

    /// Runs a command in a container of a pod, waits for its end, and returns its output. An
    /// exit code other than 0 is not an error.
    ///
    /// # Errors
    /// The same as [`View::exec`] and [`Session::wait`].
    ///
    /// ```
    /// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
    /// let output = pods.output("web", ["hostname"], None).await?;
    /// assert_eq!((output.code, &output.stdout[..]), (0, &b"web\n"[..]));
    /// # Ok(()) });
    /// ```
    pub async fn output<C>(
        &self,
        name: &str,
        command: impl IntoIterator<Item = C>,
        container: Option<&str>,
    ) -> Result<Output>
    where
        C: Into<String>,
    {
        let options = ExecOptions {
            container: container.map(str::to_owned),
            ..ExecOptions::default()
        };
        let mut session = self.exec(name, command, &options).await?;
        let (stdout, stderr) = (session.stdout(), session.stderr());
        let (stdout, stderr, code) =
            tokio::join!(read_all(stdout), read_all(stderr), session.wait_for_end());
        Ok(Output {
            code: code?,
            stdout,
            stderr,
        })
    }

    fn session_call(&self, name: &str, subresource: &str, options: &ExecOptions) -> Result<Call> {
        let path = format!("{}/{subresource}", self.object_path(name)?);
        let mut call = Call::new(Method::GET, path);
        if let Some(container) = &options.container {
            call = call.with("container", container.as_str());
        }
        for (name, enabled) in [
            ("stdin", options.stdin),
            ("stdout", true),
            ("stderr", !options.tty),
            ("tty", options.tty),
        ] {
            call = call.with(name, enabled.to_string());
        }
        Ok(call)
    }
}

impl Item<Pod> {
    /// Like [`View::exec`], in this pod.
    ///
    /// # Errors
    /// The same as [`View::exec`].
    pub async fn exec<C>(
        &self,
        command: impl IntoIterator<Item = C>,
        options: &ExecOptions,
    ) -> Result<Session>
    where
        C: Into<String>,
    {
        self.view().exec(self.name(), command, options).await
    }

    /// Like [`View::attach`], to this pod.
    ///
    /// # Errors
    /// The same as [`View::exec`].
    pub async fn attach(&self, options: &ExecOptions) -> Result<Session> {
        self.view().attach(self.name(), options).await
    }

    /// Like [`View::output`], in this pod.
    ///
    /// # Errors
    /// The same as [`View::exec`].
    pub async fn output<C>(
        &self,
        command: impl IntoIterator<Item = C>,
        container: Option<&str>,
    ) -> Result<Output>
    where
        C: Into<String>,
    {
        self.view().output(self.name(), command, container).await
    }
}

/// Reads an output to its end. Ignores errors: the end of the session reports them.
async fn read_all(reader: Option<Reader>) -> Vec<u8> {
    let mut output = Vec::new();
    if let Some(mut reader) = reader {
        let _ = reader.read_to_end(&mut output).await;
    }
    output
}
