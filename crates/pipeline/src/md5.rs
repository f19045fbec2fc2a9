//! MD5 (RFC 1321), for `hashmod` of relabeling and the converter `MD5`: a hash that others expect, no protection.

/// The sines of the RFC: `floor(2^32 * |sin(i + 1)|)`.
const SINES: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The hash of `bytes`.
pub(crate) fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        mix(&mut state, block);
    }
    // The rest, a bit that is set, zeros, and the number of bits: in one block or two.
    let mut last = [0; 128];
    let len = if rest.len() < 56 { 64 } else { 128 };
    for (place, byte) in last.iter_mut().zip(rest.iter().chain(&[0x80])) {
        *place = *byte;
    }
    let bits = (bytes.len() as u64).wrapping_mul(8).to_le_bytes();
    for (place, byte) in last.iter_mut().skip(len - 8).zip(bits) {
        *place = byte;
    }
    for block in last.as_chunks::<64>().0.iter().take(len / 64) {
        mix(&mut state, block);
    }
    let mut hash = [0; 16];
    for (place, word) in hash.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_le_bytes();
    }
    hash
}

fn mix(state: &mut [u32; 4], block: &[u8; 64]) {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for (step, sine) in SINES.iter().enumerate() {
        let (mixed, place) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(*sine).wrapping_add(words[place % 16]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(ROTATIONS[step / 16][step % 4])));
    }
    for (word, mixed) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(mixed);
    }
}

#[cfg(test)]
mod tests {
    use super::md5;

    /// RFC 1321, section A.5, and lengths around the ends of blocks against `md5sum`.
    #[test]
    fn hashes_as_the_rfc_does() {
        for (text, hash) in [
            (String::new(), "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc".into(), "900150983cd24fb0d6963f7d28e17f72"),
            ("abcdefghijklmnopqrstuvwxyz".into(), "c3fcd3d76192e4007dfb496cca67e13b"),
            ("1234567890".repeat(8), "57edf4a22be3c955ac49da2e2107b67a"),
            ("a".repeat(55), "ef1772b6dff9a122358552954ad0df65"),
            ("a".repeat(56), "3b0c8ac703f828b04c6c197006d17218"),
            ("a".repeat(64), "014842d480b571495a4a0363793f7367"),
            ("a".repeat(119), "8a7bd0732ed6a28ce75f6dabc90e1613"),
        ] {
            let found: String = md5(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hash, "{} bytes", text.len());
        }
    }
}
