//! The program kind, with shell scripts as programs.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use picket_reach::SettingFault;
use serde_json::{Value, json};

use super::*;
use crate::message::tests::{sample, subject};

/// A script in a directory of its own.
struct Script {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Script {
    fn new(body: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("release");
        // Written through a handle that is closed before the program is started.
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("may be set");
        Self { folder, path }
    }

    fn command(&self, mut more: Value) -> Command {
        more["program"] = json!(self.path);
        command(more).expect("right settings")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn run(&self) -> Result<Progress, ReleaseError> {
        run(&self.command(json!({})), &sample(), soon()).await
    }
}

fn command(table: Value) -> Result<Command, Vec<SettingFault>> {
    let mut settings = Settings::new(table.as_object().expect("a table"));
    let made = Command::read("san", &mut settings);
    settings.finish(made)
}

/// Another test may be between fork and exec with our script's handle still open for writing (ETXTBSY).
async fn run(command: &Command, message: &Message, until: Instant) -> Result<Progress, ReleaseError> {
    loop {
        match command.tell(message, until, None).await {
            Err(ReleaseError::DidNotHappen(why)) if why.contains("busy") => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(300)
}

#[tokio::test]
async fn the_program_gets_the_document_its_arguments_and_little_else() {
    let script = Script::new("cat > \"$1\"; env > \"$2\"; pwd >> \"$2\"");
    let command = script.command(json!({
        "args": [script.file("input"), script.file("env"), "a b; c"], "env": ["CARGO_MANIFEST_DIR", "NOT_SET_AT_ALL"],
    }));
    assert_eq!(run(&command, &sample(), soon()).await, Ok(Progress::Complete("complete".to_owned())));
    let input: Value =
        serde_json::from_slice(&std::fs::read(script.file("input")).expect("written")).expect("JSON");
    assert_eq!(input, serde_json::to_value(sample()).expect("JSON"));
    let env = std::fs::read_to_string(script.file("env")).expect("written");
    let names: Vec<&str> = env.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let own = ["PATH", "CARGO_MANIFEST_DIR", "PWD", "_", "SHLVL", "OLDPWD"];
    assert!(names.contains(&"PATH") && names.contains(&"CARGO_MANIFEST_DIR"), "{env}");
    assert!(names.iter().all(|name| own.contains(name)), "{env}");
    assert!(env.lines().any(|line| line == "/"), "{env}");
}

#[tokio::test]
async fn an_exit_says_what_happened() {
    for (body, want) in [
        ("exit 0", Ok(Progress::Complete("complete".to_owned()))),
        ("echo 3 LUNs unmapped", Ok(Progress::Complete("3 LUNs unmapped".to_owned()))),
        (r#"echo '{"status": "complete", "detail": "gone"}'"#, Ok(Progress::Complete("gone".to_owned()))),
        (
            r#"echo '{"status": "accepted", "reference": "job 12"}'"#,
            Ok(Progress::Accepted("job 12".to_owned())),
        ),
    ] {
        assert_eq!(Script::new(body).run().await, want, "{body}");
    }
    let told = Script::new("echo the array is away >&2; exit 75").run().await;
    assert!(
        matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("the array is away")),
        "{told:?}"
    );
    for unknown in [
        "echo half done >&2; exit 1",
        "exit 126",
        "kill -9 $$",
        r#"echo '{"status": "done"}'"#,
        r#"echo '{"status": "unknown"}'"#,
        r#"echo '{"status": "comp'"#,
        "head -c 100000 /dev/zero",
    ] {
        let told = Script::new(unknown).run().await;
        assert!(matches!(told, Err(ReleaseError::Unknown(_))), "{unknown}: {told:?}");
    }
}

#[tokio::test]
async fn a_question_how_far_it_is_gives_the_reference_back() {
    let script = Script::new(
        "if grep -q '\"ask\":\"status\".*\"reference\":\"job 12\"'; then echo '{\"status\": \"complete\"}'; else exit 1; fi",
    );
    let command = script.command(json!({}));
    let told = run(&command, &Message::status(&subject("job 12")), soon()).await;
    assert_eq!(told, Ok(Progress::Complete("complete".to_owned())));
    let told = run(&command, &Message::status(&subject("")), soon()).await;
    assert!(matches!(told, Err(ReleaseError::Unknown(_))), "{told:?}");
    let script = Script::new("echo '{\"status\": \"unknown\"}'");
    let told = run(&script.command(json!({})), &Message::status(&subject("job 12")), soon()).await;
    assert!(matches!(told, Ok(Progress::NotThere(_))), "{told:?}");
    let script = Script::new("exit 75");
    let command = script.command(json!({}));
    run(&command, &Message::status(&subject("job 12")), soon()).await.expect_err("not now");
    let told = command.observe(&subject("job 12"), soon()).await;
    assert!(matches!(told, Err(ReleaseError::Unknown(_))), "a look that failed says nothing: {told:?}");
}

#[tokio::test]
async fn a_program_that_is_gone_did_nothing() {
    let script = Script::new("exit 0");
    let command = script.command(json!({}));
    std::fs::set_permissions(&script.path, std::fs::Permissions::from_mode(0o644)).expect("may be set");
    // Root may read and write everything, but executes nothing without an x.
    let told = run(&command, &sample(), soon()).await;
    assert!(matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("not started")), "{told:?}");
    std::fs::remove_file(&script.path).expect("is there");
    let told = run(&command, &sample(), soon()).await;
    assert!(matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("not started")), "{told:?}");
}

#[tokio::test]
async fn a_program_that_somebody_else_may_change_is_not_taken_and_not_started() {
    let script = Script::new("echo ran >>\"$0.ran\"");
    let command = script.command(json!({}));
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("may be set");
    };
    for (path, open, closed) in [(&*script.path, 0o777, 0o755), (script.folder.path(), 0o777, 0o700)] {
        mode(path, open);
        // Since the settings were read: it is looked at again before each run.
        let told = run(&command, &sample(), soon()).await;
        let Err(ReleaseError::DidNotHappen(why)) = &told else { panic!("{told:?}") };
        let right = format!("run chmod o-w {}", path.display());
        assert!(
            why.contains("was not started") && why.contains("(mode 777)") && why.ends_with(&right),
            "{why}"
        );
        let faults = self::command(json!({ "program": script.path })).expect_err("refused");
        assert!(faults[0].key == "program" && faults[0].message.ends_with(&right), "{faults:?}");
        mode(path, closed);
    }
    assert!(!script.file("release.ran").exists());
    run(&command, &sample(), soon()).await.expect("nobody else may change it now");
    assert!(script.file("release.ran").exists());
}

fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('Z'));
    state == Some(false)
}

