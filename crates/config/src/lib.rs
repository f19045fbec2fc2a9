//! The configuration: one declaration per setting gives parser, default, documentation and schema.
