//! etcd by JSON over HTTP, for what a gateway never asks, and in other words than a gateway's.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use picket_tests::peers::HANGS;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// One member, without TLS.
pub struct Raw {
    address: String,
    token: Option<String>,
}

/// Bytes, as JSON has them.
pub fn bytes(plain: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(plain)
}

impl Raw {
    pub fn at(endpoint: &str) -> Self {
        let address = endpoint.strip_prefix("http://").expect("it has no TLS").to_owned();
        Self { address, token: None }
    }

    /// The same member, asked by that user.
    pub async fn by(&self, name: &str, password: &str) -> Self {
        let who = json!({ "name": name, "password": password });
        let answer = self.ask("auth/authenticate", who).await.expect("etcd knows who asks");
        let token = answer["token"].as_str().expect("a token").to_owned();
        Self { address: self.address.clone(), token: Some(token) }
    }

    /// The call by its path in etcd's API, without the `/v3/` before it. An error has etcd's words.
    pub async fn ask(&self, call: &str, what: Value) -> Result<Value, String> {
        let (body, address) = (what.to_string(), &self.address);
        let by = self.token.as_ref().map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /v3/{call} HTTP/1.0\r\nHost: {address}\r\n{by}Content-Length: {}\r\n\r\n",
            body.len()
        );
        let asked = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(format!("{head}{body}").as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.map(|_| answer)
        };
        let asked = timeout(HANGS, asked).await;
        let asked =
            asked.map_err(|_| format!("etcd at {address} has not answered {call} within {HANGS:?}"))?;
        let answer: String = asked.map_err(|error: std::io::Error| error.to_string())?;
        let (head, body) =
            answer.split_once("\r\n\r\n").ok_or_else(|| format!("no answer of HTTP: {answer}"))?;
        let is_good = head.lines().next().is_some_and(|status| status.contains(" 200 "));
        if !is_good {
            return Err(answer);
        }
        serde_json::from_str(body).map_err(|error| format!("{error}: {body}"))
    }

    pub async fn put(&self, key: &str, value: impl AsRef<[u8]>) -> Result<(), String> {
        self.ask("kv/put", json!({ "key": bytes(key), "value": bytes(value) })).await.map(drop)
    }

    /// What stands there; `None`: it is not there.
    pub async fn get(&self, key: &str) -> Option<Vec<u8>> {
        let answer = self.ask("kv/range", json!({ "key": bytes(key) })).await.expect("etcd answers");
        let found = answer["kvs"].get(0)?;
        // JSON leaves out what is empty.
        Some(BASE64_STANDARD.decode(found["value"].as_str().unwrap_or_default()).expect("bytes"))
    }

    /// The revision since which it is not there.
    pub async fn delete(&self, key: &str) -> String {
        let answer = self.ask("kv/deleterange", json!({ "key": bytes(key) })).await.expect("etcd answers");
        answer["header"]["revision"].as_str().expect("a revision").to_owned()
    }
}
