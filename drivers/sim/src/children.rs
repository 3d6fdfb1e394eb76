//! Machines that run on other machines: what takes the parent away takes them away, and whoever places them says where they are.

use picket_core::time::BootTime;
use serde::{Deserialize, Serialize};

use crate::wire::{Response, Trouble, Verb};
use crate::world::World;

/// Where a machine runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildPlacement {
    /// The parent, and what its owner calls it.
    pub(crate) on: String,
    /// A migration or an evacuation that is open.
    pub(crate) moving: Option<String>,
}

/// What happens to a child's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Moving {
    /// A migration or an evacuation is opened, in words.
    Begins(String),
    /// It ends where it began.
    Ends,
    /// The child runs on another parent now, and is on there: a live migration, or an evacuation that was carried out.
    Arrives(String),
}

impl World {
    /// The machine runs on `parent` from now on.
    pub fn set_parent(&mut self, child: &str, parent: &str) -> &mut Self {
        let _ = (self.machine(child), self.machine(parent));
        self.places.insert(child.to_owned(), ChildPlacement { on: parent.to_owned(), moving: None });
        self.fall_with_parents("its parent");
        self
    }

    pub(crate) fn moves(&mut self, child: &str, moving: Moving) {
        let now = self.now;
        match moving {
            Moving::Begins(why) => self.place_mut(child).moving = Some(why),
            Moving::Ends => self.place_mut(child).moving = None,
            Moving::Arrives(on) => {
                let runs = self.machine(&on).is_on();
                *self.place_mut(child) = ChildPlacement { on, moving: None };
                match runs {
                    true => self.machine_mut(child).switch(Verb::On, now, "its new parent"),
                    false => self.fall_with_parents("its parent"),
                }
            }
        }
    }

    fn place_mut(&mut self, child: &str) -> &mut ChildPlacement {
        self.places.get_mut(child).unwrap_or_else(|| panic!("{child:?} runs on no other machine"))
    }

    /// Whether a machine runs on another one.
    pub fn is_child(&self, machine: &str) -> bool {
        self.places.contains_key(machine)
    }

    /// Whether the machine's parent is off: then nobody can say how it is, or change it.
    pub(crate) fn is_orphaned(&self, machine: &str) -> bool {
        self.places.get(machine).is_some_and(|place| !self.machine(&place.on).is_on())
    }

    /// Whatever runs on a machine that is off is off.
    pub(crate) fn fall_with_parents(&mut self, by: &str) {
        if self.places.is_empty() {
            return;
        }
        let now: BootTime = self.now;
        let falling: Vec<String> =
            self.places.keys().filter(|child| self.is_orphaned(child)).cloned().collect();
        for child in falling {
            self.machine_mut(&child).switch(Verb::Off, now, by);
        }
    }

    pub(crate) fn placement(&self, device: &str) -> Result<Response, Trouble> {
        let place = self.places.get(&self.device(device).machine).ok_or(Trouble::Unsupported)?;
        Ok(Response::Placed { host: place.on.clone(), moving: place.moving.clone() })
    }
}
