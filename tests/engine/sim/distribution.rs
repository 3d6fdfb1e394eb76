//! Clocks that jump and commands that land late.

use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, LimitKind, Limits};
use picket_core::outcome::Outcome;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Planned, Until};

use crate::budget::name;
use crate::lab::{NODE, lab, node, person, s};
use crate::queue::wait;

#[tokio::test(start_paused = true)]
async fn a_clock_jump_ends_leadership_and_the_fence_goes_on_under_the_next_term() {
    let mut lab = lab(50).await;
    lab.fault("bmc", Fault::OffTakes { least: s(30), most: s(30) });
    let id = lab.open().await;
    let term = lab.engine.leading().expect("leads");
    tokio::time::sleep(s(5)).await;
    lab.clock.jump_wall(60_000);
    tokio::time::sleep(s(5)).await;
    assert!(lab.engine.leading().expect("leads again") > term);
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
}

/// S14: what a jump ends is the leadership, and nothing of what the budget counts, nor a pause.
#[tokio::test(start_paused = true)]
async fn a_clock_jump_ends_no_cool_down_no_window_and_no_pause_and_lengthens_none() {
    for jump in [7_200_000, -7_200_000] {
        let fleet = Limits { at_once: Some(9), per_window: Some((1, s(1_000))), ..Limits::default() };
        let fleet = Limits { min_not_fenced: Some(0), ..fleet };
        let budget = Budget { fleet, cool_down: s(500), ..Budget::unlimited() };
        let mut lab = crate::budget::fleet(54, 3, budget).await;
        lab.fence().await;
        lab.unfence().await.expect("unfenced");
        lab.reach("normal", s(120)).await;
        lab.engine.pause(PauseScope::Node(name(2)), person(), s(2_000)).await.expect("paused");
        let waits = {
            let call = lab.call();
            wait(&lab, &name(3), call, Some(s(300))).await
        };
        let ended = tokio::time::Instant::now();
        lab.clock.jump_wall(jump);
        tokio::time::sleep(s(5)).await;
        lab.engine.until_leading().await;
        let mut barred = Vec::new();
        for after in [100, 290, 310, 600, 1_050, 1_900, 2_100] {
            tokio::time::sleep_until(ended + s(after)).await;
            let mut bars = async |index| {
                let call = lab.call();
                let plan = lab.engine.plan(&name(index), call).await.expect("a plan");
                match plan.planned {
                    Planned::Barred(bar) => Some(bar.kind),
                    _ => None,
                }
            };
            barred.push((after, bars(1).await, bars(2).await, lab.engine.waiting_for(&name(3)).len()));
        }
        let (cools, window, pause) =
            (Some(LimitKind::CoolDown), Some(LimitKind::PerWindow), Some(LimitKind::Pause));
        let want = [
            (100, cools, pause, 1),
            (290, cools, pause, 1),
            (310, cools, pause, 0),
            (600, window, pause, 0),
            (1_050, None, pause, 0),
            (1_900, None, pause, 0),
            (2_100, None, None, 0),
        ];
        assert_eq!(barred, want, "{jump}");
        drop(waits);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_the_off_does_not_hit_the_node_after_the_unfence() {
    let mut lab = lab(51).await;
    lab.fault("bmc", Fault::Twice { verb: Verb::Off, after: s(20), times: 10 });
    lab.fence().await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    tokio::time::sleep(s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_late_duplicate_of_the_on_does_not_hit_the_node_after_the_next_fence() {
    let mut lab = lab(52).await;
    lab.fence().await;
    lab.fault("bmc", Fault::Twice { verb: Verb::On, after: s(20), times: 10 });
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(120)).await;
    assert!(!lab.is_on());
    assert_eq!(lab.view().stored.record.breaches, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stale_off_of_a_dead_gateway_is_waited_out_before_the_on() {
    let mut lab = lab(53).await;
    lab.fault("bmc", Fault::Late { verb: Verb::Off, after: s(40), answered: false, times: 1 });
    lab.open().await;
    tokio::time::sleep(s(1)).await;
    lab.crash().await;
    lab.mend("bmc");
    lab.reach("released", s(200)).await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(200)).await;
    tokio::time::sleep(s(120)).await;
    assert!(lab.is_on(), "the dead gateway's off landed after the unfence");
}

#[tokio::test(start_paused = true)]
async fn an_ended_fence_is_forgotten_after_the_time_that_the_rules_say() {
    let mut lab = lab(54).await;
    let id = lab.open().await;
    lab.outcome(id, Until::Released).await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    // In one leap: half a year of heartbeats would take its time.
    tokio::time::advance(s(89 * 86_400)).await;
    tokio::time::sleep(s(10)).await;
    assert!(lab.engine.get_fence(id).await.expect("a store").is_some());
    tokio::time::advance(s(2 * 86_400)).await;
    tokio::time::sleep(s(10)).await;
    assert!(lab.engine.get_fence(id).await.expect("a store").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_off_that_is_later_than_its_life_lands_in_no_session_of_ours() {
    let mut lab = lab(54).await;
    lab.fault("bmc", Fault::Twice { verb: Verb::Off, after: s(200), times: 10 });
    lab.fault("bmc", Fault::OnTakes { least: s(60), most: s(60) });
    lab.fence().await;
    // The watch keeps the session alive for longer than an idle one lives.
    tokio::time::sleep(s(150)).await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    let now = lab.clock.boot();
    let heard = lab.world.lock().heard(now).to_vec();
    let late: Vec<_> = heard.iter().filter(|heard| heard.late).collect();
    assert!(!late.is_empty() && late.iter().all(|heard| !heard.executed), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn an_on_that_is_later_than_its_life_does_not_hit_the_next_fence() {
    let mut lab = lab(55).await;
    lab.fence().await;
    lab.fault("bmc", Fault::Late { verb: Verb::On, after: s(450), answered: true, times: 1 });
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("unfenced");
    lab.reach("power_on_failed", s(400)).await;
    lab.mend("bmc");
    // Looked at all the time: the session that carried the on is as old as the on.
    tokio::time::sleep(s(100)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(600)).await;
    assert_eq!((lab.is_on(), lab.record().breaches), (false, 0), "the late on landed after the release");
}

#[tokio::test(start_paused = true)]
async fn an_on_of_the_leadership_before_ends_with_its_session() {
    let mut lab = lab(56).await;
    lab.fence().await;
    lab.fault("bmc", Fault::Late { verb: Verb::On, after: s(600), answered: true, times: 1 });
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("unfenced");
    lab.reach("power_on_failed", s(400)).await;
    // The same process leads again, with the same sessions, and looks at the device all the time.
    lab.clock.jump_wall(60_000);
    tokio::time::sleep(s(150)).await;
    lab.mend("bmc");
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(600)).await;
    assert_eq!((lab.is_on(), lab.record().breaches), (false, 0), "the late on landed after the release");
}

/// The wall clock is set while the minute runs, which ends the leadership: the same process leads again, and knows of the loss and of the word.
#[tokio::test(start_paused = true)]
async fn a_person_s_word_outlives_a_leadership_of_the_process_that_heard_it() {
    let lab = crate::restarted::a_lying_bmc(2771).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.engine.retry_seen_off(&node(), person()).await.expect("taken");
    tokio::time::sleep(s(10)).await;
    lab.clock.jump_wall(60_000);
    lab.reach("released", s(300)).await;
    assert!(!lab.is_on());
}
