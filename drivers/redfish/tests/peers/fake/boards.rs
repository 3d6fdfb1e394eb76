//! What boards say of the time after a power cut elsewhere than in `PowerRestorePolicy`.

use serde_json::{Value, json};

use super::{Reply, SYSTEM};

/// Whether a change waits for the next reboot of the machine, which the answer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// It is so at once.
    #[default]
    No,
    /// It waits, and reads so at once.
    Shown,
    /// It waits, and reads so after that.
    Hidden,
}

/// Such a board.
#[derive(Debug, Default)]
pub struct Board {
    /// An iLO, by the name that it has among `Oem`: `Hp` or `Hpe`.
    pub ilo: Option<&'static str>,
    /// Its `PowerAutoOn`.
    pub auto_on: &'static str,
    /// Its `PowerOnDelay`, which it clears where the machine remains off.
    pub delay: Option<&'static str>,
    /// When a change takes effect.
    pub waits: Waits,
    /// What the next reboot brings.
    pub next: Option<Mode>,
    /// The attributes of its BIOS.
    pub bios: Option<Value>,
}

/// `PowerAutoOn`, and `PowerOnDelay`.
type Mode = (&'static str, Option<&'static str>);

const MODES: [&str; 3] = ["RemainOff", "PowerOn", "Restore"];
const DELAYS: [&str; 3] = ["Minimum", "30Sec", "RandomUpTo120Sec"];

impl Board {
    /// An iLO that starts its machine half a minute after power came back.
    pub fn ilo(name: &'static str) -> Self {
        Self { ilo: Some(name), auto_on: "PowerOn", delay: Some("30Sec"), ..Self::default() }
    }

    /// What it says.
    pub fn says(&self) -> Mode {
        (self.auto_on, self.delay)
    }

    /// The machine starts anew.
    pub fn reboot(&mut self) {
        (self.auto_on, self.delay) = self.next.take().unwrap_or(self.says());
    }

    /// What the system says besides.
    pub fn tell(&self, system: &mut Value) {
        if let Some(name) = self.ilo {
            system["Oem"][name] = json!({ "PowerAutoOn": self.auto_on, "PowerOnDelay": self.delay });
        }
        if self.bios.is_some() {
            system["Bios"] = json!({ "@odata.id": format!("{SYSTEM}/Bios") });
        }
    }

    /// A change of the system that is its own; `None`: it is none.
    pub fn change(&mut self, body: &Value) -> Option<Reply> {
        let said = body["Oem"].get(self.ilo?)?;
        let known = |list: &[&'static str], key| list.iter().copied().find(|one| said[key] == *one);
        let (mode, delay) = (known(&MODES, "PowerAutoOn"), known(&DELAYS, "PowerOnDelay"));
        // As it refuses what it does not know: nothing is changed.
        if mode.is_none() || delay.is_none() && said.get("PowerOnDelay").is_some() {
            let message = json!({ "MessageId": "Base.1.4.PropertyValueNotInList" });
            return Some(Reply::json(400, json!({ "error": { "@Message.ExtendedInfo": [message] } })));
        }
        let mode = mode.unwrap_or_default();
        self.next = Some((mode, (mode != "RemainOff").then(|| delay.unwrap_or("Minimum"))));
        if self.waits != Waits::Hidden {
            self.reboot();
        }
        let id = match self.waits {
            Waits::No => "Base.1.4.Success",
            Waits::Shown | Waits::Hidden => "iLO.2.14.SystemResetRequired",
        };
        let message = json!({ "MessageId": id });
        Some(Reply::json(200, json!({ "error": { "@Message.ExtendedInfo": [message] } })))
    }
}
