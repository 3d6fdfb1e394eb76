//! OpenStack's sushy-emulator behind a layer that has sessions and faults, with DMTF's redfishtool looking on.

use std::process::Output;
use std::time::Duration;

use picket_proto::v1::{Grade, Reason};
use picket_tests::peers::{ADMIN, PASSWORD, SYSTEMS, Sushy, SushyFault, test_python};
use picket_tests::{Bmc, Result};
use tokio::process::Command;

use crate::bmc::scene::{Plan, Scene};

/// The end of the line of an off, or an on.
const RESET: &str = "POST ...Reset";
/// The same of a reading of power.
const LOOK: &str = "GET ...094";
/// The same of a login.
const LOGIN: &str = "POST ...Sessions";

/// What redfishtool says of the machine's power, in a session of its own.
async fn redfishtool(sushy: &Sushy) -> Result<String> {
    let tool = test_python()?.with_file_name("redfishtool");
    let address = sushy.address().to_string();
    let mut command = Command::new(tool);
    command.args(["-r", &address, "-u", ADMIN, "-p", PASSWORD, "-S", "Always", "-A", "Session"]);
    command.args(["Systems", "-I", SYSTEMS[0]]).kill_on_drop(true);
    let output: Output = command.output().await.expect("redfishtool of tests/peers/requirements.txt");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let power = said.split_once("\"PowerState\": \"").and_then(|(_, rest)| rest.split_once('"'));
    Ok(power.map(|(word, _)| word.to_owned()).unwrap_or(said))
}

/// A gateway over the first machine, in sessions, with these lines for its device.
async fn scene(sushy: &Sushy, lines: &str) -> Result<Scene> {
    let device = Bmc::redfish_in_sessions(sushy, SYSTEMS[0]);
    // A fall may take 11 s, and a call that waits for a busy service a while.
    let lines = format!(
        "call = \"20s\"\nsession_timeout = \"60s\"\nidentity = {{ uuid = {:?} }}\n{lines}",
        SYSTEMS[0]
    );
    Plan::over(sushy.truth(SYSTEMS[0]), &[("bmc", device.with(&lines))]).start().await
}

/// It is fenced, let go and brought back, whatever went wrong on the way.
async fn goes_right(sushy: &Sushy, scene: &Scene, what: &str) -> Result<()> {
    let fenced = scene.fence().await?;
    fenced.tell(what);
    assert_eq!(fenced.is_fenced().evidence().grade(), Grade::Hypervisor, "it does not tell its restarts");
    assert!(!sushy.is_on(SYSTEMS[0])? && sushy.is_on(SYSTEMS[1])?);
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    assert!(sushy.is_on(SYSTEMS[0])?);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn in_sessions_which_end_with_what_they_carried_and_redfishtool_sees_the_same() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    assert_eq!(redfishtool(&sushy).await?, "On");
    let scene = scene(&sushy, "").await?;
    let fenced = scene.fence().await?;
    fenced.tell("sushy-emulator in sessions");
    fenced.is_fenced();
    assert_eq!(redfishtool(&sushy).await?, "Off", "at the proof");
    scene.released_while_off(1);
    scene.unfence().await?.is_back();
    assert_eq!(redfishtool(&sushy).await?, "On");
    let (made, open) = sushy.sessions()?;
    // The one of the off ended before the on, and the one of the on before the node was back; redfishtool ends its own.
    assert!(made >= 5 && open <= 1, "{made} sessions were made, and {open} are open");
    assert_eq!(sushy.resets(), 3, "the off, the one that seals the window, and the on");
    Ok(())
}

#[tokio::test]
async fn busy_throttled_and_slow_answers_are_waited_for() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    let scene = scene(&sushy, "").await?;
    let slow = SushyFault { after: 2.0, ..SushyFault::new(LOOK, "slow", 2) };
    let busy = [SushyFault::new(RESET, "busy", 2), SushyFault::new(LOOK, "throttled", 2), slow];
    sushy.faults(&busy)?;
    goes_right(&sushy, &scene, "503, 429 and slow").await
}

#[tokio::test]
async fn a_reset_that_is_a_task_is_followed() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    let scene = scene(&sushy, "").await?;
    sushy.faults(&[SushyFault { after: 1.5, ..SushyFault::new(RESET, "task", 9) }])?;
    goes_right(&sushy, &scene, "202 and its task").await
}

#[tokio::test]
async fn an_off_of_what_is_off_is_refused_and_off_must_hold_for_the_long_window() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    let scene = scene(&sushy, "").await?;
    sushy.switch(SYSTEMS[0], "Off")?;
    sushy.faults(&[SushyFault::new(RESET, "already", 9)])?;
    let fenced = scene.fence().await?;
    fenced.tell("409");
    assert!(fenced.is_fenced().took >= Duration::from_secs(15), "{:?}", fenced.took);
    scene.released_while_off(1);
    Ok(())
}

#[tokio::test]
async fn answers_that_are_cut_and_an_off_that_is_not_answered_leave_no_doubt() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    let scene = scene(&sushy, "").await?;
    sushy.faults(&[SushyFault::new(RESET, "unanswered", 1), SushyFault::new(LOOK, "cut", 2)])?;
    goes_right(&sushy, &scene, "cut answers").await
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_made_anew() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    let scene = scene(&sushy, "").await?;
    sushy.faults(&[SushyFault::new(LOOK, "forgotten", 1)])?;
    goes_right(&sushy, &scene, "a forgotten session").await
}

#[tokio::test]
async fn where_no_session_is_to_be_had_the_password_lets_in_if_the_settings_allow_that() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    sushy.faults(&[SushyFault::new(LOGIN, "full", 999)])?;
    let scene = scene(&sushy, "authentication = \"session_or_basic\"\nmax_life = \"5s\"").await?;
    goes_right(&sushy, &scene, "full").await?;
    assert_eq!(sushy.sessions()?, (0, 0));
    Ok(())
}

#[tokio::test]
async fn where_no_session_is_to_be_had_and_nothing_else_is_allowed_nothing_is_proven() -> Result<()> {
    let sushy = Sushy::in_sessions().await?;
    sushy.faults(&[SushyFault::new(LOGIN, "full", 999)])?;
    let device = Bmc::redfish_in_sessions(&sushy, SYSTEMS[0]);
    let settings = "[rules]\nlevel_share = \"30s\"\nfence_deadline = \"32s\"\nsilent_share = \"8s\"";
    let plan = Plan::over(sushy.truth(SYSTEMS[0]), &[("bmc", device)]).with(settings);
    let scene = plan.start().await?;
    let fenced = scene.fence().await?;
    fenced.tell("full");
    fenced.needs_operator(Reason::LevelsSpent);
    assert!(sushy.truth(SYSTEMS[0])() && sushy.resets() == 0);
    scene.never_released().await;
    Ok(())
}
