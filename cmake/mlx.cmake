# Finds MLX for the MLX lane; sets FORESAY_HAS_MLX and, with it, the imported target `mlx`.
#
#   FORESAY_MLX=AUTO  use it where it is found (default)
#   FORESAY_MLX=ON    fail without it
#   FORESAY_MLX=OFF   do not look
#
# Looked for, in order: MLX_DIR or CMAKE_PREFIX_PATH (a source build), the wheel in the project's .venv, Homebrew. What
# was found stays found until it is gone; what was not is looked for at every configure.
set(FORESAY_MLX AUTO CACHE STRING "The MLX lane: AUTO, ON or OFF")
set_property(CACHE FORESAY_MLX PROPERTY STRINGS AUTO ON OFF)
set(FORESAY_HAS_MLX FALSE)
set(foresay_mlx_least 0.32)  # the first version that this lane was built with

if(NOT FORESAY_MLX STREQUAL "OFF")
  unset(MLX_LIBRARY CACHE)  # its config file caches this and would keep the path of a folder that is gone
  find_package(MLX ${foresay_mlx_least} CONFIG QUIET
    NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_PACKAGE_REGISTRY NO_CMAKE_SYSTEM_PATH NO_CMAKE_SYSTEM_PACKAGE_REGISTRY)
  set(places)
  if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    list(APPEND places "${CMAKE_SOURCE_DIR}/.venv/bin/python -m mlx --cmake-dir")
  endif()
  find_program(FORESAY_BREW brew)
  mark_as_advanced(FORESAY_BREW)
  if(FORESAY_BREW)
    list(APPEND places "${FORESAY_BREW} --prefix mlx")
  endif()
  foreach(place IN LISTS places)
    if(NOT MLX_FOUND)
      separate_arguments(command UNIX_COMMAND "${place}")
      execute_process(COMMAND ${command} OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      find_package(MLX ${foresay_mlx_least} CONFIG QUIET PATHS "${prefix}" NO_DEFAULT_PATH)
    endif()
  endforeach()

  if(MLX_FOUND)
    set(FORESAY_HAS_MLX TRUE)
    message(STATUS "MLX ${MLX_VERSION}: ${MLX_DIR}")
  elseif(FORESAY_MLX STREQUAL "ON")
    message(FATAL_ERROR "FORESAY_MLX=ON, but no MLX ${foresay_mlx_least} or newer was found through MLX_DIR, "
      "CMAKE_PREFIX_PATH, .venv or Homebrew; `make .venv/.ready` installs the wheel")
  else()
    message(STATUS "MLX: not found, so this build has no MLX lane")
  endif()
endif()
