//! Rings of tenants: which one it is, what they cost, and why.

use super::*;
use crate::{Match, ShardError, ShardOverride, ShuffleSharding, TenantMatcher, Warning, series_hash};
use allocation_counter::measure;
use std::hint::black_box;

fn endpoints(count: usize, zones: usize) -> Vec<Endpoint> {
    let zone = |number: usize| if zones < 2 { String::new() } else { format!("zone-{}", number % zones) };
    (0..count).map(|number| Endpoint::new(format!("n{number}:10901")).in_zone(zone(number))).collect()
}

fn ring(tenants: &[&str], tenant_matcher: TenantMatcher, endpoints: Vec<Endpoint>) -> RingConfig {
    let tenants = tenants.iter().map(|&tenant| tenant.to_owned()).collect();
    RingConfig { tenants, tenant_matcher, endpoints, ..RingConfig::default() }
}

fn sharded(count: usize, zones: usize, shard_size: i64) -> RingConfig {
    let mut config = ring(&[], TenantMatcher::Unset, endpoints(count, zones));
    config.shuffle_sharding.shard_size = shard_size;
    config
}

fn ketama(replication: usize) -> RingSettings {
    RingSettings { algorithm: Algorithm::Ketama, replication, ..RingSettings::default() }
}

fn built(configs: &[RingConfig], settings: &RingSettings) -> MultiRing {
    MultiRing::new(configs, settings).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_first_ring_that_matches_is_the_tenants() {
    let mut exact = ring(&["a", "b"], TenantMatcher::Unset, endpoints(1, 1));
    exact.name = "first".to_owned();
    let unknown = ring(&["a", "z"], TenantMatcher::Unknown("regex".to_owned()), endpoints(1, 1));
    let glob = ring(&["team-*", "a", "["], TenantMatcher::Glob, endpoints(2, 1));
    let rings = built(&[exact, unknown, glob], &ketama(1));
    let position = |tenant| rings.for_tenant(tenant).map(|ring| ring.name().position);
    for _ in 0..2 {
        assert_eq!(position("a"), Ok(1));
        assert_eq!(position("team-7"), Ok(3));
        let error = position("z").unwrap_err();
        assert_eq!(error.to_string(), "hashring 3 has a malformed tenant pattern `[`");
    }
    let rings = built(&[ring(&["a"], TenantMatcher::Exact, endpoints(1, 1))], &ketama(1));
    assert_eq!(rings.for_tenant("b").err(), Some(Unplaced::NoRing));
}

#[test]
fn an_address_is_one_member_in_all_rings() {
    let first = ring(&["a"], TenantMatcher::Exact, endpoints(3, 3));
    let second = ring(&[], TenantMatcher::Exact, endpoints(4, 1).into_iter().rev().collect());
    let rings = built(&[first, second], &ketama(3));
    let addresses: Vec<_> = rings.members().iter().map(|member| &*member.address).collect();
    assert_eq!(addresses, ["n0:10901", "n1:10901", "n2:10901", "n3:10901"]);
    let mut members = rings.for_tenant("a").unwrap().members(7).to_vec();
    members.sort_unstable();
    assert_eq!(members, [0, 1, 2]);
}

/// A tenant that clients invent evicts another from the cache, and nothing grows.
#[test]
fn invented_tenants_take_no_memory() {
    let settings = RingSettings { cached_tenants: 16, ..ketama(2) };
    let rings = built(&[sharded(6, 3, 3)], &settings);
    let invent = |from, to| {
        measure(|| {
            for number in from..to {
                assert!(rings.for_tenant(&format!("invented-{number:0100}")).is_ok());
                assert!(rings.for_tenant(&format!("invented-{number:0200}")).is_ok());
            }
        })
    };
    let full = invent(0, 1000).bytes_current;
    assert_eq!(invent(1000, 3000).bytes_current, 0);
    assert!(full > 0);
}

/// Neither the hash, nor the tenant's ring where it is cached, nor a lookup allocates.
#[test]
fn a_lookup_allocates_nothing() {
    for config in [sharded(100, 3, 0), sharded(100, 3, 12)] {
        let rings = built(&[config], &ketama(3));
        assert!(rings.for_tenant("tenant").is_ok());
        let long = [b'x'; 3000];
        let counted = measure(|| {
            let ring = rings.for_tenant("tenant").unwrap();
            for number in 0_u64..1000 {
                let labels =
                    [(&b"__name__"[..], &b"up"[..]), (b"long", &long), (b"uid", &number.to_le_bytes())];
                black_box(ring.members(series_hash(b"tenant", labels)));
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}

/// Rings take no more than is declared before, neither while they are built nor with a full cache.
#[test]
fn the_footprint_is_an_upper_bound() {
    let mut overridden = sharded(40, 4, 8);
    let one = ShardOverride {
        shard_size: 4,
        tenants: vec!["x".repeat(50); 20],
        tenant_matcher: TenantMatcher::Exact,
    };
    overridden.shuffle_sharding.overrides = vec![one; 30];
    overridden.name = "n".repeat(200);
    let names: Vec<String> = (0..3000).map(|number| format!("tenant-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let many = ring(&names, TenantMatcher::Exact, endpoints(3, 3));
    let globs = ring(&names, TenantMatcher::Glob, endpoints(7, 2));
    let mut hashmod = ring(&[], TenantMatcher::Exact, endpoints(2000, 1));
    hashmod.algorithm = Some(Algorithm::Hashmod);
    let lists = [
        vec![sharded(1, 1, 0)],
        vec![sharded(100, 3, 12)],
        vec![overridden.clone()],
        vec![hashmod.clone()],
        vec![many, globs, overridden, hashmod],
    ];
    for configs in lists {
        for cached_tenants in [1, 100] {
            let replication = configs.iter().map(|config| config.endpoints.len().min(3)).min().unwrap_or(1);
            let settings = RingSettings { cached_tenants, ..ketama(replication) };
            let declared = MultiRing::footprint(&configs, &settings);
            let mut rings = None;
            let building = measure(|| rings = Some(built(&configs, &settings)));
            let rings = rings.unwrap();
            let filling = measure(|| {
                for number in 0..2000 {
                    assert!(rings.for_tenant(&format!("{number:0>120}")).is_ok());
                }
            });
            let (peak, held) = (building.bytes_max, building.bytes_current + filling.bytes_current);
            assert!(peak <= declared.building as u64, "{peak} {declared:?}");
            assert!(held <= declared.resident as i64, "{held} {declared:?}");
        }
    }
}

/// The declared memory is near to the truth where it is large.
#[test]
fn a_large_ring_is_declared_closely() {
    let configs = [sharded(100, 3, 0)];
    let declared = MultiRing::footprint(&configs, &ketama(3));
    let held = measure(|| std::mem::forget(built(&configs, &ketama(3)))).bytes_current as usize;
    assert!(declared.resident * 3 < held * 4, "{declared:?} {held}");
}

#[test]
fn shards_that_cannot_be_are_refused_for_their_tenant() {
    let mut config = sharded(4, 2, 2);
    let one = |tenant: &str, shard_size| ShardOverride {
        shard_size,
        tenants: vec![tenant.to_owned()],
        tenant_matcher: TenantMatcher::Glob,
    };
    config.shuffle_sharding.overrides = vec![one("lar*", 5), one("small", 0), one("[", 1), one("neg", -3)];
    let rings = built(&[config.clone()], &ketama(2));
    let error = |tenant| rings.for_tenant(tenant).err().map(|error| error.to_string());
    let large = "hashring 1: a shard takes 3 endpoints of availability zone `zone-0`, which has 2";
    assert_eq!(error("large").as_deref(), Some(large));
    let few = "hashring 1: the tenant's shard has 0 endpoints, fewer than the replication factor 2";
    assert_eq!((error("small").as_deref(), error("neg").as_deref()), (Some(few), Some(few)));
    assert_eq!(error("other"), None);

    // A shard of four takes one endpoint of one zone and three of the other, unless it takes two of each or all of one.
    let mut config = sharded(8, 2, 4);
    config.shuffle_sharding.zone_awareness_disabled = true;
    let rings = built(&[config], &ketama(4));
    let (mut placed, mut refused) = (0, 0);
    for number in 0..50 {
        match rings.for_tenant(&format!("tenant-{number}")) {
            Ok(ring) => placed += usize::from(ring.members(number).len() == 4),
            Err(Unplaced::Shard {
                source: ShardError::UnevenZones { possible: 3, replication: 4 }, ..
            }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(placed > 5 && refused > 5 && placed + refused == 50, "{placed} {refused}");
}

#[test]
fn an_explanation_agrees_with_the_placement() {
    let mut first = sharded(20, 2, 6);
    first.tenants = vec!["team-*".to_owned()];
    first.tenant_matcher = TenantMatcher::Glob;
    first.shuffle_sharding.overrides = vec![
        ShardOverride { shard_size: 2, ..ShardOverride::default() },
        ShardOverride {
            shard_size: 4,
            tenants: vec!["team-4".to_owned()],
            tenant_matcher: TenantMatcher::Exact,
        },
    ];
    let second = RingConfig {
        algorithm: Some(Algorithm::Hashmod),
        ..ring(&["h"], TenantMatcher::Exact, endpoints(3, 1))
    };
    let rings = built(&[first, second, sharded(5, 3, 0)], &ketama(2));
    for (tenant, matched, shard) in [
        ("team-1", Match::Glob("team-*".to_owned()), Some((6, None))),
        ("team-4", Match::Glob("team-*".to_owned()), Some((4, Some(2)))),
        ("h", Match::Exact, None),
        ("other", Match::Everyone, None),
    ] {
        for hash in [0, 1 << 63, u64::MAX, 0x1234_5678_9ABC_DEF0] {
            let explanation = rings.explain(tenant, hash).unwrap();
            let members: Vec<u16> = explanation.replicas.iter().map(|replica| replica.member).collect();
            assert_eq!(members, *rings.for_tenant(tenant).unwrap().members(hash));
            assert_eq!((&explanation.matched, explanation.hash), (&matched, hash));
            let found = explanation.shard.as_ref().map(|shard| (shard.size, shard.override_position));
            assert_eq!(found, shard);
            if let Some(shard) = &explanation.shard {
                assert_eq!(shard.endpoints.len() as i64, shard.size);
                assert!(explanation.replicas.iter().all(|replica| shard.endpoints.contains(replica)));
            }
            match &explanation.section {
                Some(section) => {
                    assert_eq!(Some(&section.owner), explanation.replicas.first());
                    let key = format!("{}:{}", section.owner.address, section.number.unwrap());
                    assert_eq!(crate::hash_bytes(key.as_bytes()), section.hash);
                    assert!(section.position < section.of && section.of == explanation.endpoints * 1000);
                }
                None => assert_eq!(explanation.algorithm, Algorithm::Hashmod),
            }
        }
    }
}

#[test]
fn warnings_name_what_thanos_ignores() {
    let mut first = ring(&["a["], TenantMatcher::Glob, vec![Endpoint::new("n"); 2]);
    first.algorithm = Some(Algorithm::Unknown("rendezvous".to_owned()));
    first.shuffle_sharding =
        ShuffleSharding { overrides: vec![ShardOverride::default()], ..ShuffleSharding::default() };
    let second = ring(&["a"], TenantMatcher::Unknown("regex".to_owned()), endpoints(1, 1));
    let configs = [first, second, sharded(1, 1, 0), sharded(1, 1, 0)];
    let warnings: Vec<String> =
        MultiRing::warnings(&configs, &ketama(1)).iter().map(Warning::to_string).collect();
    assert_eq!(
        warnings,
        [
            "hashring 1: the algorithm `rendezvous` is unknown, so hashmod is used",
            "hashring 1: the tenant pattern `a[` is malformed",
            "hashring 1: override 1 of the shard size has no `tenant_matcher_type`, so it is ignored",
            "hashring 1: the address n is listed twice, so it may hold two replicas of a key",
            "hashring 2: the tenant matcher `regex` is unknown, so its tenants never match",
            "hashring 4 is never used, because hashring 3 before it is for all tenants",
        ]
    );
}
