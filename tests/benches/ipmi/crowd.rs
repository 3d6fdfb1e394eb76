//! One crowd's race.

use std::sync::Arc;

use crate::Wrong;
use crate::options::Crowd;
use crate::race::contest::{Beside, Contestant, Deed, Rounds, against, compete, print};
use crate::race::farm::Farm;
use crate::race::floor::Floor;
use crate::race::goals::Goals;
use crate::race::ours::{self, Ours, Start};
use crate::race::powerman::{self, Ipmipower, Powerman};
use crate::race::series::Dice;
use crate::race::subject::Maker;
use crate::sims::Sims;

const COLUMNS: [Beside; 2] = [
    Beside { head: "x ipmipower", whom: |_| powerman::IPMIPOWER },
    Beside { head: "x powerman", whom: |_| powerman::POWERMAN },
];

/// All contestants, so many rounds.
pub async fn race(crowd: Crowd, seed: u64, goals: &mut Goals) -> Result<(), Wrong> {
    let Crowd { bmcs, rounds } = crowd;
    let head = if bmcs == 1 { "ONE".to_owned() } else { format!("{bmcs} AT ONCE") };
    println!("\n{head}: off, confirmed by one reading, no dwell; {rounds} rounds");
    let farm = Sims::start(bmcs, false).await?;
    let subjects = ours::subjects(&Arc::new(Maker::new()?), farm.addresses()).await?;
    let ours = |start| Box::new(Ours::new(start, subjects.clone()));
    let powerman = Powerman::start(&farm).await?;
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        ours(Start::Warm),
        ours(Start::Cold),
        ours(Start::ColdAndClosed),
        Box::new(Floor::new(true, farm.addresses().to_vec())),
        Box::new(Floor::new(false, farm.addresses().to_vec())),
        Box::new(Ipmipower::new(&farm)),
        Box::new(powerman),
    ];
    let rounds = Rounds { counted: rounds, warm_up: true };
    let scores = compete(&farm, &mut contestants, Deed::Off, rounds, &mut Dice(seed)).await?;
    print(&scores, bmcs, &COLUMNS);
    // What is judged has its close in its time, as the peers have.
    let (what, cold) = (format!("{bmcs} at once"), Start::ColdAndClosed.name());
    let most = if bmcs >= 512 { 0.6 } else { 1.0 };
    against(&scores, &what, (cold, powerman::IPMIPOWER), most, goals);
    against(&scores, &what, (cold, powerman::POWERMAN), 1.0, goals);
    against(&scores, &what, (Start::Warm.name(), powerman::POWERMAN), 1.0, goals);
    Ok(())
}
