//! Whole histories of several gateways, each from a seed.
//!
//! **Purpose.** The real engine, two or three of them in one thread of paused time, over a store with
//! leases, networks, devices and far sides that are simulated: crashes, stops, partitions, clock jumps,
//! losses, doubles, lateness, lies. In each history the law holds (`law`, one file for each invariant), and
//! once all misfortune is over every fence ends.
//! **Non-goals.** No sockets, no processes, no files (the audit is a chain in memory): the end-to-end tests
//! have those.
//! **Boundary.** The caller gives the runtime, with paused time: it is not compiled into anything that
//! ships.
//!
//! What a simulated gateway is spared: all clocks run at one speed. While its whole machine stands still
//! its clocks do, and its timers go on: what it waits for by them is over sooner than it would be, as its
//! clocks see it.
//!
//! # Invariants
//!
//! - The same seed gives the same history, to the last event: nothing here asks a real clock or real
//!   chance, iterates a hash map, or runs in another thread. Shown by
//!   `the_same_seed_gives_the_same_history`.
//! - In every history the law holds, and every fence ends. Shown by
//!   `in_every_history_the_law_holds_and_every_fence_ends`.

mod book;
mod cast;
mod far;
mod gate;
mod gateway;
mod healing;
mod law;
mod many;
mod misfortune;
mod people;
mod restarts;
mod rights;
mod scene;
mod shape;
mod sky;
mod tally;
mod trace;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};
use std::time::Duration;

use cast::Cast;
pub use many::{Many, many};
use misfortune::Misfortune;
use people::People;
use picket_driver_sim::Random;
use scene::{Scene, s};
use shape::Shape;
pub use shape::Weakness;
pub use tally::Tally;
use tokio::runtime::Runtime;

/// A history that was lived to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lived {
    /// Of everything that happened, in its order.
    pub hash: u64,
    /// How much of what that was.
    pub tally: Tally,
    /// How long it took, in its own time.
    pub time: Duration,
    /// Everything that happened, where it was to be told.
    pub diary: String,
}

/// A history in which something is wrong.
#[derive(Clone, Debug)]
pub struct Broken {
    /// What is wrong, one a line; the first is the reason.
    pub what: Vec<String>,
    /// Everything that happened, where it was to be told.
    pub diary: String,
}

thread_local! {
    /// Panics of tasks, which their runtime swallows.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            before(panic);
        }));
    });
}

/// Lives through the history of a seed, on a runtime of one thread whose time is paused. `loud`: with a diary. Of `weakness` something
/// is expected to be broken.
///
/// # Errors
/// What is broken in it.
pub fn live(runtime: Runtime, seed: u64, weakness: Weakness, loud: bool) -> Result<Lived, Box<Broken>> {
    watch_for_panics();
    PANICS.take();
    let lived = catch_unwind(AssertUnwindSafe(|| runtime.block_on(history(seed, weakness, loud))));
    let panics = PANICS.take();
    match lived {
        Ok(lived) if panics.is_empty() => lived,
        Ok(lived) => {
            let mut broken =
                lived.err().map_or_else(|| Broken { what: Vec::new(), diary: String::new() }, |b| *b);
            broken.what.splice(0..0, panics);
            Err(Box::new(broken))
        }
        Err(_) => Err(Box::new(Broken { what: panics, diary: String::new() })),
    }
}

async fn history(seed: u64, weakness: Weakness, loud: bool) -> Result<Lived, Box<Broken>> {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x51a7);
    let shape = Shape::draw(&mut random, weakness);
    let scene = Scene::new(random.bits(), shape, loud);
    scene.say(|| format!("{:#?}", scene.shape));
    let mut cast = Cast::new(&scene, &mut random);
    let mut people = People::new(scene.clone(), cast.quorum.clone());
    cast.start_all();
    chaos(&mut cast, &mut people, &mut random).await;
    if scene.violations().is_empty() {
        healing::heal(&mut cast, &mut people).await;
        // Who runs on another one comes first: its parent is held for it.
        for node in scene.shape.clone().nodes.iter().rev() {
            healing::bring_back(&mut cast, &node.id, &mut random).await;
        }
    }
    if scene.violations().is_empty() && random.percent(20) {
        let node = scene.shape.nodes[random.below(scene.shape.nodes.len() as u64) as usize].id.clone();
        // By hand a child is not switched on while its parent is off.
        if scene.shape.node(&node).parent.is_none() {
            healing::once_more(&mut cast, &node, &mut random).await;
        }
    }
    end(&scene, cast, people).await
}

/// Misfortune, callers, and now and then relief.
async fn chaos(cast: &mut Cast, people: &mut People, random: &mut Random) {
    let mut misfortune = Misfortune::new(random.bits());
    let least = if cast.scene.shape.weakness.is_of_what_is_late() { 60 } else { 12 };
    for _ in 0..least + random.below(36) {
        let longest = if random.percent(90) { s(6) } else { s(70) };
        tokio::time::sleep(random.between(Duration::ZERO, longest)).await;
        cast.bury().await;
        if !cast.scene.violations().is_empty() {
            return;
        }
        match random.below(10) {
            0..4 => people.ask(random, &cast.gateways, &cast.far),
            4..8 => misfortune.strike(cast).await,
            _ => misfortune.relent(cast).await,
        }
    }
}

async fn end(scene: &Arc<Scene>, mut cast: Cast, mut people: People) -> Result<Lived, Box<Broken>> {
    people.calls.shutdown().await;
    for gateway in &mut cast.gateways {
        gateway.go().await;
    }
    let what = scene.violations();
    let (diary, hash, tally) = scene.end();
    if what.is_empty() {
        Ok(Lived { hash, tally, time: scene.now().since_boot(), diary })
    } else {
        Err(Box::new(Broken { what, diary }))
    }
}
