//! What a gateway does with a driver, in the order in which it does that: a fence, and the way back.

use std::time::Duration;

use picket_core::power::Power;
use picket_driver::{Call, DriverError, ErrorKind, HoldFound};
use tokio::time::Instant;

use crate::scene::{MACHINE, Scene};
use crate::table::{LONG, Row, Since};

/// How often power is read, and an on is sent, where what is waited for never comes.
const READINGS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(250);
/// A wait of this length is a hang.
const HANG: Duration = Duration::from_secs(120);

/// What came of a fence.
#[derive(Debug)]
pub struct Came {
    /// In truth, once it was read for the last time.
    pub is_on: bool,
    /// The last reading is Off, of the life in which the off was taken.
    pub says_off: bool,
    /// The last words: of the off that was refused, or of the last reading.
    pub last: String,
    /// What became of the same off once more, or the board's own refusal of it; `None`: it was not Off.
    pub again: Option<Result<(), String>>,
    /// The hold, in words.
    pub holds: String,
    /// What was left over once the machine was let go; `None`: nothing.
    pub left: Option<String>,
    pub remarks: Vec<String>,
}

/// Fences the machine, and lets it go if it is off.
pub async fn fence(scene: &Scene, row: &Row) -> Came {
    let (bmc, driver) = (&scene.board.bmc, &scene.driver);
    let before = bmc.world().hold(MACHINE);
    if row.since != Since::Start {
        driver.identify(&scene.call(LONG)).await.expect("nothing is wrong yet");
        driver.read_power(&scene.call(LONG)).await.expect("nothing is wrong yet");
        bmc.fault(scene.fault.clone());
        if row.since == Since::LossOfSessions {
            bmc.lose_sessions();
        }
    }
    let found = match row.is_held() {
        true => patiently(scene, row, async |call| driver.inspect_hold(call).await).await,
        false => driver.inspect_hold(&scene.call(row.call)).await,
    };
    let found = found.unwrap_or_default();
    let holds = hold(scene, row, &found).await.unwrap_or_default();
    let off = scene.orders.off().await.expect("an order");
    let (mut last, mut says_off) = (String::new(), false);
    match patiently(scene, row, async |call| driver.power_off(&off, call).await).await {
        Err(error) => last = error.to_string(),
        Ok(accepted) => {
            let (until, mut readings) = (Instant::now() + HANG, 0);
            while if row.ends.says_off() { Instant::now() < until } else { readings < READINGS } {
                readings += 1;
                match driver.read_power(&scene.call(LONG)).await {
                    Ok(reading) => {
                        says_off = reading.power == Power::Off && reading.epoch == accepted.epoch;
                        last = reading.said;
                    }
                    Err(error) => last = error.to_string(),
                }
                if says_off {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    let is_on = bmc.is_on();
    let (mut again, mut left) = (None, None);
    if says_off {
        let repeated = patiently(scene, row, async |call| driver.power_off(&off, call).await).await;
        again = Some(repeated.map(drop).map_err(|error| match error.refusal {
            Some(_) => error.to_string(),
            None => format!("no refusal of its own: {error}"),
        }));
        left = let_go(scene, row, &found).await.err();
        let now = bmc.world().hold(MACHINE);
        // A watchdog is never started by what is put back.
        let is_back = (now.restore, now.button_locked) == (before.restore, before.button_locked);
        if left.is_none() && !is_back {
            left = Some(format!("the hold is {now:?} and was {before:?}"));
        }
    }
    Came { is_on, says_off, last, again, holds, left, remarks: driver.remarks() }
}

/// Asks for something, and again with twice the time where a call ended before the board had answered: a busy machine says nothing of a board.
async fn patiently<T>(
    scene: &Scene,
    row: &Row,
    ask: impl AsyncFn(&Call) -> Result<T, DriverError>,
) -> Result<T, DriverError> {
    let mut call = row.call;
    loop {
        match ask(&scene.call(call)).await {
            Err(late) if late.kind == ErrorKind::TimedOut && !row.is_told(&late) && call < HANG => call *= 2,
            ended => return ended,
        }
    }
}

async fn hold(scene: &Scene, row: &Row, found: &HoldFound) -> Result<String, DriverError> {
    let order = scene.orders.hold(found).await.expect("an order");
    let engage = async |call: &Call| scene.driver.engage_hold(&order, call).await;
    let report = match row.is_held() {
        true => patiently(scene, row, engage).await,
        false => engage(&scene.call(row.call)).await,
    };
    Ok(report?.engaged.join(", "))
}

/// Ends what is open, puts back what was found, and switches on.
async fn let_go(scene: &Scene, row: &Row, found: &HoldFound) -> Result<(), String> {
    let (bmc, driver) = (&scene.board.bmc, &scene.driver);
    let call = || scene.call(LONG);
    let words = |error: DriverError| error.to_string();
    patiently(scene, row, async |call| driver.quiesce(call).await).await.map_err(words)?;
    let device = scene.over.device();
    let open = bmc.world().sessions(device, bmc.now());
    if open > 0 && !row.leaves {
        return Err(format!("{open} sessions are open"));
    }
    let order = scene.orders.unhold(found).await.expect("an order");
    driver.disengage_hold(&order, &call()).await.map_err(words)?;
    let mut last = String::new();
    let (until, mut tries) = (Instant::now() + HANG, 0);
    while if row.waits.is_empty() { Instant::now() < until } else { tries < READINGS } {
        tries += 1;
        // In the session in which power was read.
        if let Err(error) = driver.read_power(&call()).await {
            last = words(error);
        }
        let order = scene.orders.on_in(driver.session()).await.expect("an order");
        match driver.power_on(order, &call()).await {
            Ok(_) => tokio::time::sleep(PAUSE).await,
            Err(error) => last = words(error),
        }
        if bmc.is_on() {
            return Ok(());
        }
    }
    Err(format!("it does not come on: {last}"))
}
