//! The demonstrations, run as a newcomer runs them: the observer's words, and what `--keep` leaves and its script ends.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::eventually;
use tokio::process::Command;

/// It has a minute; a busy machine gets more.
const LONG: Duration = Duration::from_secs(240);
const SOON: Duration = Duration::from_secs(30);

/// Runs it to its end, and returns what it printed.
async fn shown(arguments: &[&str]) -> String {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_picket-demo"));
    demo.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(LONG, demo.output()).await.expect("it ends in time").expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let out = text(&ended.stdout);
    println!("{out}");
    assert!(ended.status.success(), "{}: {}\n{out}", ended.status, text(&ended.stderr));
    out
}

/// The numbers in a line.
fn numbers(line: &str) -> Vec<f64> {
    let digits = |c: char| !c.is_ascii_digit() && c != '.';
    line.split(digits).filter_map(|word| word.trim_matches('.').parse().ok()).collect()
}

/// From and to where n1's heartbeat went, each time that the observer listened and it lived.
fn lives(lines: &[&str]) -> Vec<(f64, f64)> {
    let beats = |line: &&str| line.split_once("its heartbeat went from ").map(|(_, rest)| numbers(rest));
    let n1 = lines.iter().filter(|line| line.starts_with("n1 lives"));
    n1.filter_map(beats).map(|beats| (beats[0], beats[1])).collect()
}

fn tells_it_whole(out: &str) {
    let lines: Vec<&str> = out.lines().filter_map(|line| line.trim().strip_prefix("observer: ")).collect();
    let at = |what: &str| {
        let found = lines.iter().position(|line| line.contains(what));
        found.unwrap_or_else(|| panic!("no {what:?} in {lines:#?}"))
    };
    let [(first, last), (again, on)] = lives(&lines)[..] else {
        panic!("it lives before the fence and after the unfence: {lines:#?}")
    };
    assert!(first < last && again < on, "{lines:#?}");
    let dead = at("none since");
    let stood = numbers(lines[dead].split_once("of n1, ").expect("it says which").1);
    assert!(stood[0] >= last, "the last heartbeat comes after those that were seen: {lines:#?}");
    assert!(stood.last().is_some_and(|quiet| *quiet >= 1.5), "it was listened to: {lines:#?}");
    assert!(at("n1 lives") < dead && dead < at("n2 lives"), "{lines:#?}");
    assert!(
        lines.last().is_some_and(|line| line.contains("restore policy always-on")),
        "put back: {lines:#?}"
    );
    assert!(lines[dead + 1].contains("restore policy always-off"), "held off: {lines:#?}");

    // What others printed stands between the chapters.
    let chapter = |from: &str, to: &str| {
        let rest = out.split_once(from).unwrap_or_else(|| panic!("no {from:?}")).1;
        rest.split_once(to).unwrap_or_else(|| panic!("no {to:?} after it")).0.to_owned()
    };
    let told = chapter("$ picket fence n1", "What is kept of it");
    assert!(
        told.contains("simulated: no real machine is off") && told.contains("release detach: complete"),
        "{told}"
    );
    let history = chapter("$ picket history n1", "n1 comes back");
    assert!(history.contains("n1") && history.contains("fenced"), "{history}");
    assert!(out.contains("What to try next"));
}

#[tokio::test]
async fn it_is_told_to_its_end_and_leaves_nothing() -> Result<()> {
    let out = shown(&[]).await;
    tells_it_whole(&out);
    for process in machines(&out) {
        assert!(ended(&process), "machine {process} lives on");
    }
    Ok(())
}

