#![allow(clippy::indexing_slicing)]
