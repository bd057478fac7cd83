// fmt's compiled functions, as a part of foresay: what is installed should not need fmt's shared library, and Debian
// has no static one.
#include <fmt/format-inl.h>

// The templates that fmt's headers declare and leave to its library to instantiate, as far as formatting needs them.
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl(fmt::detail::locale_ref);
template char fmt::detail::decimal_point_impl(fmt::detail::locale_ref);
