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

# On Windows: what code calls that is compiled with the flags of `waylay cflags`. Elsewhere it is found when the plugin is
# loaded. Nothing of it is linked into a plugin that does not call it.
if(WIN32 AND NOT MSVC AND NOT TARGET waylay_steps)
  set(WAYLAY_STEPS "${WAYLAY_INCLUDE_DIR}/waylay_steps.c")
  add_library(waylay_steps STATIC "${WAYLAY_STEPS}")
  get_property(WAYLAY_LANGUAGES GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST WAYLAY_LANGUAGES)
    set_source_files_properties("${WAYLAY_STEPS}" PROPERTIES LANGUAGE CXX)
  endif()
  # It must not report to itself when the flags are those of the whole project.
  target_compile_options(waylay_steps PRIVATE -fno-sanitize=thread)
endif()

function(waylay_add_plugin name)
  find_package(Threads REQUIRED)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE Waylay::Waylay Threads::Threads)
  if(WIN32)
    # GNU tools would call it libbank.dll, and names of libraries begin in no such way there.
    set_target_properties(${name} PROPERTIES PREFIX "")
  endif()
  if(TARGET waylay_steps)
    target_link_libraries(${name} PRIVATE waylay_steps)
  endif()
  target_compile_features(${name} PRIVATE c_std_11 cxx_std_17)
  # Frame pointers and line tables make the stacks of a failure readable; they cost next to nothing.
  if(NOT MSVC)
    target_compile_options(${name} PRIVATE -g -fno-omit-frame-pointer)
  endif()
endfunction()
