//! A fence whose offs reached nothing ends as recovered once the node is well in the same boot (S15): as a rack switch restarts.

use super::*;

/// A source that says that the node is not well, until it is told; the node is in boot `b`.
fn later() -> (Arc<AtomicBool>, Arc<Source>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let seen = is_well.clone();
    let source = Source::new(move |_, _| if seen.load(Ordering::SeqCst) { yes() } else { no() });
    is_in(&source, Some("b"));
    (is_well, source)
}

fn is_in(source: &Source, boot: Option<&str>) {
    *source.boot.lock().expect("whole") = boot.map(str::to_owned);
}

#[tokio::test(start_paused = true)]
async fn one_whose_offs_were_all_refused_ends_as_recovered() {
    let (is_well, source) = later();
    is_in(&source, None);
    let mut lab = lab_with(60, &source).await;
    lab.fault("bmc", Fault::OffRefused);
    let id = lab.open().await;
    tokio::time::sleep(s(100)).await;
    assert!(lab.record().fence.is_some_and(|fence| fence.off_sent));
    is_well.store(true, Ordering::SeqCst);
    let outcome = lab.outcome_within(id, Until::Released, s(100)).await;
    assert_eq!(outcome, Some(Outcome::AbortedRecovered), "no boot is asked for: nothing happened");
    lab.reach("normal", s(120)).await;
    assert_eq!((lab.is_on(), lab.falls()), (true, 0));
    assert!(lab.record().holds.is_empty() && lab.record().ledger.open().is_empty());
}

/// Its BMC falls silent with the off under way, and what is sent does not reach the machine. `meanwhile` comes about, and then the node is well.
async fn unheard(seed: u64, ms: u64, meanwhile: impl FnOnce(&Source)) -> Option<(Lab, Option<Outcome>)> {
    let (is_well, source) = later();
    let mut lab = lab_with(seed, &source).await;
    let silent = Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent };
    lab.schedule(Duration::from_millis(ms), silent);
    let id = lab.open().await;
    tokio::time::sleep(s(30)).await;
    let is_unheard = lab.record().fence.is_some_and(|fence| fence.off_sent) && lab.is_on();
    meanwhile(&source);
    is_well.store(true, Ordering::SeqCst);
    let outcome = lab.outcome_within(id, Until::Released, s(400)).await;
    is_unheard.then_some((lab, outcome))
}

#[tokio::test(start_paused = true)]
async fn one_whose_offs_are_waited_out_ends_as_recovered_in_the_same_boot_alone() {
    let mut unheard_of = 0;
    for ms in 4..20 {
        let Some((mut lab, outcome)) = unheard(61, ms, |_| ()).await else { continue };
        assert_eq!(outcome, Some(Outcome::AbortedRecovered), "silent after {ms} ms");
        lab.mend("bmc");
        lab.reach("normal", s(300)).await;
        assert_eq!((lab.is_on(), lab.falls()), (true, 0));
        unheard_of += 1;
        for boot in [Some("c"), None] {
            let other = unheard(61, ms, |source| is_in(source, boot)).await;
            assert_eq!(other.map(|(_, outcome)| outcome), Some(None), "{boot:?}: it is fenced on");
        }
    }
    assert!(unheard_of > 0, "an off was under way");
}

/// What it was before the first off is what counts, whoever leads.
#[tokio::test(start_paused = true)]
async fn the_next_leader_knows_the_boot_too() {
    for ms in 4..20 {
        let (is_well, source) = later();
        let mut lab = lab_with(62, &source).await;
        lab.schedule(
            Duration::from_millis(ms),
            Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent },
        );
        let id = lab.open().await;
        tokio::time::sleep(s(15)).await;
        if !lab.record().fence.is_some_and(|fence| fence.off_sent) || !lab.is_on() {
            continue;
        }
        lab.crash().await;
        is_well.store(true, Ordering::SeqCst);
        let outcome = lab.outcome_within(id, Until::Released, s(400)).await;
        assert_eq!(outcome, Some(Outcome::AbortedRecovered), "silent after {ms} ms");
        return;
    }
    panic!("no off was under way");
}
