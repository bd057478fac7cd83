# foresay_rust_text: the crate src/text/rust as a static library with its C++ bridge header.
#
# cargo builds it into build/rust, which all build folders of a checkout share, since it does not depend on the C++ flags.
# The build tool starts cargo only when a source of the crate is newer than the library; cargo's own lock keeps two
# build folders from building at once.
find_program(FORESAY_CARGO cargo HINTS ENV CARGO_HOME $ENV{HOME}/.cargo PATH_SUFFIXES bin DOC "Rust's build tool")
if(NOT FORESAY_CARGO)
  message(FATAL_ERROR "cargo was not found, neither on PATH nor in ~/.cargo/bin. Install Rust 1.88 or newer: "
    "with rustup, or on Debian 12 with 'apt install cargo-web rustc-web'.")
endif()

set(rust_crate ${CMAKE_SOURCE_DIR}/src/text/rust)
set(rust_build ${CMAKE_SOURCE_DIR}/build/rust)
set(rust_library ${rust_build}/release/libforesay_text.a)
file(MAKE_DIRECTORY ${rust_build}/cxxbridge)  # an include folder has to exist when it is named

file(GLOB rust_sources CONFIGURE_DEPENDS ${rust_crate}/src/*.rs)
# The touch is for changes after which cargo sees nothing to do: the library would stay older than its sources.
add_custom_command(OUTPUT ${rust_library}
  COMMAND ${FORESAY_CARGO} build --release --locked --target-dir ${rust_build}
  COMMAND ${CMAKE_COMMAND} -E touch ${rust_library}
  DEPENDS ${rust_sources} ${rust_crate}/build.rs ${rust_crate}/Cargo.toml ${rust_crate}/Cargo.lock
  WORKING_DIRECTORY ${rust_crate}
  COMMENT "cargo build of src/text/rust (about two minutes the first time)"
  VERBATIM)
add_custom_target(foresay_rust_text_build DEPENDS ${rust_library})

add_library(foresay_rust_text STATIC IMPORTED GLOBAL)
set_target_properties(foresay_rust_text PROPERTIES IMPORTED_LOCATION ${rust_library})
target_include_directories(foresay_rust_text SYSTEM INTERFACE ${rust_build}/cxxbridge)
target_link_libraries(foresay_rust_text INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(foresay_rust_text foresay_rust_text_build)
