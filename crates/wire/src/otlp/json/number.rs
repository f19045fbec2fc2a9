//! Numbers as JSON writes them, exactly.

/// Whether `token` is a number by the grammar of JSON.
pub(super) fn is_number(token: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = token.strip_prefix(b"-").unwrap_or(token);
    let whole = digits(rest);
    if whole == 0 || whole > 1 && rest.first() == Some(&b'0') {
        return false;
    }
    let mut rest = rest.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let len = digits(fraction);
        if len == 0 {
            return false;
        }
        rest = fraction.get(len..).unwrap_or_default();
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let len = digits(exponent);
        return len > 0 && len == exponent.len();
    }
    rest.is_empty()
}

/// The whole number that `token` is, as its sign and its magnitude; also of `1.50e1`. `None` if it is not whole
/// or has more than 64 bits.
pub(super) fn integer(token: &[u8]) -> Option<(bool, u64)> {
    let (is_negative, digits) = match token {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut value = 0u64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        let longer = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit)));
        match longer {
            Some(longer) if digit <= 9 => value = longer,
            // A fraction, an exponent, or too large without one.
            _ => return Some((is_negative, scaled(digits)?)),
        }
    }
    Some((is_negative, value))
}

/// The whole number that `token`, with a fraction or an exponent, is.
fn scaled(token: &[u8]) -> Option<u64> {
    let split = token.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(token.len());
    let (mantissa, exponent) = token.split_at_checked(split)?;
    let mut scale = match exponent.get(1..) {
        Some(exponent) => str::from_utf8(exponent).ok()?.parse::<i64>().ok()?,
        None => 0,
    };
    let point = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    scale = scale.checked_sub(i64::try_from(mantissa.len().saturating_sub(point + 1)).ok()?)?;
    // The digits without the zeros at the end, each of which is one power of ten more.
    let (mut value, mut zeros) = (0u64, 0u32);
    for digit in mantissa.iter().filter(|&&byte| byte != b'.').map(|byte| byte.wrapping_sub(b'0')) {
        if digit == 0 {
            zeros = zeros.checked_add(u32::from(value != 0))?;
            continue;
        }
        value =
            value.checked_mul(10u64.checked_pow(zeros.checked_add(1)?)?)?.checked_add(u64::from(digit))?;
        zeros = 0;
    }
    if value == 0 {
        return Some(0);
    }
    let scale = u32::try_from(scale.checked_add(i64::from(zeros))?).ok()?;
    value.checked_mul(10u64.checked_pow(scale)?)
}

/// The signed number of a sign and a magnitude.
pub(super) fn signed((is_negative, magnitude): (bool, u64)) -> Option<i64> {
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The unsigned number of a sign and a magnitude.
pub(super) fn unsigned((is_negative, magnitude): (bool, u64)) -> Option<u64> {
    (!is_negative || magnitude == 0).then_some(magnitude)
}

/// The number nearest to `token`; `None` if that is none.
pub(super) fn double(token: &[u8]) -> Option<f64> {
    let value = str::from_utf8(token).ok()?.parse::<f64>().ok()?;
    value.is_finite().then_some(value)
}
