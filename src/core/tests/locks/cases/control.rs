// compiles
//! What everybody may do: look at a step, save it, open it with its own proof.
use picket_core::election::Leadership;
use picket_core::step::{Landed, Saved, Step, save};
use picket_core::store::{Store, StoreError};

pub async fn right(store: &dyn Store, leadership: &Leadership, step: &Step) -> Result<Landed, StoreError> {
    let saved: Saved = save(store, leadership, step).await?;
    Ok(step.open(saved))
}

fn main() {}
