//! Who is let in, and the answer to who is not.
