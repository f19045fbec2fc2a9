//! Windows of payload memory, charges against a budget, and the plan of declared overhead.
