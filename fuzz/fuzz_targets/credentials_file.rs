//! A file of credentials, whatever is in it: it is read or refused with at most twenty lines; and whoever is let in by it
//! presents what it keeps a hash of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::{IpAddr, Ipv4Addr};
use tidegate_admission::access::{Access, Credentials};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The digest of `token`.
const DIGEST: &str = "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0";

fuzz_target!(|input: &[u8]| {
    match Credentials::parse(input) {
        Err(mistakes) => assert!(mistakes.lines().count() <= 20 && mistakes.len() < 8 << 10),
        Ok(credentials) => {
            let access = Access::from_credentials(credentials).expect("random numbers");
            let hash_is_there = String::from_utf8_lossy(input).to_ascii_lowercase().contains(DIGEST);
            for authorization in ["Bearer token", "token", "Basic YTp0b2tlbg==", "ApiKey YTp0b2tlbg=="] {
                let _waits = access.prepare(Some(authorization.as_bytes()), PEER);
                if access.check(Some(authorization.as_bytes()), None, PEER).is_ok() {
                    assert!(hash_is_there, "{authorization} is let in by a file without its hash");
                }
            }
        }
    }
});
