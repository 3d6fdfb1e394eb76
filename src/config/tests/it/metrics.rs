//! Where metrics may be read.

use crate::common::*;

/// They tell names of nodes to whoever asks.
#[test]
fn metrics_beyond_the_loopback_want_a_word_that_says_so() {
    for address in ["0.0.0.0:9469", "192.0.2.7:9469", "[::]:9469"] {
        let beyond = format!("{GOOD}\n[metrics]\nlisten = {address:?}\n");
        let faults = Home::with(&beyond).faults(&[]);
        let [only] = faults.as_slice() else { panic!("{faults:#?}") };
        assert!(only.contains("metrics.listen: ") && only.contains("is not of the loopback"), "{only}");
        let public = Home::with(&format!("{beyond}public = true\n")).load().expect("good settings");
        assert_eq!(public.metrics.listen, address.parse().ok());
    }
    for address in ["127.0.0.1:9469", "[::1]:9469"] {
        let settings =
            Home::with(&format!("{GOOD}\n[metrics]\nlisten = {address:?}\n")).load().expect("good");
        assert_eq!(settings.metrics.listen, address.parse().ok());
    }
    assert_eq!(Home::with(GOOD).load().expect("good").metrics.listen, None);
}
