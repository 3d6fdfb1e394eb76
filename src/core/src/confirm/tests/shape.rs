//! What of a judge decides how it goes on, and what a copy of a judge says.

use crate::confirm::{Judge, Verdict};
use crate::power::Power::{Off, On};
use crate::support::{Bench, host, ms, s};
use crate::time::WallTime;

fn fallen() -> Bench {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    bench.falls("bmc");
    bench
}

#[test]
fn a_copy_says_what_the_judge_says_and_the_judge_says_it_again() {
    let bench = fallen();
    let proof = |judge: &Judge| {
        let verdict = judge.verdict(&bench.ledger, bench.now, WallTime::default());
        let Verdict::Confirmed(proof) = verdict else { panic!("{verdict:?}") };
        proof.evidence().clone()
    };
    let first = proof(&bench.judge);
    assert_eq!((proof(&bench.judge), proof(&bench.judge.clone())), (first.clone(), first));
}

#[test]
fn what_is_shown_to_a_copy_is_not_shown_to_the_judge() {
    let mut bench = fallen();
    let judge = bench.judge.clone();
    bench.reads("bmc", On);
    assert_ne!(judge.shape(bench.now, s(30)), bench.judge.shape(bench.now, s(30)));
    bench.judge = judge;
    bench.confirmed();
}

#[test]
fn a_shape_is_told_by_ages_up_to_the_oldest() {
    let bench = fallen();
    let after = |time| bench.judge.shape(bench.now + time, s(30));
    assert_eq!(after(ms(0)), after(ms(0)));
    assert_ne!(after(s(29)), after(s(30)));
    assert_eq!(after(s(40)), after(s(41)), "all of them are older than that");
}

#[test]
fn judges_that_go_on_otherwise_have_other_shapes() {
    let mut bench = Bench::of(&[&[host("bmc")]]);
    let mut shapes = vec![bench.judge.shape(bench.now, s(30))];
    bench.reads("bmc", On);
    shapes.push(bench.judge.shape(bench.now, s(30)));
    bench.off("bmc");
    shapes.push(bench.judge.shape(bench.now, s(30)));
    for _ in 0..2 {
        bench.wait(s(1)).reads("bmc", Off);
        shapes.push(bench.judge.shape(bench.now, s(30)));
    }
    for (at, shape) in shapes.iter().enumerate() {
        assert!(!shapes[..at].contains(shape), "{at}: {shapes:?}");
    }
}
