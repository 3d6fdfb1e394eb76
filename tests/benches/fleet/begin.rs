//! The start of the daemon over many nodes, from settings of a few lines.

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use picket_proto::v1::{GetNodeRequest, NodeSelector, node_selector};
use picket_tests::Client;
use picket_tests::peers::{ADMIN, PASSWORD};
use tonic::transport::Endpoint;

use crate::Wrong;
use crate::bmcs::Bmcs;
use crate::options::Child as What;
use crate::race::cost;
use crate::race::farm::{Farm, host_list};
use crate::race::goals::Goals;

/// How soon it is to be ready.
const WITHIN: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);
/// The variable in which the BMCs' password stands, for the daemon alone.
const PASSWORD_VARIABLE: &str = "PICKET_BENCH_BMC_PASSWORD";

/// Ends with its value.
struct Daemon(std::process::Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it twice over the same store: the first start makes the records, the second one reads them.
pub async fn daemon(bmcs: usize, goals: &mut Goals) -> Result<(), Wrong> {
    let farm = Bmcs::start(bmcs)?;
    let home = tempfile::tempdir()?;
    let (socket, settings, log) =
        (home.path().join("picket.sock"), home.path().join("picket.toml"), home.path().join("picketd.log"));
    let mut text = String::new();
    write!(
        text,
        "[listen]\nunix = {socket:?}\n[store]\npath = {:?}\n[log]\nlevel = \"error\"\n\
         [templates.rack.devices.bmc]\ndriver = \"ipmi\"\nhost = \"{{node}}\"\nport = {}\nusername = {ADMIN:?}\n\
         password_env = {PASSWORD_VARIABLE:?}\ncipher_suites = [3]\n[nodes.\"{}\"]\ntemplate = \"rack\"\n",
        home.path().join("picket.redb"),
        farm.port(),
        host_list(farm.addresses(), ""),
    )?;
    println!("\nSTART of the daemon over {bmcs} nodes, settings of {} lines", text.lines().count());
    std::fs::write(&settings, text)?;
    let last = farm.addresses().last().ok_or("no BMCs")?.ip().to_string();
    for what in ["first, with an empty store", "again, with its records"] {
        let errors = std::fs::File::create(&log)?;
        let began = Instant::now();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(What::Daemon(settings.clone()).word()).arg(&settings);
        command.env(PASSWORD_VARIABLE, PASSWORD);
        command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors);
        let mut daemon = Daemon(command.spawn()?);
        let answers = loop {
            if knows(&socket, &last).await {
                break began.elapsed();
            }
            if let Some(status) = daemon.0.try_wait()? {
                return Err(format!("the daemon ended ({status}): {}", std::fs::read_to_string(&log)?).into());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("the daemon does not answer: {}", std::fs::read_to_string(&log)?).into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let cpu = cost::family_cpu(daemon.0.id());
        println!(
            "  {what:<30} answers of its last node after {:.2} s, with {:.2} s of processor time",
            answers.as_secs_f64(),
            cpu.as_secs_f64()
        );
        goals.judge(
            format!("start over {bmcs} nodes, {what}: within {WITHIN:?}: {:.2} s", answers.as_secs_f64()),
            answers <= WITHIN,
        );
        // What it still stores of its first checks, the second start is to find.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    Ok(())
}

/// Whether somebody answers there and knows that node.
async fn knows(socket: &std::path::Path, node: &str) -> bool {
    let Ok(endpoint) = Endpoint::from_shared(format!("unix:{}", socket.display())) else { return false };
    let Ok(channel) = endpoint.connect().await else { return false };
    let by = node_selector::By::Name(node.to_owned());
    let request = GetNodeRequest { node: Some(NodeSelector { by: Some(by) }), fresh: false };
    Client::new(channel).get_node(request).await.is_ok()
}
