//! Hashes of texts. Output of each: at most 128 bytes.

use super::{all, converter, required};
use crate::machine::Machine;
use crate::md5::md5;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Value};
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};
use tidegate_wire::json::write;

pub(super) static CONVERTERS: &[&Signature] = &[
    &FNV_HASH,
    &MD5_HASH,
    &MURMUR3_HASH,
    &MURMUR3_HASH_128,
    &SHA1_HASH,
    &SHA256_HASH,
    &SHA512_HASH,
    &XXH3_HASH,
    &XXH128_HASH,
];

const TARGET: [Parameter; 1] = [required("target", Type::Text)];

static FNV_HASH: Signature = converter("FNV", &TARGET, Type::Int, |machine, arguments| {
    let [target] = all(arguments)?;
    let target = machine.text(target)?;
    Ok(Value::Int(fnv1a(machine.memory.get(target)).cast_signed()))
});

static MD5_HASH: Signature = converter("MD5", &TARGET, Type::Text, |machine, arguments| {
    hexadecimal(machine, arguments, |bytes, hash| {
        let digest = md5(bytes);
        hash.split_at_mut(digest.len()).0.copy_from_slice(&digest);
        digest.len()
    })
});

static SHA1_HASH: Signature = converter("SHA1", &TARGET, Type::Text, |machine, arguments| {
    hexadecimal(machine, arguments, |bytes, hash| sha(&SHA1_FOR_LEGACY_USE_ONLY, bytes, hash))
});

static SHA256_HASH: Signature = converter("SHA256", &TARGET, Type::Text, |machine, arguments| {
    hexadecimal(machine, arguments, |bytes, hash| sha(&SHA256, bytes, hash))
});

static SHA512_HASH: Signature = converter("SHA512", &TARGET, Type::Text, |machine, arguments| {
    hexadecimal(machine, arguments, |bytes, hash| sha(&SHA512, bytes, hash))
});

static XXH3_HASH: Signature = converter("XXH3", &TARGET, Type::Text, |machine, arguments| {
    hexadecimal(machine, arguments, |bytes, hash| put(hash, &xxhash_rust::xxh3::xxh3_64(bytes).to_be_bytes()))
});

static XXH128_HASH: Signature = converter("XXH128", &TARGET, Type::Text, |machine, arguments| {
    hexadecimal(machine, arguments, |bytes, hash| {
        put(hash, &xxhash_rust::xxh3::xxh3_128(bytes).to_be_bytes())
    })
});

static MURMUR3_HASH: Signature = converter("Murmur3Hash", &TARGET, Type::Text, |machine, arguments| {
    hexadecimal(machine, arguments, |bytes, hash| put(hash, &murmur3(bytes).to_le_bytes()))
});

static MURMUR3_HASH_128: Signature =
    converter("Murmur3Hash128", &TARGET, Type::Text, |machine, arguments| {
        hexadecimal(machine, arguments, |bytes, hash| {
            let [one, two] = murmur3_128(bytes);
            put(hash, &(u128::from(two) << 64 | u128::from(one)).to_le_bytes())
        })
    });

/// The text's hash, which `hash` writes to the array and gives the length of, in hexadecimal digits.
fn hexadecimal(
    machine: &mut Machine<'_>,
    arguments: &[Argument],
    hash: impl FnOnce(&[u8], &mut [u8; 64]) -> usize,
) -> Result<Value, Failure> {
    let [target] = all(arguments)?;
    let target = machine.text(target)?;
    let mut bytes = [0; 64];
    let len = hash(machine.memory.get(target), &mut bytes);
    let mark = machine.memory.mark();
    let (_, mut room) = machine.memory.split();
    write::hex(bytes.get(..len).unwrap_or_default(), &mut room)?;
    Ok(Value::Text(machine.memory.since(mark)))
}

fn put<const N: usize>(hash: &mut [u8; 64], bytes: &[u8; N]) -> usize {
    hash.split_at_mut(N).0.copy_from_slice(bytes);
    N
}

fn sha(algorithm: &'static Algorithm, bytes: &[u8], hash: &mut [u8; 64]) -> usize {
    let digest = digest(algorithm, bytes);
    let len = digest.as_ref().len();
    hash.split_at_mut(len).0.copy_from_slice(digest.as_ref());
    len
}

/// FNV-1a of 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// MurmurHash3 x86 of 32 bits with the seed 0: <https://github.com/aappleby/smhasher>.
fn murmur3(bytes: &[u8]) -> u32 {
    let scramble = |word: u32| word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash ^= scramble(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let rest = tail.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    hash ^= scramble(rest);
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// MurmurHash3 x64 of 128 bits with the seed 0, its halves in order.
fn murmur3_128(bytes: &[u8]) -> [u64; 2] {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let first = |word: u64| word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let second = |word: u64| word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let halves = |block: u128| [block as u64, (block >> 64) as u64];
    let (blocks, tail) = bytes.as_chunks::<16>();
    let (mut one, mut two) = (0_u64, 0_u64);
    for block in blocks {
        let [low, high] = halves(u128::from_le_bytes(*block));
        one = (one ^ first(low)).rotate_left(27).wrapping_add(two).wrapping_mul(5).wrapping_add(0x52dc_e729);
        two =
            (two ^ second(high)).rotate_left(31).wrapping_add(one).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let [low, high] = halves(tail.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte)));
    let len = bytes.len() as u64;
    one ^= first(low) ^ len;
    two ^= second(high) ^ len;
    let mix = |mut word: u64| {
        word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        word ^ word >> 33
    };
    one = one.wrapping_add(two);
    two = two.wrapping_add(one);
    (one, two) = (mix(one), mix(two));
    one = one.wrapping_add(two);
    [one, two.wrapping_add(one)]
}
