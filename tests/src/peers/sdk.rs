//! Somebody else's client of an OpenStack: openstacksdk (`tests/peers/openstack/client.py`), which lives as long as its cloud.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{HANGS, openstack::Credential, reaper};
use crate::error::{PeerError, Result};

/// In whose name a cloud is asked.
#[derive(Clone, Debug)]
pub enum Who {
    /// The cloud's administrator, in the project admin.
    Admin,
    /// The same in the tenant's project: who puts servers on hosts.
    Owner,
    /// An ordinary user, who sees no hosts.
    Tenant,
    /// Whoever has this.
    Application(Credential),
}

impl Who {
    fn word(&self) -> Value {
        match self {
            Who::Admin => json!("admin"),
            Who::Owner => json!("owner"),
            Who::Tenant => json!("tenant"),
            Who::Application(Credential { id, secret }) => json!({ "id": id, "secret": secret }),
        }
    }
}

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

/// A client that runs. It serves all tests of a process, each of which has a runtime of its own: hence a thread reads its answers.
#[derive(Debug)]
pub(super) struct Sdk {
    child: Child,
    pipe: Mutex<(u64, ChildStdin)>,
    waiting: Waiting,
    log: std::path::PathBuf,
}

impl Sdk {
    /// Starts it; what it complains of goes to `log`.
    pub(super) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let errors = File::create(log).map_err(PeerError::io(format!("create {}", log.display())))?;
        let started =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).process_group(0).spawn();
        let mut child = started.map_err(PeerError::io("start client.py"))?;
        reaper::group(child.id());
        let gone = || PeerError::io("client.py")(ErrorKind::BrokenPipe.into());
        let (input, output) = (child.stdin.take().ok_or_else(gone)?, child.stdout.take().ok_or_else(gone)?);
        let waiting = Waiting::default();
        let asked = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                let Ok(told) = serde_json::from_str::<Value>(&line) else { continue };
                let Some(number) = told["id"].as_u64() else { continue };
                if let Some(whose) = asked.lock().remove(&number) {
                    // Whoever waited may have given up.
                    let _ = whose.send(told);
                }
            }
            // Whoever waits still learns so that nothing comes.
            asked.lock().clear();
        });
        Ok(Self { child, pipe: Mutex::new((0, input)), waiting, log: log.to_owned() })
    }

    /// What a function of client.py answers to these arguments.
    pub(super) async fn ask(&self, who: &Who, what: &str, mut arguments: Value) -> Result<Value> {
        let (tell, told) = oneshot::channel();
        {
            let mut pipe = self.pipe.lock();
            pipe.0 += 1;
            arguments["id"] = pipe.0.into();
            arguments["as"] = who.word();
            arguments["do"] = what.into();
            self.waiting.lock().insert(pipe.0, tell);
            pipe.1.write_all(format!("{arguments}\n").as_bytes()).map_err(PeerError::io("ask client.py"))?;
        }
        let told = tokio::time::timeout(HANGS, told).await.map_err(|_elapsed| PeerError::TimedOut {
            what: format!("openstacksdk answers {arguments}"),
            within: HANGS,
            seen: String::new(),
        })?;
        let failed = |output: String| PeerError::Ended {
            program: format!("openstacksdk, {arguments}"),
            status: "no answer".to_owned(),
            output,
        };
        let mut told =
            told.map_err(|_gone| failed(std::fs::read_to_string(&self.log).unwrap_or_default()))?;
        match told["error"].as_str() {
            Some(error) => Err(failed(error.to_owned())),
            None => Ok(told["ok"].take()),
        }
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        reaper::group_ended(self.child.id());
    }
}
