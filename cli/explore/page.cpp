#include <openssl/evp.h>

#include <array>
#include <utility>

#include "base/error.hpp"
#include "explore/explorer.hpp"
#include "explore/page_files.hpp"

namespace anyccl::cli {

namespace {

/// For Content-Security-Policy: 'sha256-...'
Result<std::string> hash_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    return error(Code::internal, "libcrypto could not compute a SHA-256");
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> text64{};
  const int length = EVP_EncodeBlock(text64.data(), digest.data(), static_cast<int>(size));
  return "'sha256-" + std::string(text64.begin(), text64.begin() + length) + "'";
}

/// Text that a parser of HTML could take for the end of the script; in JSON, a < is in a string.
std::string escaped_for_script(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  return safe;
}

/// Replaces the one `mark` in `text`.
void put(std::string& text, std::string_view mark, std::string_view with) {
  text.replace(text.find(mark), mark.size(), with);
}

}  // namespace

Result<std::string> explorer_page(std::string_view data) {
  const std::string style = "\n" + std::string(kPageStyle);
  std::string script = "\n";
  for (const std::string_view part : kPageScripts) script += part;
  ANYCCL_TRY(const std::string style_hash, hash_of(style));
  ANYCCL_TRY(const std::string script_hash, hash_of(script));
  std::string page(kPageHtml);
  put(page, "STYLE-HASH", style_hash);
  put(page, "SCRIPT-HASH", script_hash);
  put(page, "STYLE-TEXT", style);
  put(page, "DATA-TEXT", escaped_for_script(data));
  put(page, "SCRIPT-TEXT", script);
  return page;
}

}  // namespace anyccl::cli
