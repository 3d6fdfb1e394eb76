//! Hosts with networks of their own: each reaches each, until something is cut off.

use std::process::{Command, Stdio};
use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{Network, Place, Process, eventually};

const PORT: u16 = 4_000;

/// Serves on that host's port until it is dropped.
async fn serve(place: &Place, directory: &std::path::Path) -> Result<Process> {
    let address = place.address().to_string();
    let take = "import socket, sys\ns = socket.create_server((sys.argv[1], int(sys.argv[2])))\nprint('serving', flush=True)\n\
                while True: s.accept()";
    let mut command = place.command("python3");
    command.args(["-c", take, &address, &PORT.to_string()]);
    let process = Process::start(command, &directory.join(format!("{address}.log")), "python3")?;
    eventually("it serves", Duration::from_secs(20), || process.log().contains("serving")).await?;
    Ok(process)
}

/// Whether a connection comes to be within a second.
fn reaches(mut from: Command, to: &Place) -> bool {
    let connect = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)";
    from.args(["-c", connect, &to.address().to_string(), &PORT.to_string()]).stderr(Stdio::null());
    from.stdin(Stdio::null()).status().expect("python3 runs").success()
}

#[tokio::test]
async fn each_reaches_each_until_it_is_cut_off_and_again_when_that_is_mended() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let network = Network::start(3).await?;
    let [a, b, c] = [network.host(0), network.host(1), network.host(2)];
    let _servers = [serve(b, directory.path()).await?, serve(c, directory.path()).await?];
    let from = |place: &Place, to: &Place| reaches(place.command("python3"), to);
    assert!(from(a, b) && from(a, c) && from(b, c) && from(b, b));

    let cut = b.deaf_to(a)?;
    assert!(!from(a, b) && from(a, c) && from(b, c), "one host loses what one other sends");
    drop(cut);
    assert!(from(a, b));

    let cut = a.no_requests_to(PORT)?;
    assert!(!from(a, b) && !from(a, c) && from(b, c), "one host asks nobody at one port");
    drop(cut);
    let cut = a.no_answers_from(PORT)?;
    assert!(!from(a, b) && !from(a, c) && from(b, c), "one host hears nobody from one port");
    drop(cut);
    assert!(from(a, b) && from(a, c));
    Ok(())
}

/// Others' networks are as they were: two of the same addresses know nothing of each other.
#[tokio::test]
async fn two_networks_side_by_side_are_apart() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (Network::start(2).await?, Network::start(2).await?);
    let _server = serve(one.host(1), directory.path()).await?;
    assert!(reaches(one.host(0).command("python3"), one.host(1)));
    assert!(!reaches(other.host(0).command("python3"), other.host(1)));
    Ok(())
}
