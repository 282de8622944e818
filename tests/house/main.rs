//! The house rules that a compiler does not know: what may import what, and what stays pure.

mod cases;
mod directions;
mod imports;
mod purity;
mod source;

mod holes;
