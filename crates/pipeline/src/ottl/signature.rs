//! Signatures of functions: what the checker knows of them, and what the machine calls.

use super::field::{Context, Field};
use super::program::Argument;
use crate::functions::Prepared;
use crate::machine::Machine;
use crate::regex::Regexes;
use crate::value::{Failure, Value};

/// A function of the language.
pub(crate) struct Signature {
    /// The name in statements. Editors begin with a lower-case letter, converters with a capital.
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// The type of the value; [`Type::Nothing`] for editors.
    pub(crate) returns: Type,
    /// Compiles the literal of the parameter at this position, after the types were checked; `None` leaves it as it is.
    /// Regular expressions are compiled into the program's.
    pub(crate) prepare: Prepare,
    /// Compiles literals that belong together, after each was prepared by itself: lists, maps, a pattern with its definitions. It
    /// gets the constants of the program, and returns the position of the argument at fault and what is wrong with it.
    pub(crate) complete: Complete,
    /// Fields that it reads and changes without an argument that names them.
    pub(crate) effects: &'static [Effect],
    pub(crate) run: fn(&mut Machine<'_>, &[Argument]) -> Result<Value, Failure>,
}

/// A field that a function reads or changes without an argument that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads(Context, Field),
    Changes(Context, Field),
    /// The data points of the metric.
    ReadsPoints,
    /// The values of all data points of the metric.
    MultipliesPoints,
}

/// [`Signature::prepare`].
pub(crate) type Prepare = fn(usize, &str, &mut Regexes) -> Option<Result<Prepared, String>>;

/// [`Signature::complete`].
pub(crate) type Complete = fn(&mut [Argument], &[u8], &mut Regexes) -> Result<(), (usize, String)>;

/// [`Signature::prepare`] of functions without literals to compile.
pub(crate) fn prepare_nothing(
    _position: usize,
    _literal: &str,
    _: &mut Regexes,
) -> Option<Result<Prepared, String>> {
    None
}

/// [`Signature::complete`] of functions whose literals stand by themselves.
pub(crate) fn complete_nothing(_: &mut [Argument], _: &[u8], _: &mut Regexes) -> Result<(), (usize, String)> {
    Ok(())
}

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// The name in `name=value`.
    pub(crate) name: &'static str,
    pub(crate) accepts: Type,
    pub(crate) optional: bool,
}

/// Type of a parameter, a path or a result. The names of `pkg/ottl` are in the comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// No value: what an editor returns.
    Nothing,
    /// `Getter`: anything. As the type of an expression: known only when it runs.
    Any,
    /// `StringGetter`: fails on anything else.
    Text,
    /// `StringLikeGetter`: converts what it can.
    TextLike,
    /// `IntGetter`.
    Int,
    /// `IntLikeGetter`.
    IntLike,
    /// `FloatGetter`.
    Double,
    /// `FloatLikeGetter`.
    DoubleLike,
    /// `BoolGetter`.
    Bool,
    /// `BoolLikeGetter`.
    BoolLike,
    /// `ByteSliceLikeGetter`.
    BytesLike,
    /// `PMapGetter`.
    Map,
    /// `PMapGetSetter`: a path to a map that is changed.
    MapTarget,
    /// `PSliceGetter`.
    List,
    /// `TimeGetter`.
    Time,
    /// `DurationGetter`.
    Duration,
    /// `GetSetter`, `Setter`: a path that is changed.
    Target,
    /// A trace or span id.
    Id,
    /// `string`: a literal.
    LiteralText,
    /// `int64`: a literal.
    LiteralInt,
    /// `float64`: a literal.
    LiteralDouble,
    /// `bool`: a literal.
    LiteralBool,
    /// `[]string`: a list of literals.
    LiteralTexts,
    /// `[]Getter`: a list whose elements are evaluated one by one.
    Values,
    /// `[]StringGetter`: the same, and the elements have to be strings.
    Texts,
    /// `SliceGetter[StringLikeGetter]`: [`Values`](Type::Values), or a value that is a list.
    Elements,
    /// `SliceGetter[StringGetter]`: [`Texts`](Type::Texts), or a value that is a list.
    TextElements,
    /// `FunctionGetter`: the name of a converter.
    Function,
}

impl std::fmt::Debug for Signature {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}
