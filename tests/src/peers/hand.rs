//! The hand of a test at a peer in Python that answers, besides what it is, to POST under `/_picket/`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::{HANGS, Process};
use crate::error::{PeerError, Result};

/// Starts `command` with its output in `log`; it says "ready", and then is at `address`.
pub(super) async fn started(command: Command, log: &Path, address: SocketAddr) -> Result<Process> {
    let what = format!("{} is ready", log.file_stem().unwrap_or_default().display());
    let mut process = Process::start(command, log, "python3-venv")?;
    let deadline = Instant::now() + HANGS;
    while !process.log().contains("ready\n") || TcpStream::connect(address).await.is_err() {
        process.still_runs()?;
        if Instant::now() >= deadline {
            return Err(PeerError::TimedOut { what, within: HANGS, seen: process.log() });
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(process)
}

/// What `script` answers to that verb.
pub(super) async fn ask<T: DeserializeOwned>(
    script: &str,
    process: &Process,
    address: SocketAddr,
    verb: &str,
    with: Value,
) -> Result<T> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        let body = with.to_string();
        let length = body.len();
        let request = format!(
            "POST /_picket/{verb} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    let answer = timeout(HANGS, asked).await.map_err(|_elapsed| PeerError::TimedOut {
        what: format!("{script} answers {verb}"),
        within: HANGS,
        seen: process.log(),
    })?;
    let answer = answer.map_err(PeerError::io(format!("ask {script}: {verb}")))?;
    let told = answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
    told.ok_or_else(|| PeerError::Ended {
        program: format!("{script} {verb} {with}"),
        status: answer,
        output: process.log(),
    })
}
