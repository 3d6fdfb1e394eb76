use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::{DeviceClass, Grade, MaxInFlight};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::power::{Power, Reading};
use picket_driver::{Accepted, Effect, HoldFound, HoldReport, Identified, Traits};
use picket_engine::clock::SystemClock;

use super::*;

/// Notes what it was asked, and whether the call could have sent anything.
#[derive(Debug)]
struct Noting {
    traits: Traits,
    asked: Mutex<Vec<(&'static str, bool)>>,
    /// It refuses the login.
    refuses: bool,
}

impl Noting {
    fn new(refuses: bool) -> Self {
        let traits = Traits {
            class: DeviceClass::Host,
            grade: Grade::Observed,
            has_epochs: true,
            max_in_flight: MaxInFlight { off: None, on: None },
            call: Duration::from_secs(5),
            endpoint: "noting 1".to_owned(),
        };
        Self { traits, asked: Mutex::default(), refuses }
    }

    fn note(&self, what: &'static str, call: &Call) {
        let mut asked = self.asked.lock();
        asked.push((what, call.may_send().is_ok()));
    }

    fn asked(&self) -> Vec<(&'static str, bool)> {
        self.asked.lock().clone()
    }
}

fn refused() -> DriverError {
    DriverError::new(ErrorKind::Authentication, Effect::DidNotHappen, "the password is wrong")
}

#[async_trait]
impl PowerDriver for Noting {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        self.note("power", call);
        if self.refuses {
            return Err(refused());
        }
        let now = call.now();
        Ok(Reading {
            power: Power::On,
            asked_at: now,
            answered_at: now,
            epoch: None,
            said: String::new(),
            lowered_by: None,
        })
    }

    async fn power_off(&self, _: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.note("off", call);
        Err(refused())
    }

    async fn power_on(&self, _: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        self.note("on", call);
        Err(refused())
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        self.note("identity", call);
        Ok(Identified::default())
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        self.note("hold", call);
        Ok(HoldFound::from([("restore_policy".to_owned(), "previous".to_owned())]))
    }

    fn engaged(&self, _: &HoldFound) -> Vec<String> {
        Vec::new()
    }

    async fn engage_hold(&self, _: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.note("engage", call);
        Err(refused())
    }

    async fn disengage_hold(&self, _: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        self.note("disengage", call);
        Err(refused())
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        self.note("close", call);
        Ok(())
    }
}

async fn asked_of(driver: &Noting) -> DeviceAnswer {
    let context = Context { clock: Arc::new(SystemClock), random: Arc::new(|_: &mut [u8]| {}) };
    ask(driver, Duration::from_secs(5), &context).await
}

#[tokio::test]
async fn a_device_is_asked_by_calls_that_may_only_read() {
    let driver = Noting::new(false);
    let found = asked_of(&driver).await;
    assert!(found.fault.is_none() && found.power == Some(json!("on")), "{found:?}");
    assert_eq!(driver.asked(), [("power", false), ("identity", false), ("hold", false), ("close", false)]);
}

#[tokio::test]
async fn a_device_that_refuses_the_login_is_asked_once() {
    let driver = Noting::new(true);
    let found = asked_of(&driver).await;
    assert_eq!(found.fault.map(|fault| fault.detail), Some("the password is wrong".to_owned()));
    assert_eq!(driver.asked(), [("power", false)]);
}

#[test]
fn an_answer_is_told_in_lines_and_a_fault_or_an_obstacle_is_not_ready() {
    let mut answer = json!({
        "node": "n1", "device": "bmc", "endpoint": "ipmi 10.0.0.7:623", "power": "on",
        "identity": { "uuid": "00ff" }, "hold": { "restore_policy": "previous" },
        "notes": ["it is slow"], "obstacles": [], "fault": null,
    });
    assert!(is_ready(&answer));
    let lines = "n1/bmc: ipmi 10.0.0.7:623\n  power: on\n  uuid: 00ff\n  a hold would try to change: restore_policy previous\n  \
                 note: it is slow\n";
    assert_eq!(told_of(&answer), lines);
    answer["obstacles"] = json!(["the role ReadOnly and no other"]);
    assert!(!is_ready(&answer) && told_of(&answer).ends_with("obstacle: the role ReadOnly and no other\n"));
    answer["obstacles"] = json!([]);
    answer["fault"] = json!({ "kind": "timed_out", "detail": "no answer" });
    assert!(!is_ready(&answer) && told_of(&answer).ends_with("fault: timed out: no answer\n"));
}
