#include "simulate/devices/device_costs.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace anyccl::cli {

Result<DeviceCosts> read_device_costs(const std::string& text, const std::string& name) {
  constexpr std::string_view kFormat = "anyccl.devices/1";
  DeviceCosts costs;
  struct Number {
    double* value;
    double unit;
  };
  const std::map<std::string, Number> numbers{{"link_GBps", {&costs.link_bytes_per_s, 1e9}},
                                              {"device_GBps", {&costs.device_bytes_per_s, 1e9}},
                                              {"copy_us", {&costs.copy_s, 1e-6}},
                                              {"kernel_us", {&costs.kernel_s, 1e-6}},
                                              {"word_us", {&costs.word_s, 1e-6}},
                                              {"call_us", {&costs.call_s, 1e-6}},
                                              {"small_call_us", {&costs.small_call_s, 1e-6}}};
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", nlohmann::json()) != kFormat)
    return error(Code::invalid_argument,
                 "{}: constants of devices are a JSON object with \"format\": \"{}\"", name,
                 kFormat);
  for (const auto& [key, value] : json.items()) {
    if (key == "format" || key == "about") continue;
    const auto known = numbers.find(key);
    if (known == numbers.end()) {
      std::string names;
      for (const auto& number : numbers) names += number.first + ", ";
      return error(Code::invalid_argument, "{}: there is no {}, but {}format and about", name, key,
                   names);
    }
    const bool may_be_0 = key.ends_with("_us");
    const double number = value.is_number() ? value.get<double>() : -1;
    if (number < 0 || (number == 0 && !may_be_0))
      return error(Code::invalid_argument, "{}: {} is {}, not a number {}", name, key, value.dump(),
                   may_be_0 ? "of at least 0" : "above 0");
    *known->second.value = number * known->second.unit;
  }
  return costs;
}

}  // namespace anyccl::cli
