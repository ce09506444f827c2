#include "simulate/machine.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace anyccl::cli {

Result<Machine> read_machine(const std::string& text, const std::string& name, Machine machine) {
  constexpr std::string_view kFormat = "anyccl.machine/1";
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", nlohmann::json()) != kFormat)
    return error(Code::invalid_argument, "{}: a machine is a JSON object with \"format\": \"{}\"",
                 name, kFormat);
  for (const auto& [key, value] : json.items()) {
    if (key == "format" || key == "about") continue;
    const bool may_be_0 = key.ends_with("_us");
    const double number = value.is_number() ? value.get<double>() : -1;
    if (number < 0 || (number == 0 && !may_be_0))
      return error(Code::invalid_argument, "{}: {} is {}, not a number {}", name, key, value.dump(),
                   may_be_0 ? "of at least 0" : "above 0");
    if (key == "alpha_us")
      machine.alpha_s = number * 1e-6;
    else if (key == "hop_us")
      machine.hop_s = number * 1e-6;
    else if (key == "overhead_us")
      machine.overhead_s = number * 1e-6;
    else if (key == "GBps")
      machine.bytes_per_s = number * 1e9;
    else if (key == "reduce_GBps")
      machine.gamma_s_per_byte = 1e-9 / number;
    else
      return error(
          Code::invalid_argument,
          "{}: there is no {}, but alpha_us, hop_us, overhead_us, GBps, reduce_GBps and about",
          name, key);
  }
  return machine;
}

}  // namespace anyccl::cli
