#include "base/error.hpp"
#include "platform/tls/tls.hpp"

namespace anyccl::tls {

Status is_available() {
  return error(Code::unsupported, "ANYCCL_TLS needs a build with ANYCCL_WITH_TLS=ON");
}

Result<std::unique_ptr<SecureStream>> make_stream(Side, const Key&, std::uint32_t) {
  return is_available();
}

}  // namespace anyccl::tls
