//! Random histories: misfortune, callers, deaths, a store that is away. In each of them the law holds, and once all
//! misfortune is over an operator brings the node back.
//!
//! A history follows from its seed. `PICKET_SEED=7` replays one (`PICKET_LOG=1`: with the engine's log); `PICKET_SOAK=1` lives through
//! thousands; `PICKET_HISTORIES=500` through so many, `PICKET_FROM=9000` from that seed on.

mod law;
mod misfortune;
mod people;
mod releaser;
mod shape;

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use picket_core::outcome::Outcome;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Random, Verb};
use picket_engine::Until;
use tokio::task::JoinSet;

use crate::lab::{Lab, NODE, s};
use law::Law;
use misfortune::Misfortune;
use releaser::Whimsical;
use shape::Shape;

/// How many histories CI lives through.
const SHORT: u64 = 50;
/// And a soak.
const LONG: u64 = 5_000;
/// Real time after which a history that lives in simulated time is held to hang.
const LIMIT: Duration = Duration::from_secs(120);

pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn in_every_history_the_law_holds_and_everything_comes_back() {
    if let Some(seed) = number("PICKET_SEED") {
        if std::env::var_os("PICKET_LOG").is_some() {
            let level = tracing_subscriber::filter::LevelFilter::DEBUG;
            let _ =
                tracing_subscriber::fmt().with_max_level(level).with_ansi(false).without_time().try_init();
        }
        return live(seed);
    }
    let soak = number("PICKET_SOAK").is_some_and(|on| on > 0);
    let count = number("PICKET_HISTORIES").unwrap_or(if soak { LONG } else { SHORT });
    let from = number("PICKET_FROM").unwrap_or(0);
    let mut failed = Vec::new();
    for seed in from..from + count {
        let (done, end) = mpsc::channel();
        let history = std::thread::spawn(move || {
            live(seed);
            let _ = done.send(());
        });
        match end.recv_timeout(LIMIT) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("seed {seed} hangs in real time: PICKET_SEED={seed}")
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let _ = history.join();
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count} failed, replay with PICKET_SEED=: {failed:?}", failed.len());
}

fn live(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(history(seed));
}

async fn history(seed: u64) {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0xc4a0);
    let shape = Shape::draw(&mut random);
    let built = shape.clone();
    let mut lab = Lab::dark(seed, shape.setup(), |world| built.build(world));
    let law = Arc::new(Law::new(lab.world.clone(), lab.clock.clone(), lab.store.clone(), shape.clone()));
    let releaser = Arc::new(Whimsical {
        law: law.clone(),
        random: Mutex::new(Random::new(random.bits())),
        kind: Mutex::new(false),
        unbounded: shape.unbounded,
        attempts: Mutex::default(),
    });
    lab.setup.releases =
        shape.releases.iter().map(|name| (name.to_string(), releaser.clone() as _)).collect();
    lab.start().await;
    let mut calls = JoinSet::new();
    let mut misfortune = Misfortune::new(random.bits(), &shape);
    for _ in 0..20 + random.below(60) {
        let longest = if random.percent(80) { s(8) } else { s(120) };
        let pause = random.between(Duration::ZERO, longest);
        tokio::select! {
            biased;
            () = lab.points.death() => {
                law.say(format!("died at {:?}", lab.points.seen.lock().expect("whole").last()));
                misfortune.crash(&mut lab, &law, &mut calls).await;
            }
            () = tokio::time::sleep(pause) => {}
        }
        law.hold();
        match random.below(10) {
            0..4 => people::ask(&mut random, &lab.engine, &law, &mut calls),
            4..9 => misfortune.strike(&mut lab, &law, &mut calls).await,
            _ => misfortune.relent(&lab, &law),
        }
    }
    heal(&mut lab, &law, &shape, &releaser, &mut calls).await;
    people::bring_back(&lab, &law, &mut random).await;
    once_more(&mut lab, &law, &shape).await;
}

/// All misfortune ends.
async fn heal(lab: &mut Lab, law: &Arc<Law>, shape: &Shape, releaser: &Whimsical, calls: &mut JoinSet<()>) {
    law.say("all is well again");
    *lab.points.die_at.lock().expect("whole") = None;
    *releaser.kind.lock().expect("whole") = true;
    lab.store.clear();
    let now = lab.clock.boot();
    lab.world.lock().expect("whole").heal(now);
    let ours = lab.record().fence.map(|fence| fence.switched_off).unwrap_or_default();
    for outlet in shape.outlets().filter(|outlet| ours.iter().all(|off| off.as_str() != outlet.as_str())) {
        lab.happen(Act::ForeignOutlet { outlet: outlet.clone(), verb: Verb::On });
    }
    // A process that stands at its point of death is dead.
    if tokio::time::timeout(s(1), lab.points.death()).await.is_ok() {
        calls.shutdown().await;
        lab.crash().await;
    }
    // Whoever still waits is answered.
    let answered = tokio::time::timeout(s(600), async { while calls.join_next().await.is_some() {} }).await;
    assert!(answered.is_ok(), "{}", law.story("callers hang"));
}

/// What is back can be fenced, found on, fenced again and brought back.
async fn once_more(lab: &mut Lab, law: &Arc<Law>, shape: &Shape) {
    law.say("once more");
    for outlet in shape.outlets() {
        lab.happen(Act::ForeignOutlet { outlet: outlet.clone(), verb: Verb::On });
    }
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    // Old sessions end, and what is late has come.
    tokio::time::sleep(s(240)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    let found = lab.world.lock().expect("whole").hold(NODE);
    let id = lab.open().await;
    let outcome = lab.outcome_within(id, Until::Released, s(1_200)).await;
    assert_eq!(
        outcome,
        Some(Outcome::Fenced { released: true }),
        "{}",
        law.story(&format!("{:#?}", lab.record()))
    );
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(30)).await;
    lab.reach("released", s(300)).await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(600)).await;
    law.hold();
    let hold = lab.world.lock().expect("whole").hold(NODE);
    let same = (hold.restore, hold.button_locked) == (found.restore, found.button_locked);
    // Two devices with one hold between them find each other's.
    assert!(same || shape.hosts().count() > 1, "{}", law.story(&format!("{found:?} {hold:?}")));
    assert!(lab.is_on(), "{}", law.story("it is not on"));
}
