# Installs into a new prefix, builds examples/generate against it as a stranger would, and compares what it says with
# the program. Also: the library exports its interface and nothing else.
#   cmake -DSOURCE=... -DBUILD=... -DWORK=... -DCXX=... -P example.cmake
function(run output)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit ${status}\n${out}${err}")
  endif()
  set(${output} "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(ignored ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(ignored ${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples/generate -B ${WORK}/build
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
run(ignored ${CMAKE_COMMAND} --build ${WORK}/build)

set(model ${SOURCE}/models/tiny-qwen3_5)
foreach(prompt "def main(argv):" "Write a Python function")
  run(expected ${WORK}/prefix/bin/foresay generate ${model} --prompt ${prompt} --max-tokens 64)
  run(found ${WORK}/build/generate ${model} ${prompt})
  if(NOT found STREQUAL expected OR found STREQUAL "\n")
    message(FATAL_ERROR "the program said\n${expected}\nthe example said\n${found}")
  endif()
endforeach()
execute_process(COMMAND ${WORK}/build/generate "" "Write a Python function" OUTPUT_VARIABLE bundled ERROR_QUIET)
if(NOT bundled STREQUAL found)
  # share/ of the prefix, found from the library
  message(FATAL_ERROR "with the bundled checkpoint the example said\n${bundled}")
endif()

file(GLOB library ${WORK}/prefix/lib*/libforesay.so ${WORK}/prefix/lib*/*/libforesay.so)
if(library)  # ELF
  run(symbols nm -D --defined-only ${library})
  string(REGEX REPLACE "\n$" "" symbols "${symbols}")
  string(REPLACE "\n" ";" symbols "${symbols}")
  foreach(symbol IN LISTS symbols)
    if(NOT symbol MATCHES " _Z(N|NK|TIN|TSN|TVN)7foresay" OR symbol MATCHES "rust_text|6Engine|10BatchState")
      message(FATAL_ERROR "libforesay.so exports more than its interface: ${symbol}")
    endif()
  endforeach()
  run(needs ldd ${library})
  if(needs MATCHES "libfmt")
    message(FATAL_ERROR "libforesay.so needs fmt at run time:\n${needs}")
  endif()
endif()
file(REMOVE_RECURSE ${WORK})
