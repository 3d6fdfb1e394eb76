//! The bundled etcd, as the real one takes what the chart tells it.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use picket_tests::peers::{Etcd, Process, fresh_address, until};
use picket_tests::{PeerError, Result};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::certificates::Authority;
use crate::variants::{bundled, one, rendered};

/// A member by the chart's words, but for addresses and folders, which are this machine's.
fn start(name: &str, objects: &[Value], addresses: &[IpAddr; 3], folder: &Path) -> Result<Process> {
    let container = &one("StatefulSet", name, objects)["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], serde_json::json!(["etcd"]));
    let n: usize = name.rsplit('-').next().and_then(|n| n.parse().ok()).expect("a number");
    let own = folder.join(name);
    let here = |word: &str| {
        let placed = (0..3).fold(word.to_owned(), |word, n| {
            word.replace(&format!("picket-etcd-{n}.fencing.svc"), &addresses[n].to_string())
        });
        let placed = placed.replace("0.0.0.0", &addresses[n].to_string());
        placed
            .replace("/run/secrets/etcd", &own.display().to_string())
            .replace("/var/lib/etcd", &own.display().to_string())
    };
    let words = container["args"].as_array().expect("arguments").iter().filter_map(Value::as_str);
    let mut command = std::process::Command::new(Etcd::Present.program()?);
    command.args(words.map(here)).arg("--unsafe-no-fsync");
    Process::start(command, &folder.join(format!("{name}.log")), "none: cargo xtask test builds it")
}

/// What it answers to its probes' question.
async fn answer(address: IpAddr, path: &str) -> Option<String> {
    let mut stream = tokio::net::TcpStream::connect((address, 2381)).await.ok()?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(text)
}

#[tokio::test]
async fn three_members_find_each_other_and_are_ready() -> Result<()> {
    let objects = rendered(&bundled()).await?;
    let folder = tempfile::tempdir().map_err(PeerError::io("create etcd's folder"))?;
    let addresses: [IpAddr; 3] = std::array::from_fn(|_| fresh_address().ip());
    let mut members = Vec::new();
    let authority = Authority::new(&folder.path().join("authority"));
    for (n, address) in addresses.into_iter().enumerate() {
        let name = format!("picket-etcd-{n}");
        let own = folder.path().join(&name);
        std::fs::create_dir(&own).map_err(PeerError::io("create a member's folder"))?;
        let leaf = authority.at(&[address]);
        // As a Secret of three keys is mounted.
        for (file, text) in
            [("tls.crt", &leaf.texts[0]), ("tls.key", &leaf.texts[1]), ("ca.crt", &authority.text())]
        {
            std::fs::write(own.join(file), text).map_err(PeerError::io("write a certificate"))?;
        }
        members.push(start(&name, &objects, &addresses, folder.path())?);
    }
    // Ready is who has a leader: one alone never is.
    for path in ["/readyz", "/livez"] {
        let waited = until("three members are ready", Duration::from_secs(30), async || {
            members.iter_mut().try_for_each(Process::still_runs)?;
            let said = futures::future::join_all(addresses.map(|address| answer(address, path))).await;
            Ok(said.iter().all(|said| said.as_ref().is_some_and(|text| text.starts_with("HTTP/1.0 200"))))
        })
        .await;
        assert!(waited.is_ok(), "{path}: {waited:?}\n{}", members[0].log());
    }
    members.truncate(1);
    until("one that is left alone is not ready", Duration::from_secs(60), async || {
        let said = answer(addresses[0], "/readyz").await.unwrap_or_default();
        Ok(said.starts_with("HTTP/1.0 503"))
    })
    .await
}
