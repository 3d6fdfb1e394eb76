//! Other people's clients of a Compute Engine: Google's own for Python (`tests/peers/gcp/client.py`), and `fence_gce`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::super::HANGS;
use super::{ComputeEngine, GceInstance, PROJECT, interpreter, peer_file};
use crate::error::{PeerError, Result};

impl ComputeEngine {
    /// What Google's client for Python answers to these steps, by whom has that key file.
    pub async fn google(&self, credentials: &Path, steps: &Value) -> Result<Vec<Value>> {
        self.google_by(&credentials.display().to_string(), "", steps).await
    }

    /// The same on a machine with that metadata server.
    pub async fn google_on_machine(&self, metadata: &str, steps: &Value) -> Result<Vec<Value>> {
        self.google_by("-", metadata, steps).await
    }

    async fn google_by(&self, credentials: &str, metadata: &str, steps: &Value) -> Result<Vec<Value>> {
        let mut command = Command::new(interpreter()?);
        command.args(["-B", "-W", "ignore"]).arg(peer_file("gcp").join("client.py"));
        command.arg(self.endpoint()).arg(credentials).arg(steps.to_string());
        // Nothing that the machine has of its own shall be taken.
        command.env_remove("GOOGLE_APPLICATION_CREDENTIALS").env("HOME", self.directory());
        if !metadata.is_empty() {
            for variable in ["GCE_METADATA_HOST", "GCE_METADATA_IP", "GCE_METADATA_ROOT"] {
                command.env(variable, metadata);
            }
        }
        let output = run(command, String::new()).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let told: serde_json::Result<Vec<Value>> = text.lines().map(serde_json::from_str).collect();
        match told {
            Ok(told) if output.status.success() => Ok(told),
            _ => Err(PeerError::Ended {
                program: format!("client.py {steps}"),
                status: output.status.to_string(),
                output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
            }),
        }
    }

    /// How `fence_gce` ends, and what it says: 0 done or on, 2 off.
    pub async fn fence_gce(
        &self,
        credentials: &Path,
        action: &str,
        instance: &GceInstance,
    ) -> Result<(i32, String)> {
        let mut command = Command::new("fence_gce");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("PYTHONPATH", peer_file("gcp").join("fence")).env("PICKET_GCE", self.address.to_string());
        let told = format!(
            "action={action}\nport={}\nproject={PROJECT}\nzone={}\nserviceaccount={}\n",
            instance.name,
            instance.zone,
            credentials.display()
        );
        let output = run(command, told).await?;
        let text = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .concat();
        Ok((output.status.code().unwrap_or(-1), text))
    }
}

impl ComputeEngine {
    /// What is answered to a request as it stands, by whom has that token: status and body; `None` where the connection just ends.
    /// The path begins after `projects/PROJECT/`.
    pub async fn bare(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Option<(u16, Value)>> {
        let asked = async {
            let mut stream = TcpStream::connect(self.address).await?;
            let body = body.map(Value::to_string).unwrap_or_default();
            let request = format!(
                "{method} /compute/v1/projects/{PROJECT}/{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
                 Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
                self.address,
                body.len()
            );
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            // An end without an answer may be a reset.
            let _ = stream.read_to_string(&mut answer).await;
            Ok(answer)
        };
        let what = format!("{method} {path}");
        let answer = tokio::time::timeout(HANGS, asked).await.map_err(|_elapsed| PeerError::TimedOut {
            what: what.clone(),
            within: HANGS,
            seen: String::new(),
        })?;
        let answer = answer.map_err(PeerError::io(what))?;
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { return Ok(None) };
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok(Some((status, serde_json::from_str(body).unwrap_or_else(|_no_json| body.into()))))
    }
}

/// Runs it to its end, with that on its standard input.
async fn run(mut command: Command, input: String) -> Result<Output> {
    let what = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|source| match source.kind() {
        ErrorKind::NotFound => PeerError::Missing { what: what.clone(), package: "fence-agents" },
        _ => PeerError::Io { what: what.clone(), source },
    })?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that does not read it is not wrong.
        let _ = pipe.write_all(input.as_bytes()).await;
    }
    let ended = tokio::time::timeout(HANGS, child.wait_with_output()).await;
    let seen = String::new();
    ended
        .map_err(|_elapsed| PeerError::TimedOut { what: what.clone(), within: HANGS, seen })?
        .map_err(PeerError::io(what))
}
