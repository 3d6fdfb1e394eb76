// error E0277
fn readable<T: serde::de::DeserializeOwned>() {}

fn main() {
    readable::<picket_core::order::OffOrder>();
}
