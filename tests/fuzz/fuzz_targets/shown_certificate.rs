#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| picket_fuzz::run("shown_certificate", data));
