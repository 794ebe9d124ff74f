//! Users who send requests. The administrator, who sends all others, may impersonate everyone.

use serde_json::Value;

use crate::common::{Answer, Server};

pub(crate) const MERGE: &str = "application/merge-patch+json";

/// A user who sends requests.
pub(crate) struct As<'a> {
    server: &'a Server,
    /// The headers that impersonate the user.
    headers: Vec<(&'a str, String)>,
}

impl<'a> As<'a> {
    pub(crate) fn new(server: &'a Server, headers: &[(&'a str, &str)]) -> Self {
        let headers = headers.iter();
        Self {
            server,
            headers: headers
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        }
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        media_type: &str,
        body: &Value,
    ) -> Answer {
        let own = self.headers.iter();
        let mut headers: Vec<_> = own.map(|(name, value)| (*name, value.as_str())).collect();
        headers.push(("content-type", media_type));
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        self.server.call(method, path, &headers, body).await
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, "application/json", body).await
    }

    pub(crate) async fn get(&self, path: &str) -> u16 {
        self.call("GET", path, &Value::Null).await.code
    }

    /// The message of a refused request.
    pub(crate) async fn refused(&self, method: &str, path: &str, body: &Value) -> String {
        let answer = self.call(method, path, body).await;
        assert_eq!(answer.code, 403, "{method} {path}: {}", answer.text());
        assert_eq!(answer.json()["reason"], "Forbidden");
        answer.message()
    }
}

impl Server {
    /// A server with the default roles and bindings.
    pub(crate) async fn with_default_policy() -> Self {
        let server = Self::new();
        server.api.ensure_default_policy().await.unwrap();
        server
    }

    /// Creates an object.
    pub(crate) async fn made(&self, path: &str, object: Value) -> Value {
        let answer = self.post(path, &object).await;
        assert_eq!(answer.code, 201, "{path}: {}", answer.text());
        answer.json()
    }
}
