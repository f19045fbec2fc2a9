//! Checks statements and conditions, and compiles them: resolves paths, enums and functions, checks what is known of types,
//! and stores literals.
//!
//! An error of `pkg/ottl` when it loads a configuration is an error here. A statement that it accepts although
//! it fails on every record is a warning. The differences are in `docs/pipelines.md`.

mod argument;
mod call;
mod condition;
mod context;
mod literal;
mod path;
mod value;
mod warn;

use super::diagnostic::{Diagnostic, Fault};
use super::field::{Context, Field};
use super::literals::Literals;
use super::program::{Condition, Expression, Statement};
use super::{parse, visit};
use crate::Severity;
use crate::memory::Slice;
use std::ops::Range;

/// Result of compiling a list of texts.
#[derive(Debug)]
pub(crate) struct Checked<T> {
    /// The lowest context of the list: each of its items runs the whole list.
    pub(crate) context: Context,
    pub(crate) programs: Vec<T>,
    /// The fields that each text reads and writes.
    pub(crate) uses: Vec<Vec<Use>>,
    pub(crate) warnings: Vec<Diagnostic>,
}

/// A path that a text reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) context: Context,
    pub(crate) field: Field,
    /// The first key, when it is a literal string.
    pub(crate) key: Option<Slice>,
    /// Whether the path is the target of an editor. Most editors read their target, too.
    pub(crate) target: bool,
    /// The path's bytes in the text.
    pub(crate) range: Range<usize>,
}

/// Functions and fields that texts may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The contexts that exist where the texts are: of the signals that the pipeline's sinks take.
    pub(crate) contexts: &'a [Context],
    /// The context of paths that name none, and of the list; inferred otherwise.
    pub(crate) given: Option<Context>,
}

impl Scope<'static> {
    /// All contexts; the one of a list is inferred.
    pub(crate) const ALL: Scope<'static> = Scope { contexts: &Context::ALL, given: None };
}

/// Compiles statements that run together, in one context.
///
/// # Errors
/// All errors of all texts, and warnings with them.
pub(crate) fn statements<T: AsRef<str>>(
    texts: &[T],
    scope: Scope<'_>,
    literals: &mut Literals,
) -> Result<Checked<Statement>, Vec<Diagnostic>> {
    list(
        texts,
        scope,
        literals,
        parse::statement,
        |tree, each| visit::statement(tree, each),
        |checker, tree| checker.statement(tree),
    )
}

/// Compiles conditions that are evaluated together, in one context. Conditions of which each has its own context are compiled
/// one by one with this.
///
/// # Errors
/// All errors of all texts, and warnings with them.
pub(crate) fn conditions<T: AsRef<str>>(
    texts: &[T],
    scope: Scope<'_>,
    literals: &mut Literals,
) -> Result<Checked<Condition>, Vec<Diagnostic>> {
    list(
        texts,
        scope,
        literals,
        parse::condition,
        |tree, each| visit::condition(tree, each),
        |checker, tree| checker.condition(tree),
    )
}

/// Compiles expressions, each for its value, in one context.
///
/// # Errors
/// All errors of all texts, and warnings with them.
pub(crate) fn expressions<T: AsRef<str>>(
    texts: &[T],
    scope: Scope<'_>,
    literals: &mut Literals,
) -> Result<Checked<Expression>, Vec<Diagnostic>> {
    list(
        texts,
        scope,
        literals,
        parse::expression,
        |tree, each| visit::value(tree, each),
        |checker, tree| checker.value(tree),
    )
}

fn list<T: AsRef<str>, Tree, Program>(
    texts: &[T],
    scope: Scope<'_>,
    literals: &mut Literals,
    parse: impl Fn(&str) -> Result<Tree, Fault>,
    visit: impl for<'t> Fn(&'t Tree, &mut dyn FnMut(visit::Part<'t>)),
    check: impl Fn(&mut Checker<'_>, &Tree) -> Option<Program>,
) -> Result<Checked<Program>, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let error = |item, fault| Diagnostic { item, severity: Severity::Error, fault };
    let mut trees = Vec::new();
    for (item, text) in texts.iter().enumerate() {
        match parse(text.as_ref()) {
            Ok(tree) => trees.push((item, tree)),
            Err(fault) => diagnostics.push(error(item, fault)),
        }
    }
    let mut hints = context::Hints::default();
    for (item, tree) in &trees {
        visit(tree, &mut |part| hints.add(*item, part));
    }
    let context = match hints.infer(scope) {
        Ok(context) => context,
        Err(found) => {
            // Texts that cannot be parsed could have named the context.
            if diagnostics.is_empty() || !found.is_empty() {
                let whole =
                    |text: &T| Fault::new(0..text.as_ref().len(), context::NONE).help(context::NONE_HELP);
                match found.is_empty() {
                    true => diagnostics.extend(texts.first().map(|text| error(0, whole(text)))),
                    false => diagnostics.extend(found.into_iter().map(|(item, fault)| error(item, fault))),
                }
            }
            return Err(sorted(diagnostics));
        }
    };
    let (mut programs, mut uses) = (Vec::new(), Vec::new());
    for (item, tree) in &trees {
        let mut checker = Checker::new(context, scope, literals);
        programs.extend(check(&mut checker, tree));
        diagnostics.extend(checker.errors.into_iter().map(|fault| error(*item, fault)));
        let warning = |fault| Diagnostic { item: *item, severity: Severity::Warning, fault };
        diagnostics.extend(checker.warnings.into_iter().map(warning));
        uses.push(checker.uses);
    }
    let diagnostics = sorted(diagnostics);
    match diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        true => Err(diagnostics),
        false => Ok(Checked { context, programs, uses, warnings: diagnostics }),
    }
}

/// In the order of the texts.
fn sorted(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.item, diagnostic.fault.range.start));
    diagnostics
}

/// Checks one text. A rule that finds an error notes it and returns `None`; its caller goes on with the rest.
struct Checker<'a> {
    context: Context,
    scope: Scope<'a>,
    literals: &'a mut Literals,
    errors: Vec<Fault>,
    warnings: Vec<Fault>,
    uses: Vec<Use>,
    /// Whether the next path is only counted, or compared with nil.
    counts: bool,
}

impl<'a> Checker<'a> {
    fn new(context: Context, scope: Scope<'a>, literals: &'a mut Literals) -> Checker<'a> {
        let (errors, warnings, uses) = (Vec::new(), Vec::new(), Vec::new());
        Checker { context, scope, literals, errors, warnings, uses, counts: false }
    }

    fn statement(&mut self, tree: &super::syntax::StatementTree) -> Option<Statement> {
        let call = self.call(&tree.editor);
        let edited = self.uses.len();
        let condition = tree.condition.as_ref().map(|condition| self.condition(condition));
        let condition = match condition {
            Some(condition) => Some(condition?),
            None => None,
        };
        let statement = Statement { call: call?, condition };
        self.warn_of_empty_values(&statement, edited);
        Some(statement)
    }

    fn error(&mut self, fault: Fault) {
        self.errors.push(fault);
    }

    fn warn(&mut self, fault: Fault) {
        self.warnings.push(fault);
    }
}

#[cfg(test)]
mod any_text_tests;
#[cfg(test)]
mod tests;
