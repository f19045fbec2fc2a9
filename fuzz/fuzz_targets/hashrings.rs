//! Files of hashrings and names of tenants: any file is read or refused, and any tenant has as many members as replicas, which
//! its explanation names too, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_ring::{Algorithm, MultiRing, RingSettings, parse_hashrings};

/// Rings of more endpoints take too long to build.
const MOST_ENDPOINTS: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Some((&first, rest)) = input.split_first() else { return };
    let (tenant, file) = rest.split_at(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()));
    let (Ok(tenant), Ok(configs)) = (std::str::from_utf8(tenant), parse_hashrings(file)) else { return };
    let replication = usize::from(first % 8);
    let algorithm = if first & 8 == 0 { Algorithm::Ketama } else { Algorithm::Hashmod };
    let settings = RingSettings { algorithm, replication, cached_tenants: 4 };
    if configs.iter().map(|config| config.endpoints.len()).sum::<usize>() > MOST_ENDPOINTS {
        return;
    }
    _ = MultiRing::warnings(&configs, &settings);
    let Ok(rings) = MultiRing::new(&configs, &settings) else { return };
    let Ok(ring) = rings.for_tenant(tenant) else {
        assert!(rings.explain(tenant, 0).is_err());
        return;
    };
    for hash in [0, u64::MAX, u64::from_le_bytes([first; 8])] {
        let members = ring.members(hash);
        assert_eq!(members.len(), replication);
        let explained = rings.explain(tenant, hash).expect("the tenant has a ring");
        assert!(explained.replicas.iter().map(|replica| replica.member).eq(members.iter().copied()));
    }
});
