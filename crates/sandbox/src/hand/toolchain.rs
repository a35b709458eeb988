//! Placeholder.
pub struct Toolchains;
pub fn toolchains() -> Toolchains {
    Toolchains
}
