//! Groups: captures, their names, and flags.

use super::{Item, Parser, Pending};
use crate::regex::{MAX_GROUPS, PatternError};
use regex_syntax::hir::{Capture, Hir};

impl Parser<'_> {
    pub(super) fn open(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        let rest = self.rest();
        if !rest.starts_with("(?") {
            self.at += 1;
            self.capture(None, start);
            return Ok(());
        }
        let named = rest.strip_prefix("(?P<").or_else(|| rest.strip_prefix("(?<"));
        if let Some(after) = named {
            let Some((name, _)) = after.split_once('>') else {
                return Err(self.error(start, "the name of the group does not end: write (?P<name>…)"));
            };
            self.at += rest.len() - after.len() + name.len() + 1;
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                let message =
                    format!("invalid group name `{name}`: only letters, digits and `_` are allowed");
                return Err(self.error(start, &message));
            }
            self.capture(Some(name.into()), start);
            return Ok(());
        }
        self.flags_or_group(start)
    }

    fn capture(&mut self, name: Option<Box<str>>, at: usize) {
        self.groups += 1;
        let capture = (self.names.len() < MAX_GROUPS).then(|| {
            self.names.push(name);
            // Fewer than `MAX_GROUPS`.
            (self.names.len() - 1) as u32
        });
        self.stack.push(Pending::Open { flags: self.flags, capture, at });
    }

    /// `(?flags)` or `(?flags:`.
    fn flags_or_group(&mut self, start: usize) -> Result<(), PatternError> {
        let mut flags = self.flags;
        let (mut on, mut seen) = (true, false);
        for (offset, c) in self.rest().char_indices().skip(2) {
            match c {
                'i' => flags.fold_case = on,
                'm' => flags.lines = on,
                's' => flags.dot_all = on,
                'U' => flags.non_greedy = on,
                '-' if on => (on, seen) = (false, false),
                ':' | ')' if on || seen => {
                    self.at += offset + 1;
                    if c == ':' {
                        self.stack.push(Pending::Open { flags: self.flags, capture: None, at: start });
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => {
                    self.at += offset + c.len_utf8();
                    return Err(self.error(start, "invalid or unsupported group: Go knows (…), (?:…), (?P<name>…) and the flags i, m, s, U"));
                }
            }
            seen |= c != '-';
        }
        self.at = self.text.len();
        Err(self.error(start, "missing closing parenthesis"))
    }

    pub(super) fn close(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        self.at += 1;
        let item = self.alternation();
        let Some(Pending::Open { flags, capture, .. }) = self.stack.pop() else {
            return Err(self.error(start, "unexpected `)`: no group is open"));
        };
        self.flags = flags;
        let depth = self.deeper(item.depth, start)?;
        let hir = match capture {
            Some(index) => Hir::capture(Capture { index, name: None, sub: Box::new(item.hir) }),
            None => item.hir,
        };
        self.stack.push(Pending::Item(Item { hir, depth, ..item }));
        Ok(())
    }
}
