//! Files of credentials, `Authorization` headers and certificates: any bytes are read or refused, and nothing is let
//! in that does not present what the file keeps a hash of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_admission::access::{Credentials, MAX_CREDENTIAL_BYTES, PresentedCredentials, presented};

fuzz_target!(|input: &[u8]| {
    let Some((what, bytes)) = input.split_first() else { return };
    match what % 3 {
        0 => {
            if let Err(mistakes) = Credentials::parse(bytes) {
                assert!(mistakes.lines().count() <= 20 && mistakes.len() < 8 << 10);
            }
        }
        1 => {
            let mut scratch = [0; MAX_CREDENTIAL_BYTES];
            match presented(bytes, &mut scratch) {
                None => {}
                Some(PresentedCredentials::Token(token)) => {
                    assert!(!token.is_empty() && token.iter().all(u8::is_ascii_graphic));
                }
                Some(PresentedCredentials::Basic(name, _) | PresentedCredentials::ApiKey(name, _)) => {
                    assert!(!name.contains(&b':'))
                }
            }
        }
        _ => {
            if let Some(names) = tidegate_tls::certificate(bytes) {
                let all =
                    names.common_name.iter().chain(&names.organizations).chain(&names.organizational_units);
                for name in all {
                    assert!((1..=150).contains(&name.len()) && !name.chars().any(char::is_control));
                }
            }
        }
    }
});
