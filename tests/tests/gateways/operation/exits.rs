//! A person reads what `picket status` says of a node that waits, does that, types what stands there, and the node leaves (S16).

use futures::future::try_join_all;
use picket_proto::exits::{Way, ways};
use picket_proto::v1::{OutcomeKind, Phase, Reason};
use picket_tests::peers::{IpmiSim, Knob};
use picket_tests::{Gateway, Result};

use crate::operation::attest::PEOPLE;
use crate::operation::one_node;

const IMPATIENT: &str = "[rules]\nlevel_share = \"9s\"\nfence_deadline = \"30s\"\nlongest_cycle = \"5s\"";

/// What the words of the way want done in the world.
fn done(bmc: &mut IpmiSim, way: &Way) -> Result<()> {
    match way.when {
        "mend what did not answer, or refused" => bmc.clear(Knob::IgnoreOff),
        "you looked at the machine and vouch that it is off" => bmc.press(false),
        "it runs, and is to run" => Ok(()),
        "its hardware is gone for good" => {
            bmc.press(false)?;
            bmc.process().kill();
            Ok(())
        }
        other => panic!("nobody has done {other:?} here"),
    }
}

/// The commands that status gives for a way, as they are typed.
async fn commands(gateway: &Gateway, way: &Way) -> Result<Vec<Vec<String>>> {
    let status = gateway.picket(&["status", "n1"]).await?;
    let line = status.out.lines().find(|line| line.contains(way.when));
    let line = line.unwrap_or_else(|| panic!("{:?} is not in {status:?}", way.when));
    let commands = line.split(" (role ").next().expect("a line").split("picket ").skip(1);
    let typed = commands.map(|command| {
        let words = command.split(", then").next().expect("a command").split_whitespace();
        words.map(|word| word.replace("...", "seen")).chain(["--yes".to_owned()]).collect()
    });
    Ok(typed.collect())
}

/// The off is taken and nothing comes of it, until a person acts by the way.
async fn walk(way: &Way) -> Result<()> {
    let (mut bmc, _webhook, fleet) = one_node().await?;
    bmc.set(Knob::IgnoreOff)?;
    let gateway = Gateway::start(&fleet.with(PEOPLE).with(IMPATIENT)).await?;
    gateway.checked().await?;
    let fenced = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(fenced.code, 4, "{fenced:?}");
    assert!(fenced.out.contains("needs operator (levels spent)"), "{fenced:?}");
    let commands = commands(&gateway, way).await?;
    done(&mut bmc, way)?;
    for command in commands {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut said = gateway.picket(&words).await?;
        for _ in 0..10 {
            // On a busy machine it may take longer than a level has here.
            if words[0] == "retry" && said.code == 4 {
                said = gateway.picket(&words).await?;
            }
        }
        // A stand-down is no success of the fence: it has a code of its own.
        assert!([0, 8].contains(&said.code), "{way:?}: {words:?} {said:?}\n{}", gateway.log());
    }
    let status = gateway.picket(&["status", "n1"]).await?;
    let phase = way.to.as_str_name().trim_start_matches("PHASE_").to_lowercase();
    assert!(status.out.contains(&format!("phase          {phase}")), "{way:?}: {status:?}");
    Ok(())
}

#[tokio::test]
async fn what_status_says_to_do_leads_out() -> Result<()> {
    let ways = ways(OutcomeKind::NeedsOperator, Reason::LevelsSpent);
    let to: Vec<Phase> = ways.iter().map(|way| way.to).collect();
    assert_eq!(to, [Phase::Released, Phase::Released, Phase::Normal, Phase::Retired]);
    try_join_all(ways.iter().map(walk)).await?;
    Ok(())
}
