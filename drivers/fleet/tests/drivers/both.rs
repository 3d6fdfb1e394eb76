//! One board that is spoken to over both protocols, as two devices of one level (S11).

use std::sync::Arc;
use std::time::Duration;

use picket_core::power::Power;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, HoldReport, PowerDriver};
use picket_driver_sim::{Act, Fault, RestorePolicy};
use serde_json::json;
use tokio::time::Instant;

use crate::scene::{Board, MACHINE, Over};
use crate::table::Believes;

/// Longer than any answer takes: it ends a test that hangs.
const LONG: Duration = Duration::from_secs(60);

/// What a power supply bridges.
const BRIDGED: Duration = Duration::from_millis(10);

struct Device {
    driver: Arc<dyn PowerDriver>,
    orders: Orders,
}

impl Device {
    async fn of(board: &Board, over: Over) -> Self {
        let driver = board.driver(over, Believes::Authority, &json!({}));
        let orders = Orders::new(driver.traits(), board.clock.clone()).await.expect("orders");
        Self { driver, orders }
    }

    fn call(&self, board: &Board) -> Call {
        Call::control(Instant::now() + LONG, board.clock.clone(), self.orders.permit())
    }

    async fn hold(&self, board: &Board) -> HoldReport {
        let found = self.driver.inspect_hold(&self.call(board)).await.expect("an answer");
        let order = self.orders.hold(&found).await.expect("an order");
        self.driver.engage_hold(&order, &self.call(board)).await.expect("an answer")
    }

    /// What a person's check tells.
    async fn remarks(&self, board: &Board) -> String {
        let call = Call::reading(Instant::now() + LONG, board.clock.clone());
        self.driver.inspect_hold(&call).await.expect("an answer");
        self.driver.remarks().join("; ")
    }

    /// Its session is lost with the mains, which a call finds out at its end.
    async fn power(&self, board: &Board) -> Power {
        let until = Instant::now() + LONG;
        loop {
            let call = Instant::now() + Duration::from_secs(3);
            let call = Call::control(call, board.clock.clone(), self.orders.permit());
            match self.driver.read_power(&call).await {
                Ok(reading) => return reading.power,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        }
    }
}

/// Its mains fail for longer than its power supply bridges, and come back.
async fn cut_the_mains(board: &Board) {
    board.bmc.happen(Act::LoseMains { machine: MACHINE.to_owned() });
    tokio::time::sleep(10 * BRIDGED).await;
    assert!(!board.bmc.is_on(), "it has no power");
    board.bmc.happen(Act::RestoreMains { machine: MACHINE.to_owned() });
}

#[tokio::test]
async fn a_board_whose_restore_policy_is_the_bios_s_over_redfish_is_held_over_ipmi() {
    let board = Board::start().await;
    board.bmc.fault(Fault::HoldsAsIdrac);
    board.bmc.world().set_restore(MACHINE, RestorePolicy::AlwaysOn).set_hold_up(MACHINE, BRIDGED);
    let restore = || board.bmc.world().hold(MACHINE).restore;
    let (redfish, ipmi) = (Device::of(&board, Over::Redfish).await, Device::of(&board, Over::Ipmi).await);

    let none = redfish.hold(&board).await;
    assert!(none.engaged.is_empty() && none.detail.contains("PowerRestorePolicy"), "{none:?}");
    let remarks = redfish.remarks(&board).await;
    assert!(remarks.contains("AcPwrRcvry is \"On\""), "{remarks}");
    assert_eq!(restore(), RestorePolicy::AlwaysOn, "over Redfish nothing is changed");

    let found = ipmi.driver.inspect_hold(&ipmi.call(&board)).await.expect("an answer");
    let report = ipmi.hold(&board).await;
    assert!(report.engaged.iter().any(|held| held == "restore policy always-off"), "{report:?}");
    assert_eq!(restore(), RestorePolicy::AlwaysOff);
    assert_eq!(redfish.remarks(&board).await, "", "the other device sees it, too");

    let off = redfish.orders.off().await.expect("an order");
    redfish.driver.power_off(&off, &redfish.call(&board)).await.expect("taken");
    cut_the_mains(&board).await;
    assert!(!board.bmc.is_on(), "it is kept off");
    assert_eq!((redfish.power(&board).await, ipmi.power(&board).await), (Power::Off, Power::Off));

    let order = ipmi.orders.unhold(&found).await.expect("an order");
    let report = ipmi.driver.disengage_hold(&order, &ipmi.call(&board)).await.expect("put back");
    assert_eq!(report.detail, "");
    assert_eq!(restore(), RestorePolicy::AlwaysOn);
    cut_the_mains(&board).await;
    assert!(board.bmc.is_on(), "nothing keeps it off");
}
