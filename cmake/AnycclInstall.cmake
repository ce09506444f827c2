# What users get: the library with its headers, the tool, a CMake package, a pkg-config file, a .deb.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(namelink NAMELINK_COMPONENT library)
if(SKBUILD)  # Wheels have no links: the library is one file, whose name is its soname.
  set_target_properties(anyccl PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
  set(namelink NAMELINK_SKIP)
  set(CMAKE_INSTALL_LIBDIR lib)
  set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
endif()
install(TARGETS anyccl EXPORT anyccl
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library ${namelink}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/anyccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
if(ANYCCL_CLI)
  install(TARGETS anyccl_cli anyccl_lab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
endif()
if(TARGET anyccl_simgrid)
  set_target_properties(anyccl_lab PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")  # the tool opens it
  install(TARGETS anyccl_simgrid LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/anyccl)
set(generated ${PROJECT_BINARY_DIR}/generated/install)
install(EXPORT anyccl NAMESPACE anyccl:: FILE anyccl-config.cmake DESTINATION ${package} COMPONENT library)
# Before 1.0 a minor version may break what it must.
write_basic_package_version_file(${generated}/anyccl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/anyccl-config-version.cmake DESTINATION ${package} COMPONENT library)
if(SKBUILD)
  return()  # what follows is about systems
endif()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
file(RELATIVE_PATH ANYCCL_UP_FROM_PKGCONFIG /at/${CMAKE_INSTALL_LIBDIR}/pkgconfig /at)  # so it can be moved
configure_file(${PROJECT_SOURCE_DIR}/cmake/anyccl.pc.in ${generated}/anyccl.pc @ONLY)
install(FILES ${generated}/anyccl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

if(ANYCCL_INSTALL_SIMULATED_DRIVER)  # where no program finds it that does not ask for it
  if(NOT TARGET anyccl_simulated_driver)
    add_subdirectory(${PROJECT_SOURCE_DIR}/tests/device/driver)
  endif()
  install(TARGETS anyccl_simulated_driver LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/anyccl/simulated
    COMPONENT simulated_driver NAMELINK_SKIP)
endif()

if(NOT PROJECT_IS_TOP_LEVEL)
  return()  # how the whole is packaged is not our decision
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the anyccl authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Collective communication for CPUs: shared memory and TCP")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
include(CPack)
