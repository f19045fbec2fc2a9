//! The protocols tidegate receives.
