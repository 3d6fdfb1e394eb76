//! `picket quickstart`: the tour as a newcomer runs it, from the programs as a package has them side by side.

use std::process::Stdio;
use std::time::Duration;

use picket_tests::peers::eventually;
use picket_tests::{PeerError, Result, Said, program};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use crate::operation::SOON;

/// The lines of a tour that no machine and no moment changes, in their order.
const GOLDEN: &str = include_str!("quickstart.txt");
/// Pages that show a fence of such a machine.
const PAGES: [&str; 2] =
    [include_str!("../../../../README.md"), include_str!("../../../../docs/simulated.md")];
/// A tour lives through a fall of three seconds; only a hang takes so long.
const LONG: Duration = Duration::from_secs(300);

fn tour(dir: &std::path::Path, more: &[&str]) -> Result<Command> {
    let mut command = Command::new(program("picket")?);
    command.args(["quickstart", "--yes", "--dir"]).arg(dir).args(more);
    // A gateway of somebody's own is not asked by mistake.
    command.env("PICKET_ENDPOINT", "unix:/nowhere").stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

async fn said(mut command: Command) -> Result<Said> {
    let done = tokio::time::timeout(LONG, command.output()).await.expect("it ends");
    Ok(Said::of(done.map_err(PeerError::io("run picket quickstart"))?))
}

/// The command lines of all processes that have this folder in them.
fn processes_of(dir: &std::path::Path) -> Vec<String> {
    let dir = dir.display().to_string();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&dir) && !line.contains(" quickstart ")).collect()
}

/// Each line of the golden file stands in `out`, in that order.
#[track_caller]
fn in_order(out: &str) {
    let mut lines = out.lines();
    for wanted in GOLDEN.lines().filter(|line| !line.is_empty()) {
        assert!(lines.any(|line| line == wanted), "{wanted:?} is not there, or not in its place:\n{out}");
    }
}

/// The words of a line that are no time, number or unit.
fn words(line: &str) -> Vec<String> {
    let words = line.split_whitespace().map(|word| word.replace("rack1-5", "rack1-1"));
    words
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()) && !["s", "min"].contains(&&**word))
        .collect()
}

/// Each line of the fence that a page shows stands in `out`, in that order. A line that ends in `...` is cut there.
#[track_caller]
fn as_shown(page: &str, out: &str) {
    let (_, shown) = page.split_once("$ picket fence rack1-").expect("the page shows a fence");
    let (shown, _) = shown.split_once("```").expect("the block has an end");
    // Who asks is somebody else there.
    let shown = shown.lines().skip(1).filter(|line| !line.contains("opened by") && !line.trim().is_empty());
    let mut lines = out.lines();
    for wanted in shown {
        let is_it = |line: &str| match wanted.strip_suffix("...") {
            Some(begin) => words(line).starts_with(&words(begin)),
            None => words(line) == words(wanted),
        };
        assert!(lines.any(is_it), "{wanted:?} is not there, or not in its place:\n{out}");
    }
}

#[tokio::test]
async fn a_tour_fences_a_machine_and_brings_it_back_and_leaves_nothing() -> Result<()> {
    let above = tempfile::tempdir().map_err(PeerError::io("create a directory"))?;
    let dir = above.path().join("tour");
    let told = said(tour(&dir, &[])?).await?;
    assert_eq!(told.code, 0, "{told:?}");
    in_order(&told.out);
    PAGES.iter().for_each(|page| as_shown(page, &told.out));
    for part in [
        "bmc says On",
        "bmc says Off",
        "confirmed off",
        "simulated: no real machine is off",
        "rack1-1  unfenced",
        "is removed",
    ] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
    assert!(!dir.exists() && processes_of(&dir).is_empty());
    Ok(())
}

#[tokio::test]
async fn what_is_kept_is_settings_store_audit_and_logs() -> Result<()> {
    let above = tempfile::tempdir().map_err(PeerError::io("create a directory"))?;
    let dir = above.path().join("tour");
    let told = said(tour(&dir, &["--keep"])?).await?;
    assert_eq!(told.code, 0, "{told:?}");
    for name in ["picket.toml", "fleet.toml", "picket.redb", "picket.audit", "picketd.log", "fleet.log"] {
        assert!(dir.join(name).exists(), "{name}");
    }
    assert!(told.out.contains("stays") && processes_of(&dir).is_empty(), "{told:?}");
    let again = said(tour(&dir, &[])?).await?;
    assert!(again.code == 2 && dir.join("picket.redb").exists(), "{again:?}");
    Ok(())
}

#[tokio::test]
async fn an_interrupt_in_the_middle_of_a_fence_leaves_no_process_and_no_file() -> Result<()> {
    let above = tempfile::tempdir().map_err(PeerError::io("create a directory"))?;
    let (dir, log) = (above.path().join("tour"), above.path().join("out"));
    let out = std::fs::File::create(&log).map_err(PeerError::io("create a log"))?;
    let mut child = tour(&dir, &[])?.stdout(out).spawn().map_err(PeerError::io("run picket quickstart"))?;
    let reads = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the fence is under way", SOON, || reads().contains("bmc says On")).await?;
    assert!(processes_of(&dir).len() >= 2, "{:?}", processes_of(&dir));
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("it runs");
    kill_process(pid, Signal::INT).expect("it runs");
    let ended = tokio::time::timeout(LONG, child.wait()).await.expect("it ends");
    let ended = ended.map_err(PeerError::io("wait for picket quickstart"))?;
    assert_eq!(ended.code(), Some(130), "{}", reads());
    eventually("all of it has ended", SOON, || processes_of(&dir).is_empty()).await?;
    assert!(!dir.exists(), "{}", reads());
    Ok(())
}
