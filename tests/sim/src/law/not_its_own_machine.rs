//! S17: no gateway switches the machine off on which it stands, whoever else is there.

use picket_driver_sim::Verb;

use super::{Invariant, Past};
use crate::trace::{Control, Event, What};

#[derive(Debug)]
pub(super) struct NotItsOwnMachine;

impl Invariant for NotItsOwnMachine {
    fn name(&self) -> &'static str {
        "not_its_own_machine"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Permitted { gateway, device, control: Control::Power(Verb::Off) }
                if past.shape.stands_on(*gateway) == Some(past.shape.owner(device).name.as_str()) =>
            {
                Err(format!("g{gateway} is about to switch {device} off, and stands on that machine"))
            }
            _ => Ok(()),
        }
    }
}
