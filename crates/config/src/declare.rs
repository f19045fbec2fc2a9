//! The macros by which settings are declared.
//!
//! `settings!` declares a group:
//!
//! ```text
//! settings! {
//!     /// What the group is about.
//!     pub struct Listen {
//!         /// What the setting does.
//!         http: SocketAddr = DEFAULT,         // a setting with a default
//!         backlog: u32 [1..=4096] = 128,      // and with a range
//!         url: Url,                           // a setting that must be given
//!     }
//! }
//! ```
//!
//! `pub struct OtlpSink with delivery: Delivery { … }` has the settings of the group `Delivery`, too, among its own ones.
//!
//! `choices!` declares a setting that is one of several words, `kinds!` groups told apart by `type`.

/// A group of settings: the struct, its default where every setting has one, its reader and description.
macro_rules! settings {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $(with $($common:ident: $common_type:ident),+)? {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $type:ty $([$range:expr])? = $default:expr
            ),* $(,)?
        }
    ) => {
        settings! { @declare
            $(#[doc = $doc])*
            pub struct $name $(with $($common: $common_type),+)? {
                $( $(#[doc = $field_doc])* $field: $type $([$range])? = $default, )*
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $( $field: $default, )* $( $( $common: $common_type::default(), )+ )? }
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $(with $($common:ident: $common_type:ident),+)? {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $type:ty $([$range:expr])? $(= $default:expr)?
            ),* $(,)?
        }
    ) => {
        settings! { @declare
            $(#[doc = $doc])*
            pub struct $name $(with $($common: $common_type),+)? {
                $( $(#[doc = $field_doc])* $field: $type $([$range])? $(= $default)?, )*
            }
        }
    };
    (@declare
        $(#[doc = $doc:literal])*
        pub struct $name:ident $(with $($common:ident: $common_type:ident),+)? {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $type:ty $([$range:expr])? $(= $default:expr)?,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
            $( $(
                #[doc = concat!("The settings of [`", stringify!($common_type), "`].")]
                pub $common: $common_type,
            )+ )?
        }

        impl $crate::setting::Section for $name {
            fn fields() -> Vec<$crate::setting::Field> {
                let own = vec![$( $crate::setting::Field {
                    name: $crate::setting::name(stringify!($field)),
                    doc: $crate::setting::doc(&[$($field_doc),*]),
                    shape: <$type as $crate::setting::Setting>::shape(),
                    default: settings!(@option $({
                        let default: $type = $default;
                        $crate::setting::Setting::plain(&default)
                    })?),
                    range: settings!(@option $( $crate::setting::ends(&($range)) )?),
                } ),*];
                $( $( let own = $crate::setting::joined(own, <$common_type as $crate::setting::Section>::fields()); )+ )?
                own
            }

            #[allow(unused_variables, reason = "a group may be empty")]
            fn read_fields(
                entries: &$crate::reader::Entries<'_>,
                reader: &mut $crate::reader::Reader<'_, '_>,
            ) -> Option<Self> {
                $( let $field = reader.field::<$type>(
                    entries,
                    $crate::setting::name(stringify!($field)),
                    settings!(@option $($default)?),
                    |value| settings!(@check value $(, $range)?),
                ); )*
                $( $( let $common = <$common_type as $crate::setting::Section>::read_fields(entries, reader); )+ )?
                Some($name { $( $field: $field?, )* $( $( $common: $common?, )+ )? })
            }

            fn plain_entries(&self) -> Vec<(String, $crate::setting::PlainValue)> {
                let own = vec![$(
                    ($crate::setting::name(stringify!($field)).to_owned(), $crate::setting::Setting::plain(&self.$field))
                ),*];
                $( $( let own = $crate::setting::joined(own, $crate::setting::Section::plain_entries(&self.$common)); )+ )?
                own
            }

            #[allow(unused_variables, reason = "a group may be empty")]
            fn section_secrets(&self, out: &mut Vec<String>) {
                $( $crate::setting::Setting::secrets(&self.$field, out); )*
                $( $( $crate::setting::Section::section_secrets(&self.$common, out); )+ )?
            }
        }

        impl $crate::setting::Setting for $name {
            fn read(
                node: &$crate::yaml::Node,
                reader: &mut $crate::reader::Reader<'_, '_>,
            ) -> Option<Self> {
                reader.section(node, <Self as $crate::setting::Section>::read_entries)
            }

            fn shape() -> $crate::setting::Shape {
                $crate::setting::Shape::Section(<Self as $crate::setting::Section>::fields())
            }

            fn plain(&self) -> $crate::setting::PlainValue {
                $crate::setting::PlainValue::Map($crate::setting::Section::plain_entries(self))
            }

            fn secrets(&self, out: &mut Vec<String>) {
                $crate::setting::Section::section_secrets(self, out);
            }
        }
    };
    (@option) => { None };
    (@option $value:expr) => { Some($value) };
    (@check $value:ident) => {{ let _ = $value; Ok(()) }};
    (@check $value:ident, $range:expr) => { $crate::setting::within($value, &($range)) };
}

/// A setting that is one of several words: the enum, its parser and description.
macro_rules! choices {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident is $what:literal {
            $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $( $(#[doc = $word_doc])* $variant, )*
        }

        impl $name {
            /// All of them.
            pub const ALL: [$name; [$($word),*].len()] = [$( $name::$variant ),*];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $( $name::$variant => $word, )* })
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::Invalid;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $( $word => Ok($name::$variant), )*
                    _ => Err($crate::values::no_such_word(text, &[$($word),*])),
                }
            }
        }

        impl $crate::setting::Scalar for $name {
            const WHAT: &'static str = $what;
            const EXAMPLE: &'static str = [$($word),*][0];

            fn parse(text: &str) -> Result<Self, $crate::error::Invalid> {
                text.parse()
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "enum": [$($word),*] })
            }

            fn choices() -> Vec<(&'static str, String)> {
                vec![$( ($word, $crate::setting::doc(&[$($word_doc),*])) ),*]
            }
        }
    };
}

/// Groups of settings told apart by their `type`: the enum, its reader and description. What they have in common is asked
/// of them by the trait.
macro_rules! kinds {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident: $common:ident {
            $( $(#[doc = $kind_doc:literal])* $variant:ident($section:ty) = $word:literal ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $( $(#[doc = $kind_doc])* $variant($section), )*
        }

        impl $name {
            /// The `type` in the configuration.
            pub fn kind(&self) -> &'static str {
                match self { $( $name::$variant(_) => $word, )* }
            }

            /// The settings that all kinds have in common.
            pub(crate) fn settings(&self) -> &dyn $common {
                match self { $( $name::$variant(settings) => settings, )* }
            }
        }

        impl $crate::setting::Setting for $name {
            fn read(
                node: &$crate::yaml::Node,
                reader: &mut $crate::reader::Reader<'_, '_>,
            ) -> Option<Self> {
                use $crate::setting::Section;
                reader.kind(node, &[$($word),*], |word, entries, reader| match word {
                    $( $word => <$section>::read_entries(entries, reader).map($name::$variant), )*
                    _ => None,
                })
            }

            fn shape() -> $crate::setting::Shape {
                use $crate::setting::Section;
                $crate::setting::Shape::Kinds(vec![$( $crate::setting::Kind {
                    name: $word,
                    doc: $crate::setting::doc(&[$($kind_doc),*]),
                    fields: <$section>::fields(),
                } ),*])
            }

            fn plain(&self) -> $crate::setting::PlainValue {
                use $crate::setting::Section;
                let mut entries =
                    vec![("type".to_owned(), $crate::setting::PlainValue::Text(self.kind().to_owned()))];
                entries.extend(match self { $( $name::$variant(section) => section.plain_entries(), )* });
                $crate::setting::PlainValue::Map(entries)
            }

            fn secrets(&self, out: &mut Vec<String>) {
                use $crate::setting::Section;
                match self { $( $name::$variant(section) => section.section_secrets(out), )* }
            }
        }
    };
}

pub(crate) use {choices, kinds, settings};
