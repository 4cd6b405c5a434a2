# find_package(Waylay) for C and C++ plugins, without installing anything. Keep this file in a folder `cmake` beside
# `include`, and name the folder that holds both:
#   list(APPEND CMAKE_PREFIX_PATH "${CMAKE_CURRENT_SOURCE_DIR}/waylay")
#   find_package(Waylay REQUIRED)
#   waylay_add_plugin(bank bank.cpp)
# makes libbank.so (bank.dll) that Waylay loads.

get_filename_component(WAYLAY_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)

if(NOT TARGET Waylay::Waylay)
  add_library(Waylay::Waylay INTERFACE IMPORTED)
  set_target_properties(Waylay::Waylay PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${WAYLAY_INCLUDE_DIR}")
endif()

function(waylay_add_plugin name)
  find_package(Threads REQUIRED)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE Waylay::Waylay Threads::Threads)
  target_compile_features(${name} PRIVATE c_std_11 cxx_std_17)
  # Frame pointers and line tables make the stacks of a failure readable; they cost next to nothing.
  if(NOT MSVC)
    target_compile_options(${name} PRIVATE -g -fno-omit-frame-pointer)
  endif()
endfunction()
