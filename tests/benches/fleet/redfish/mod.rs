//! The same over Redfish: status and confirmed off of a rack, beside `fence_redfish` and a client that keeps its connections.

mod agent;
mod keep_alive;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use picket_driver::PowerDriver;
use picket_driver_redfish::RedfishKind;
use picket_tests::peers::{ADMIN, PASSWORD};
use serde_json::{Map, Value, json};

use self::agent::{AGENT, FenceRedfish};
use self::keep_alive::{KEEP_ALIVE, KeepAlive};
use crate::Wrong;
use crate::bmcs::{Bmcs, Speech};
use crate::options::Crowd;
use crate::race::contest::{Beside, Contestant, Deed, Rounds, against, compete, print};
use crate::race::farm::Farm;
use crate::race::goals::Goals;
use crate::race::ours::{Ours, Start, Subjects};
use crate::race::series::Dice;
use crate::race::subject::Maker;

/// What the agent's rate is to be exceeded by.
const FASTER: f64 = 20.0;
/// How near to the client that keeps its connections it is to be.
const NEAR: f64 = 1.2;

const COLUMNS: [Beside; 2] =
    [Beside { head: "x agent", whom: |_| AGENT }, Beside { head: "x kept", whom: |_| KEEP_ALIVE }];

/// Both races.
pub async fn race(crowd: Crowd, seed: u64, goals: &mut Goals) -> Result<(), Wrong> {
    let Crowd { bmcs, rounds } = crowd;
    println!("\nREDFISH: {bmcs} AT ONCE; {rounds} rounds");
    let farm = Bmcs::start_with(bmcs, Speech::Redfish)?;
    let authority = tempfile::NamedTempFile::new()?;
    std::fs::write(authority.path(), farm.authority()?)?;
    let subjects = subjects(&Maker::new()?, authority.path(), farm.addresses()).await?;
    let ours = |start| Box::new(Ours::new(start, subjects.clone()));
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        ours(Start::Warm),
        ours(Start::ColdAndClosed),
        Box::new(KeepAlive::new(&farm.authority()?, farm.addresses())?),
        Box::new(FenceRedfish::new(farm.addresses())?),
    ];
    let rounds = Rounds { counted: rounds, warm_up: false };
    for (deed, head) in [(Deed::Status, "STATUS"), (Deed::Off, "OFF, confirmed by one reading, no dwell")] {
        let scores = compete(&farm, &mut contestants, deed, rounds, &mut Dice(seed)).await?;
        println!("  {head}");
        print(&scores, bmcs, &COLUMNS);
        let what = format!("Redfish, {deed:?} of {bmcs}");
        let (warm, cold) = (Start::Warm.name(), Start::ColdAndClosed.name());
        against(&scores, &what, (warm, AGENT), 1.0 / FASTER, goals);
        against(&scores, &what, (cold, AGENT), 1.0, goals);
        against(&scores, &what, (warm, KEEP_ALIVE), NEAR, goals);
    }
    Ok(())
}

/// Drivers that keep a connection each, and have sent nothing yet.
async fn subjects(maker: &Maker, authority: &Path, bmcs: &[SocketAddr]) -> Result<Subjects, Wrong> {
    let password = tempfile::NamedTempFile::new()?;
    std::fs::write(password.path(), PASSWORD)?;
    let kind = RedfishKind::keeping(bmcs.len());
    let mut subjects = Vec::with_capacity(bmcs.len());
    for bmc in bmcs {
        let settings = json!({
            "host": bmc.ip().to_string(), "port": bmc.port(), "username": ADMIN, "password_file": password.path(),
            "ca_file": authority,
        });
        let settings: Map<String, Value> = settings.as_object().cloned().unwrap_or_default();
        let driver: Arc<dyn PowerDriver> = match kind.device(&settings) {
            Ok(driver) => Arc::new(driver),
            Err(faults) => return Err(format!("the bench's own settings are wrong: {faults:?}").into()),
        };
        subjects.push(Arc::new(maker.subject_of(driver).await?));
    }
    Ok(subjects.into())
}
