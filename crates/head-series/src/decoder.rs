//! Reads the response of an instant query, token by token.
//!
//! Reference: <https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries>.

use tidegate_json_api::{SyntaxError, Token, Tokenizer};
use tidegate_limit::HeadSeriesCounts;

/// The response does not say how many series tenants have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// It is not the response of a successful instant query.
    #[error("the response is not that of an instant query with a vector as its result: {0}")]
    NotVector(&'static str),
    /// No element of the result has a tenant and a number.
    #[error("the result has no series with a label `tenant`; the query must sum by (tenant)")]
    NoTenant,
}

/// Collects the tenants of a response.
#[derive(Debug, Default)]
pub struct Decoder {
    tokenizer: Tokenizer,
    place: Place,
}

/// The position in the response, and what is known of the element there.
#[derive(Debug, Default)]
struct Place {
    depth: u32,
    /// The last key of the response, of `data`, of an element and of its `metric`.
    keys: [Key; 4],
    is_success: bool,
    is_vector: bool,
    tenant: Option<String>,
    series: Option<u64>,
}

/// The keys that matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    Status,
    Data,
    ResultType,
    Result,
    Metric,
    Value,
    Tenant,
}

/// The depth inside of the response, of `data`, of an element of `result`, and of its `metric` or `value`.
const RESPONSE: u32 = 1;
const DATA: u32 = 2;
const ELEMENT: u32 = 4;
const FIELD: u32 = 5;

impl Decoder {
    /// Reads a chunk of the response, and enters complete tenants in `counts`.
    ///
    /// # Errors
    /// When it is not such a response. The decoder is of no use then.
    pub fn feed(&mut self, chunk: &[u8], counts: &mut HeadSeriesCounts) -> Result<(), DecodeError> {
        let place = &mut self.place;
        self.tokenizer.feed(chunk, |token| place.take(token, counts))
    }

    /// Ends the response.
    ///
    /// # Errors
    /// When it is not complete, or has no tenant.
    pub fn finish(&self, counts: &HeadSeriesCounts) -> Result<(), DecodeError> {
        if !self.tokenizer.is_between_values() {
            return Err(DecodeError::NotVector("it is cut off"));
        }
        if !self.place.is_success {
            return Err(DecodeError::NotVector("its `status` is not `success`"));
        }
        if !self.place.is_vector {
            return Err(DecodeError::NotVector("its `resultType` is not `vector`"));
        }
        if counts.tenants() == 0 { Err(DecodeError::NoTenant) } else { Ok(()) }
    }
}

impl Place {
    fn take(&mut self, token: Token<'_>, counts: &mut HeadSeriesCounts) -> Result<(), DecodeError> {
        match token {
            Token::ObjectStart | Token::ArrayStart => {
                self.depth += 1;
                if self.depth == ELEMENT {
                    (self.tenant, self.series) = (None, None);
                }
            }
            Token::ObjectEnd | Token::ArrayEnd => {
                if self.depth == ELEMENT
                    && let (Some(tenant), Some(series)) = (self.tenant.take(), self.series.take())
                {
                    counts.add(&tenant, series);
                }
                self.depth = self.depth.saturating_sub(1);
            }
            Token::Key(key) => {
                let slot = match self.depth {
                    RESPONSE => 0,
                    DATA => 1,
                    ELEMENT => 2,
                    FIELD => 3,
                    _ => return Ok(()),
                };
                if let Some(slot) = self.keys.get_mut(slot) {
                    *slot = Key::of(key.text);
                }
            }
            Token::String(text) => self.text(text.text, text.is_cut)?,
            Token::Scalar(_) => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str, is_cut: bool) -> Result<(), DecodeError> {
        let [response, data, element, field] = self.keys;
        match (self.depth, response) {
            (RESPONSE, Key::Status) => self.is_success = text == "success",
            (DATA, Key::Data) if data == Key::ResultType => self.is_vector = text == "vector",
            (FIELD, Key::Data) if data == Key::Result => match (element, field) {
                (Key::Metric, Key::Tenant) if !is_cut => self.tenant = Some(text.to_owned()),
                (Key::Value, _) => {
                    let number: f64 =
                        text.parse().map_err(|_| DecodeError::NotVector("a value is no number"))?;
                    // A conversion of floats saturates; what is no number is no count.
                    self.series = (!number.is_nan()).then_some(number as u64);
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}

impl Key {
    fn of(text: &str) -> Key {
        match text {
            "status" => Key::Status,
            "data" => Key::Data,
            "resultType" => Key::ResultType,
            "result" => Key::Result,
            "metric" => Key::Metric,
            "value" => Key::Value,
            "tenant" => Key::Tenant,
            _ => Key::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_limit::{HeadSeries, HeadSeriesLimits, HeadSeriesState};

    fn decoded(text: &str, chunk: usize) -> Result<HeadSeries, DecodeError> {
        let head_series = HeadSeries::new(HeadSeriesLimits { default: 1, ..HeadSeriesLimits::default() });
        let (mut decoder, mut counts) = (Decoder::default(), head_series.collect());
        text.as_bytes().chunks(chunk).try_for_each(|chunk| decoder.feed(chunk, &mut counts))?;
        decoder.finish(&counts)?;
        head_series.set_counts(counts);
        Ok(head_series)
    }

    fn series(head_series: &HeadSeries, tenant: &str) -> Option<u64> {
        match head_series.check(tenant) {
            HeadSeriesState::Reached { series, .. } => Some(series),
            _ => None,
        }
    }

    /// Prometheus and Thanos add fields around the result, and labels to it; the pieces come as the network cuts them.
    #[test]
    fn tenants_are_read_from_any_pieces() {
        let text = r#"{"status":"success","warnings":["tenant","a"],"data":{"analysis":{"x":[{"metric":{"tenant":"no"},"value":[1,"9"]}]},
            "resultType":"vector","result":[
            {"metric":{"tenant":"a","other":"b"},"value":[1700000000.123,"12"]},
            {"value":[1700000000,"1.5e3"],"metric":{"job":"x","tenant":"b"}},
            {"metric":{"job":"tenant"},"value":[1,"3"]},
            {"metric":{"tenant":"nan"},"value":[1,"NaN"]}]}}"#;
        for chunk in [1, 2, 7, 64, text.len()] {
            let head_series = decoded(text, chunk).unwrap();
            let found = ["a", "b", "no", "nan", "x"].map(|tenant| series(&head_series, tenant));
            assert_eq!(found, [Some(12), Some(1500), None, None, None], "in pieces of {chunk}");
        }
    }

    #[test]
    fn what_is_no_vector_is_an_error() {
        for text in [
            "",
            "{",
            "<html>",
            r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
            r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"tenant":"a"},"values":[[1,"2"]]}]}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"a"},"value":[1,"2"]}]}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"tenant":"a"},"value":[1,"x"]}]}}"#,
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"tenant":"a"},"value":[1,"2"]}"#,
        ] {
            assert!(decoded(text, 8).is_err(), "{text}");
        }
    }
}
