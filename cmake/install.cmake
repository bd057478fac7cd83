# What `cmake --install` puts under a prefix: the program, libforesay.so with headers and a CMake package, and the
# bundled checkpoint. A wheel (FORESAY_PYTHON) takes the program and the checkpoint only: its module has the library
# inside.
if(FORESAY_SANITIZE)  # a program without the sanitizers cannot load a library with them
  return()
endif()

if(FORESAY_PYTHON)
  set(foresay_bin ${SKBUILD_SCRIPTS_DIR})
  set(foresay_share ${SKBUILD_DATA_DIR}/share)
else()
  set(foresay_bin ${CMAKE_INSTALL_BINDIR})
  set(foresay_share ${CMAKE_INSTALL_DATADIR})
endif()
if(FORESAY_HAS_MLX)  # libmlx stays where it was found
  set(foresay_rpath $<TARGET_FILE_DIR:mlx>)
endif()
set_property(TARGET foresay PROPERTY INSTALL_RPATH ${foresay_rpath})
install(TARGETS foresay RUNTIME DESTINATION ${foresay_bin})
install(DIRECTORY models/tiny-qwen3_5 DESTINATION ${foresay_share}/foresay/models)
if(FORESAY_PYTHON)
  return()
endif()

# One shared library out of the static ones, which stay for tests. The folders that define the interface go in whole,
# because nothing refers to all of it; of the others the linker takes what these need.
add_library(foresay_shared SHARED
  $<TARGET_OBJECTS:foresay_base> $<TARGET_OBJECTS:foresay_decode> $<TARGET_OBJECTS:foresay_library>)
target_link_libraries(foresay_shared PRIVATE foresay_library)
set_property(TARGET foresay_shared PROPERTY INSTALL_RPATH ${foresay_rpath})
target_include_directories(foresay_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(foresay_shared INTERFACE cxx_std_20)
set_target_properties(foresay_shared PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME foresay EXPORT_NAME foresay VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/foresay.map)
if(NOT APPLE)
  target_link_options(foresay_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/foresay.map
    -Wl,--exclude-libs,libforesay_text.a -Wl,--no-undefined)  # the crate marks nothing as hidden
endif()
install(TARGETS foresay_shared EXPORT foresayTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/foresay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

include(CMakePackageConfigHelpers)
set(foresay_package ${CMAKE_INSTALL_LIBDIR}/cmake/foresay)
configure_package_config_file(cmake/foresayConfig.cmake.in ${CMAKE_BINARY_DIR}/foresayConfig.cmake
  INSTALL_DESTINATION ${foresay_package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/foresayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/foresayConfig.cmake ${CMAKE_BINARY_DIR}/foresayConfigVersion.cmake
  DESTINATION ${foresay_package})
install(EXPORT foresayTargets NAMESPACE foresay:: DESTINATION ${foresay_package})
