//! Remote-write 1.0 bodies for tests, written field by field.
#![allow(dead_code, reason = "each test needs some of it")]

pub(crate) type Labels = Vec<(String, String)>;

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A body under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body(pub(crate) Vec<u8>);

impl Body {
    /// Adds a series with samples of (milliseconds, bits).
    pub(crate) fn series(mut self, labels: &[(String, String)], samples: &[(i64, u64)]) -> Self {
        let mut series = encoded(labels);
        for &(timestamp, bits) in samples {
            bytes(&mut series, 2, &sample(timestamp, bits));
        }
        bytes(&mut self.0, 1, &series);
        self
    }

    /// Adds a series with one exemplar, after the samples given.
    pub(crate) fn exemplar(
        mut self,
        labels: &[(String, String)],
        samples: &[(i64, u64)],
        exemplar_labels: &[(String, String)],
        (timestamp, bits): (i64, u64),
    ) -> Self {
        let mut series = encoded(labels);
        for &(timestamp, bits) in samples {
            bytes(&mut series, 2, &sample(timestamp, bits));
        }
        let mut exemplar = encoded(exemplar_labels);
        fixed64(&mut exemplar, 2, bits);
        varint(&mut exemplar, 3, timestamp.cast_unsigned());
        bytes(&mut series, 3, &exemplar);
        bytes(&mut self.0, 1, &series);
        self
    }

    /// Adds a series with one native histogram.
    pub(crate) fn histogram(mut self, labels: &[(String, String)], histogram: &[u8]) -> Self {
        let mut series = encoded(labels);
        bytes(&mut series, 4, histogram);
        bytes(&mut self.0, 1, &series);
        self
    }

    /// Adds what is known about a family.
    pub(crate) fn metadata(mut self, family: &str, kind: u64, unit: &str, help: &str) -> Self {
        let mut metadata = Vec::new();
        varint(&mut metadata, 1, kind);
        bytes(&mut metadata, 2, family.as_bytes());
        bytes(&mut metadata, 4, help.as_bytes());
        bytes(&mut metadata, 5, unit.as_bytes());
        bytes(&mut self.0, 3, &metadata);
        self
    }
}

/// An integer histogram of one span from `offset` on.
pub(crate) fn int_histogram(timestamp: i64, offset: i64, deltas: &[i64]) -> Vec<u8> {
    let mut histogram = Vec::new();
    let counts = deltas.iter().scan(0, |count, delta| {
        *count += delta;
        Some(*count)
    });
    varint(&mut histogram, 1, counts.sum::<i64>().cast_unsigned());
    fixed64(&mut histogram, 3, 12.5_f64.to_bits());
    varint(&mut histogram, 4, zigzag(3));
    fixed64(&mut histogram, 5, 1e-9_f64.to_bits());
    varint(&mut histogram, 6, 0);
    bytes(&mut histogram, 11, &span(offset, deltas.len() as u64));
    for &delta in deltas {
        varint(&mut histogram, 12, zigzag(delta));
    }
    varint(&mut histogram, 15, timestamp.cast_unsigned());
    histogram
}

/// A float histogram with custom bounds.
pub(crate) fn custom_histogram(timestamp: i64, bounds: &[f64], counts: &[f64]) -> Vec<u8> {
    let mut histogram = Vec::new();
    fixed64(&mut histogram, 2, counts.iter().sum::<f64>().to_bits());
    fixed64(&mut histogram, 3, 99.0_f64.to_bits());
    varint(&mut histogram, 4, zigzag(-53));
    bytes(&mut histogram, 11, &span(0, counts.len() as u64));
    for count in counts {
        fixed64(&mut histogram, 13, count.to_bits());
    }
    varint(&mut histogram, 14, 3);
    varint(&mut histogram, 15, timestamp.cast_unsigned());
    for bound in bounds {
        fixed64(&mut histogram, 16, bound.to_bits());
    }
    histogram
}

pub(crate) fn span(offset: i64, length: u64) -> Vec<u8> {
    let mut span = Vec::new();
    varint(&mut span, 1, zigzag(offset));
    varint(&mut span, 2, length);
    span
}

pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn encoded(labels: &[(String, String)]) -> Vec<u8> {
    let mut message = Vec::new();
    for (name, value) in labels {
        let mut label = Vec::new();
        bytes(&mut label, 1, name.as_bytes());
        bytes(&mut label, 2, value.as_bytes());
        bytes(&mut message, 1, &label);
    }
    message
}

fn sample(timestamp: i64, bits: u64) -> Vec<u8> {
    let mut sample = Vec::new();
    fixed64(&mut sample, 1, bits);
    varint(&mut sample, 2, timestamp.cast_unsigned());
    sample
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

pub(crate) fn varint(out: &mut Vec<u8>, field: u64, value: u64) {
    number(out, field << 3);
    number(out, value);
}

pub(crate) fn fixed64(out: &mut Vec<u8>, field: u64, bits: u64) {
    number(out, field << 3 | 1);
    out.extend_from_slice(&bits.to_le_bytes());
}

pub(crate) fn bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    number(out, field << 3 | 2);
    number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
