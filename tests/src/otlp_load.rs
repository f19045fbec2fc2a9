//! Ordinary load for whole-program tests.

use crate::SOON;
use tidegate_load::OnRefused;
use tidegate_load::otlp::{OtlpProfile, Signal, Transport};

/// So many requests of 50 items each, on one connection of gRPC, each sent again until it is accepted.
pub fn otlp_profile(signal: Signal, requests: u64) -> OtlpProfile {
    OtlpProfile {
        transport: Transport::Grpc,
        signal,
        connections: 1,
        requests,
        items: 50,
        on_refused: OnRefused::Retry { at_most: SOON },
        ..OtlpProfile::default()
    }
}
