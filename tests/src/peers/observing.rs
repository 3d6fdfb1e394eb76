//! Other people's parsers of metrics and of rules for alerts (`tests/peers/observing.py`).

use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::{peer_file, python};
use crate::error::{PeerError, Result};

/// What Prometheus' own client for Python reads in a text of metrics; an error where it refuses the text.
pub async fn parse_metrics(text: &str) -> Result<Value> {
    parse("metrics", text).await
}

/// What PyYAML reads in a document.
pub async fn parse_yaml(text: &str) -> Result<Value> {
    parse("rules", text).await
}

/// What PyYAML reads in several documents, but for empty ones.
pub async fn parse_yaml_documents(text: &str) -> Result<Vec<Value>> {
    match parse("documents", text).await? {
        Value::Array(documents) => Ok(documents),
        other => Ok(vec![other]),
    }
}

async fn parse(what: &str, text: &str) -> Result<Value> {
    let mut command = tokio::process::Command::new(python::interpreter()?);
    command.arg(peer_file("observing.py")).arg(what).kill_on_drop(true);
    let run = || PeerError::io(format!("run observing.py {what}"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(run())?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes()).await.map_err(run())?;
    }
    let output = child.wait_with_output().await.map_err(run())?;
    serde_json::from_slice(&output.stdout).map_err(|error| PeerError::Ended {
        program: "observing.py".to_owned(),
        status: error.to_string(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
