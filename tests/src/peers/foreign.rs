//! A client of the gateway on other people's gRPC: Python's grpcio (`tests/peers/foreign.py`).

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::{HANGS, peer_file, python};
use crate::error::{PeerError, Result};

/// A foreign client of one gateway.
#[derive(Clone, Debug)]
pub struct Foreign {
    words: Vec<String>,
    target: String,
}

impl Foreign {
    /// Over plain text: a target as grpcio names it (`unix:/run/picket.sock`, `127.0.0.1:7420`).
    pub fn plain(target: &str) -> Self {
        Self { words: Vec::new(), target: target.to_owned() }
    }

    /// Over TLS, trusting that CA, as whoever has that certificate.
    pub fn certified(target: &str, ca: &Path, certificate: &Path, key: &Path) -> Self {
        let pairs = [("--ca", ca), ("--certificate", certificate), ("--key", key)];
        let words = pairs.iter().flat_map(|(name, path)| [(*name).to_owned(), path.display().to_string()]);
        Self { words: words.collect(), target: target.to_owned() }
    }

    /// What reflection lists.
    pub async fn services(&self) -> Result<Value> {
        Ok(self.ask(&["services"]).await?.remove(0))
    }

    /// The file and the calls of the fencing service, as reflection tells them.
    pub async fn files(&self) -> Result<Value> {
        Ok(self.ask(&["files"]).await?.remove(0))
    }

    /// What health says of a service; of the whole gateway where its name is empty.
    pub async fn health(&self, service: &str) -> Result<Value> {
        Ok(self.ask(&["health", service]).await?.remove(0))
    }

    /// All answers to a call. An error is the last one: `{"error": {"code", "message", "details"}}`.
    pub async fn call(&self, method: &str, request: &Value) -> Result<Vec<Value>> {
        self.ask(&["call", method, &request.to_string()]).await
    }

    async fn ask(&self, words: &[&str]) -> Result<Vec<Value>> {
        let mut command = tokio::process::Command::new(python::interpreter()?);
        command.arg(peer_file("foreign.py")).args(&self.words).arg(&self.target).args(words);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let what = || format!("a foreign client asks {}", words.join(" "));
        let ended = tokio::time::timeout(HANGS, command.output()).await;
        let output = ended
            .map_err(|_| PeerError::TimedOut { what: what(), within: HANGS, seen: String::new() })?
            .map_err(PeerError::io("run python"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let told: serde_json::Result<Vec<Value>> = text.lines().map(serde_json::from_str).collect();
        match told {
            Ok(told) if !told.is_empty() => Ok(told),
            _ => Err(PeerError::Ended {
                program: what(),
                status: output.status.to_string(),
                output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
            }),
        }
    }
}
