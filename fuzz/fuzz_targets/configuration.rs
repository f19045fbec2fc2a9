//! Any text is a configuration or a list of mistakes; and what was read, written out as it is in effect, reads back
//! as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_config::{effective, parse};

fuzz_target!(|text: &str| {
    let environment = |name: &str| (name == "SECRET").then(|| "hunter2".to_owned());
    match parse("fuzz.yaml", text, &environment) {
        Ok(config) => {
            let written = effective(&config);
            // Secrets are masked when they are written, so it is the text that must be the same.
            let again = parse("effective.yaml", &written, &|_| None);
            let again = again.unwrap_or_else(|errors| panic!("{written}\ndoes not read back: {errors}"));
            assert_eq!(effective(&again), written);
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
});