async fn gone(pid: &str) -> bool {
    for _ in 0..30_000 {
        if !runs(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

async fn written(path: &Path) -> String {
    for _ in 0..30_000 {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    panic!("{} was never written", path.display());
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_all_that_it_started() {
    let script = Script::new("sleep 1000 & echo $! > \"$1\"; echo working >&2; trap '' TERM; wait; wait");
    let command = script.command(json!({"args": [script.file("pid")]}));
    let mut ended = Vec::new();
    // A busy machine has not begun by then, or is late with the end: then there is more time.
    for time in [3, 12, 48].map(Duration::from_secs) {
        let until = Instant::now() + time;
        let told = run(&command, &sample(), until).await;
        let is_in_time = Instant::now() <= until;
        assert!(matches!(&told, Err(ReleaseError::Unknown(why)) if why.contains("killed")), "{told:?}");
        let has_begun = matches!(&told, Err(ReleaseError::Unknown(why)) if why.contains("killed: working"));
        ended.push((has_begun, is_in_time));
        if ended.contains(&(true, true)) {
            break;
        }
    }
    assert!(ended.contains(&(true, true)), "it returns before its time is over: {ended:?}");
    assert!(gone(&written(&script.file("pid")).await).await);
}

/// As of a process that was stopped between the permit and the start.
#[tokio::test]
async fn a_program_is_not_started_when_its_time_is_over() {
    let script = Script::new("echo started > \"$1\"");
    let command = script.command(json!({"args": [script.file("mark")]}));
    let late = Message { not_after_unix_ms: Some(1_795_250_433_100), ..sample() };
    for (message, until) in [(&sample(), Instant::now()), (&late, soon())] {
        let told = run(&command, message, until).await;
        assert!(matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("over")), "{told:?}");
    }
    assert!(!script.file("mark").exists());
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_killed() {
    let script = Script::new("sleep 1000 & echo $! > \"$1\"");
    let command = script.command(json!({"args": [script.file("pid")]}));
    // It holds the output open, and is not waited for: else the program's time would be over.
    assert_eq!(run(&command, &sample(), soon()).await, Ok(Progress::Complete("complete".to_owned())));
    assert!(gone(&written(&script.file("pid")).await).await);
}

#[tokio::test]
async fn an_attempt_that_is_dropped_kills_its_program() {
    let script = Script::new("sleep 1000 & echo $! > \"$1\"; wait");
    let command = script.command(json!({"args": [script.file("pid")]}));
    let message = sample();
    let attempt = run(&command, &message, soon());
    let pid = tokio::select! {
        told = attempt => panic!("it ended: {told:?}"),
        pid = async { written(&script.file("pid")).await } => pid,
    };
    assert!(gone(&pid).await);
}

const GATEWAY: &str = "PICKET_TEST_GATEWAY_RUNS";

/// Not a test of its own: the gateway that the next one kills.
#[tokio::test]
async fn a_gateway_that_runs_a_program() {
    if let Some(folder) = std::env::var_os(GATEWAY).map(PathBuf::from) {
        let table = json!({"program": folder.join("release"), "args": [folder.join("pid")]});
        let told = run(&command(table).expect("right"), &sample(), soon()).await;
        panic!("it was to be killed: {told:?}");
    }
}

#[tokio::test]
async fn a_program_dies_with_the_gateway() {
    let script = Script::new("echo $$ > \"$1\"; exec sleep 1000");
    let mut gateway = tokio::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "command::tests::a_gateway_that_runs_a_program", "--nocapture"])
        .env(GATEWAY, script.folder.path())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("a gateway");
    let pid = written(&script.file("pid")).await;
    assert!(runs(&pid));
    gateway.kill().await.expect("kill -9");
    assert!(gone(&pid).await);
}

#[tokio::test]
async fn a_program_need_not_read_and_may_write_a_lot_of_noise() {
    let script = Script::new("head -c 1000000 /dev/zero >&2; echo done");
    assert_eq!(script.run().await, Ok(Progress::Complete("done".to_owned())));
}

#[test]
fn all_faults_are_told_at_once() {
    let faults = command(json!({
        "args": "one", "env": ["A=B"], "max_life": 60, "shell": true,
    }))
    .expect_err("nothing of it is right");
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(keys, ["program", "args", "env", "max_life", "shell"]);
    let mut plain = tempfile::NamedTempFile::new().expect("a file");
    writeln!(plain, "text").expect("written");
    for (program, word) in [
        (json!("release"), "absolute"),
        (json!("/nowhere/at/all"), "cannot be found"),
        (json!(plain.path()), "executed"),
        (json!("/"), "executed"),
    ] {
        let faults = command(json!({"program": program})).expect_err(word);
        assert!(faults[0].key == "program" && faults[0].message.contains(word), "{faults:?}");
    }
}

#[test]
fn nothing_bounds_a_program_but_the_operators_word() {
    let table = json!({"program": "/bin/sh"});
    assert_eq!(command(table).expect("right").max_in_flight(), None);
    let table = json!({"program": "/bin/sh", "max_life": "90s", "attempt": "2m"});
    let command = command(table).expect("right");
    assert_eq!(
        (command.max_in_flight(), command.attempt_time()),
        (Some(Duration::from_secs(120 + 2 + 90)), Duration::from_secs(120))
    );
}
