//! Input of a trial from a person or a program: a form, or JSON.

use serde::Deserialize;
use std::fmt;

/// The longest steps, in bytes: as long as those that are kept of a configuration.
pub const LONGEST_STEPS: usize = 32 << 10;
/// The longest items, in bytes.
pub const LONGEST_ITEMS: usize = 128 << 10;

/// Steps, and the items to try them on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialForm {
    /// Steps in YAML, as under `steps` of a pipeline.
    #[serde(default)]
    pub steps: String,
    /// Items, one a line.
    #[serde(default)]
    pub items: String,
}

/// A form that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormError {
    /// Neither a form nor JSON, or with a mistake.
    Unreadable(String),
    /// A text in it is longer than it may be.
    TooLong {
        /// Which one.
        name: &'static str,
        /// The most bytes.
        most: usize,
        /// The form, with that text cut.
        form: TrialForm,
    },
}

impl TrialForm {
    /// Whether a `Content-Type` is that of JSON.
    #[must_use]
    pub fn is_json(content_type: &str) -> bool {
        media_type(content_type).eq_ignore_ascii_case("application/json")
    }

    /// Whether a form with this `Content-Type` can be read.
    #[must_use]
    pub fn is_readable(content_type: &str) -> bool {
        TrialForm::is_json(content_type) || boundary(content_type).is_some()
    }

    /// The form in `body`.
    ///
    /// # Errors
    /// [`FormError`].
    pub fn read(content_type: &str, body: &[u8]) -> Result<TrialForm, FormError> {
        let form = if TrialForm::is_json(content_type) {
            serde_json::from_slice(body)
                .map_err(|error| FormError::Unreadable(format!("the body is no trial: {error}")))?
        } else {
            multipart(content_type, body)
                .ok_or_else(|| FormError::Unreadable("the form is damaged".to_owned()))?
        };
        form.within_bounds()
    }

    fn within_bounds(mut self) -> Result<TrialForm, FormError> {
        for (name, most) in [("steps", LONGEST_STEPS), ("items", LONGEST_ITEMS)] {
            let text = if name == "steps" { &mut self.steps } else { &mut self.items };
            if text.len() > most {
                text.truncate((0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
                return Err(FormError::TooLong { name, most, form: self });
            }
        }
        Ok(self)
    }
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormError::Unreadable(words) => f.write_str(words),
            FormError::TooLong { name, most, .. } => {
                write!(f, "the {name} are longer than {} KiB: try a part of them", most >> 10)
            }
        }
    }
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn boundary(content_type: &str) -> Option<&str> {
    if !media_type(content_type).eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let mut parameters =
        content_type.split(';').skip(1).filter_map(|parameter| parameter.trim().split_once('='));
    let (_, boundary) = parameters.find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?;
    let boundary = boundary.trim_matches('"');
    (1..=70).contains(&boundary.len()).then_some(boundary)
}

fn multipart(content_type: &str, body: &[u8]) -> Option<TrialForm> {
    // Text areas send their lines with both characters, whatever was pasted.
    let [steps, items] = form_texts(content_type, body)?.map(|text| text.replace("\r\n", "\n"));
    Some(TrialForm { steps, items })
}

/// The fields `steps` and `items` of `multipart/form-data` (RFC 7578) as they stand there, without a copy; browsers send it without
/// encoding the texts.
pub(crate) fn form_texts<'a>(content_type: &str, body: &'a [u8]) -> Option<[&'a str; 2]> {
    let body = std::str::from_utf8(body).ok()?;
    let delimiter = format!("\r\n--{}", boundary(content_type)?);
    let first = delimiter.get(2..)?;
    let [mut steps, mut items] = [""; 2];
    let mut rest = body.strip_prefix(first)?;
    while let Some(part) = rest.strip_prefix("\r\n") {
        let (head, content) = part.split_once("\r\n\r\n")?;
        let (content, after) = content.split_once(&delimiter)?;
        match name_of(head) {
            Some("steps") => steps = content,
            Some("items") => items = content,
            _ => {}
        }
        rest = after;
    }
    rest.starts_with("--").then_some([steps, items])
}

fn name_of(head: &str) -> Option<&str> {
    let disposition = head.lines().find(|line| {
        line.get(..20).is_some_and(|start| start.eq_ignore_ascii_case("content-disposition:"))
    })?;
    disposition
        .split(';')
        .find_map(|parameter| parameter.trim().strip_prefix("name="))
        .map(|name| name.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=----WebKitFormBoundaryX";

    fn body(steps: &str, items: &str) -> String {
        let part = |name: &str, text: &str| {
            format!(
                "------WebKitFormBoundaryX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
            )
        };
        format!(
            "{}{}{}------WebKitFormBoundaryX--\r\n",
            part("steps", steps),
            part("other", "x"),
            part("items", items)
        )
    }

    #[test]
    fn forms_and_json_are_read() {
        let form = TrialForm::read(TYPE, body("- edit:\r\n    - x", "a\r\n\r\n--b\r\n").as_bytes()).unwrap();
        assert_eq!(form, TrialForm { steps: "- edit:\n    - x".into(), items: "a\n\n--b\n".into() });
        let json = br#"{"steps": "- drop: x", "items": "up"}"#;
        assert_eq!(TrialForm::read("application/json; charset=utf-8", json).unwrap().items, "up");
        assert!(TrialForm::is_readable(TYPE) && TrialForm::is_readable("Application/JSON"));
        for other in ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ""] {
            assert!(!TrialForm::is_readable(other), "{other}");
        }
    }

    #[test]
    fn what_is_damaged_or_too_long_is_refused_in_words() {
        let whole = body("a", "b");
        for end in [0, 5, 40, 90, whole.len() - 4] {
            assert!(TrialForm::read(TYPE, &whole.as_bytes()[..end]).is_err(), "{end}");
        }
        assert!(TrialForm::read(TYPE, b"------WebKitFormBoundaryX\r\n\xff").is_err());
        assert!(
            TrialForm::read("application/json", br#"{"step": ""}"#)
                .unwrap_err()
                .to_string()
                .contains("unknown field")
        );
        let long = "é".repeat(LONGEST_STEPS / 2 + 1);
        let refused = TrialForm::read(TYPE, body(&long, "b").as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "the steps are longer than 32 KiB: try a part of them");
        let FormError::TooLong { form, .. } = refused else { panic!() };
        assert_eq!((form.steps.len(), form.items.as_str()), (LONGEST_STEPS, "b"));
        let items = "x".repeat(LONGEST_ITEMS);
        assert!(TrialForm::read(TYPE, body("", &items).as_bytes()).is_ok());
        assert!(TrialForm::read(TYPE, body("", &format!("{items}x")).as_bytes()).is_err());
    }
}
