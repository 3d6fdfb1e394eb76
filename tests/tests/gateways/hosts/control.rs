//! The negative control: the judge sees what must never be, where it is.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::Knob;

use crate::hosts::caller::End;
use crate::hosts::scene::Scene;

/// A BMC that says off of a machine that lives, with nobody else to ask; and a hand that switches on what is fenced.
#[tokio::test]
async fn the_judge_sees_a_release_of_a_machine_that_writes_and_one_that_comes_back_unasked() -> Result<()> {
    let scene = Scene::start(&[], &[Duration::ZERO; 3]).await?;
    let caller = scene.caller();
    assert_eq!(caller.fence("n3", "k").await?, End::Done, "{}", scene.logs());
    let judged = scene.judged().await?;
    assert_eq!((judged.violations.len(), judged.releases), (0, 1), "{judged:?}");
    assert!(judged.margin_ms[0].is_some() && judged.beats > 2, "{judged:?}");

    scene.nodes[0].bmc.set(Knob::LieOff)?;
    assert_eq!(caller.fence("n1", "k").await?, End::Done, "{}", scene.logs());
    let judged = scene.judged().await?;
    let of = |node: &str, what: &str| {
        judged.violations.iter().any(|line| line.starts_with(node) && line.contains(what))
    };
    assert!(of("n1", "after the confirmation") && of("n1", "after the release"), "{judged:?}");
    assert!(!of("n3", ""), "{judged:?}");

    assert_eq!(caller.fence("n2", "k").await?, End::Done, "{}", scene.logs());
    // It may be fenced again before it has written anything: that it was switched on is the fault.
    scene.nodes[1].machine.force(true).await?;
    let judged = scene.judged().await?;
    let switched = judged
        .violations
        .iter()
        .any(|line| line.starts_with("n2: switched on") && line.contains("nobody unfenced"));
    assert!(switched, "{judged:?}");
    Ok(())
}
