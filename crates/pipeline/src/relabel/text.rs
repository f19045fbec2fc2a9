//! Texts that rules make: other cases, hashes, numbers.

/// Lower case, letter by letter as Go's `strings.ToLower` does it.
pub(super) fn lower(c: char) -> char {
    let mut mapped = c.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        // The only one whose full mapping has more: İ.
        _ => 'i',
    }
}

/// Upper case, letter by letter as Go's `strings.ToUpper` does it.
pub(super) fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    if let (Some(one), None) = (mapped.next(), mapped.next()) {
        return one;
    }
    // Where the full mapping is several letters, the simple one is the letter itself or its title case.
    let title = match c {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => 0,
    };
    char::from_u32(u32::from(c) + title).unwrap_or(c)
}

/// Gives the digits of `number` to `write`.
pub(super) fn decimal<T>(mut number: u64, write: impl FnOnce(&[u8]) -> T) -> T {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    for digit in digits.iter_mut().rev() {
        // Below ten.
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        start -= 1;
        if number == 0 {
            break;
        }
    }
    write(digits.get(start..).unwrap_or_default())
}

/// The last eight bytes of the MD5 of `text`, which Prometheus takes for `hashmod`.
pub(super) fn hash(text: &[u8]) -> u64 {
    crate::md5::md5(text).last_chunk().map_or(0, |last| u64::from_be_bytes(*last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_change_their_case_as_in_go() {
        let lowered: String = "ÀİΣẞǅ".chars().map(lower).collect();
        assert_eq!(lowered, "àiσßǆ");
        let raised: String = "àßŉǰᾳᾀŀﬁǆ".chars().map(upper).collect();
        assert_eq!(raised, "ÀßŉǰᾼᾈĿﬁǄ");
    }

    #[test]
    fn numbers_are_written_as_decimals() {
        for number in [0, 7, 10, 1_234_567, u64::MAX] {
            assert_eq!(decimal(number, <[u8]>::to_vec), number.to_string().into_bytes());
        }
    }

    #[test]
    fn hashes_are_those_of_prometheus() {
        // echo -n foo | md5sum: acbd18db4cc2f85cedef654fccc4a4d8
        assert_eq!(hash(b"foo"), 0xedef_654f_ccc4_a4d8);
    }
}
