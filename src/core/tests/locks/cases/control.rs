// compiles
//! What everybody may do: look at a step, save it, open it with its own proof.
use picket_core::election::Leadership;
use picket_core::order::Opened;
use picket_core::step::{Saved, Step, save};
use picket_core::store::{Store, StoreError, Stored};

pub async fn right(store: &dyn Store, leadership: &Leadership, step: Step) -> Result<(Stored, Vec<Opened>), StoreError> {
    let saved: Saved = save(store, leadership, &step).await?;
    Ok(step.open(saved))
}

fn main() {}
