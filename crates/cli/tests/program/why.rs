//! `why`, and what `run` says of what keeps it from starting.