/// What is told of a fence whose leader is killed in the middle: by other words than Picket's where it matters.
#[tokio::test]
async fn with_three_gateways_the_leader_is_killed_and_the_fence_goes_on() -> Result<()> {
    let out = shown(&["--ha"]).await;
    let lines: Vec<&str> = out.lines().map(str::trim).collect();
    let at = |what: &str| {
        let found = lines.iter().position(|line| line.contains(what));
        found.unwrap_or_else(|| panic!("no {what:?} in {out}"))
    };
    let seen: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("observer: ")).collect();
    let [(first, last), (again, on)] = lives(&seen)[..] else {
        panic!("it lives before the fence and after the unfence: {seen:#?}")
    };
    assert!(first < last && again < on, "{seen:#?}");
    let (killed, dead) = (at("$ kill -9"), at("none since"));
    assert!(at("$ picket fence n1") < killed && killed < dead && dead < at("$ picket unfence n1"), "{out}");
    let stood = numbers(lines[dead].split_once("of n1, ").expect("it says which").1);
    assert!(stood[0] >= last && stood.last().is_some_and(|quiet| *quiet >= 1.5), "{seen:#?}");
    let ended = lines[at("The fence that g")];
    let who: Vec<&str> =
        ended.split_whitespace().filter(|word| word.starts_with('g') && word.len() >= 2).collect();
    assert!(who.len() >= 2 && who[0] != who[1].trim_end_matches(','), "another one ended it: {ended}");
    assert!(seen.last().is_some_and(|line| line.contains("restore policy always-on")), "put back: {seen:#?}");
    for process in machines(&out) {
        assert!(self::ended(&process), "machine {process} lives on");
    }
    Ok(())
}

/// The process ids of the machines, as it told them.
fn machines(out: &str) -> Vec<String> {
    let processes = out.lines().filter_map(|line| line.split_once(": process ")?.1.split_once(','));
    let processes: Vec<String> = processes.map(|(process, _)| process.to_owned()).collect();
    assert_eq!(processes.len(), 2, "{out}");
    processes
}

/// Gone, or dead and waiting for its parent to notice.
fn ended(process: &str) -> bool {
    // proc_pid_stat(5): the state follows the name, which is in parentheses.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.map_or(true, |stat| stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])))
}

/// The script that ends everything; run when dropped, so that a test that fails leaves nothing either.
struct Stop(PathBuf);

impl Stop {
    fn run(&self) -> bool {
        !self.0.exists()
            || std::process::Command::new("sh").arg(&self.0).status().is_ok_and(|status| status.success())
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.run();
    }
}

#[tokio::test]
async fn kept_it_runs_on_until_its_script_ends_it() -> Result<()> {
    let out = shown(&["--keep"]).await;
    let told = |before: &str| {
        let line = out.lines().find_map(|line| line.trim().strip_prefix(before));
        line.unwrap_or_else(|| panic!("no {before:?} in {out}")).to_owned()
    };
    let stop = Stop(PathBuf::from(told("sh ")));
    let script = std::fs::read_to_string(&stop.0).expect("it is there");
    tells_it_whole(&out);

    // The reader copies a line, and plays.
    let play =
        format!("export {}\npicket fence n2 --yes --reason 'my turn' && picket status n2", told("export "));
    let played = Command::new("sh").args(["-c", &play]).kill_on_drop(true).output().await.expect("it runs");
    let said = String::from_utf8_lossy(&played.stdout).into_owned();
    assert!(played.status.success() && said.contains("released"), "{played:?}");

    let mut processes: Vec<String> = script
        .lines()
        .find_map(|line| line.strip_prefix("kill "))
        .expect("it ends processes")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert!(processes.len() >= 3 && !processes.iter().any(|process| ended(process)), "{script}");
    let directories: Vec<&str> = script.lines().filter_map(|line| line.strip_prefix("rm -rf ")).collect();
    assert!(directories.len() >= 5, "of the gateway, and of two machines with their BMCs: {script}");
    for directory in &directories {
        // By now the machines may be other processes than at the start.
        processes
            .extend(std::fs::read_to_string(format!("{directory}/vm.pid")).ok().filter(|id| !id.is_empty()));
    }
    assert!(stop.run());
    let gone = || processes.iter().all(|process| ended(process.trim()));
    eventually("everything has ended", SOON, gone).await?;
    for directory in directories {
        assert!(!PathBuf::from(directory).exists(), "{directory} is left");
    }
    Ok(())
}
