// error E0451
use picket_core::receipt::{ReceiptOrder, Statement};

pub fn forged(statement: Statement, other: ReceiptOrder) -> ReceiptOrder {
    ReceiptOrder { statement, ..other }
}

fn main() {}
