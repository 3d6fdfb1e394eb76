// error E0624
use picket_core::ids::EffectId;
use picket_core::ledger::Ledger;

pub fn forgets(ledger: &mut Ledger, effect: EffectId) -> bool {
    ledger.close(effect)
}

fn main() {}
