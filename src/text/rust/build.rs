//! Writes the C++ side of the bridge next to the library: include/foresay_text.h and the glue that is linked into it.

fn main() {
    cxx_build::bridge("src/lib.rs").std("c++20").compile("foresay_text_bridge");
    println!("cargo:rerun-if-changed=src/lib.rs");
}
