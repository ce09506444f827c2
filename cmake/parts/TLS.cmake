# Encrypted connections between hosts, by OpenSSL: src/platform/tls is a folder of the library.
set(folder "")
find_package(OpenSSL 3 QUIET COMPONENTS SSL)
if(NOT OPENSSL_SSL_LIBRARY OR NOT OPENSSL_FOUND)
  set(missing "there is no OpenSSL 3 with its headers (Debian: libssl-dev)")
endif()
