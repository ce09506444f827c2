// The devices of the CUDA driver that this process uses.

#include <fmt/ranges.h>

#include <fstream>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "platform/device/cuda/cuda_device.hpp"
#include "platform/device/devices.hpp"

namespace anyccl {
namespace {

using cuda::CudaDevice;
using cuda::Driver;

/// Which of them somebody has.
struct OpenDevices {
  std::mutex mutex;
  std::map<int, std::weak_ptr<Device>> by_number;
};

int attribute(const Driver& driver, int what, cuda::Ordinal device) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, what, device) == cuda::kSuccess ? value : 0;
}

/// The first line of a file of the system about a PCI device; empty if there is none.
std::string line_of(const std::string& pci, const char* file) {
  std::ifstream in("/sys/bus/pci/devices/" + pci + ".0/" + file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// ", 16.0 GT/s PCIe x16, NUMA node 0": what of it the system says.
std::string place_of(const std::string& pci) {
  const std::string speed = line_of(pci, "current_link_speed"),
                    width = line_of(pci, "current_link_width"), node = line_of(pci, "numa_node");
  std::string place;
  if (!speed.empty()) place += fmt::format(", {} x{}", speed, width);
  if (!node.empty() && node != "-1") place += ", NUMA node " + node;
  return place;
}

/// "reaches memory of devices 1, 2", of `devices` in all.
std::string peers_of(const Driver& driver, int number, int devices) {
  std::vector<int> reached;
  for (int other = 0; other < devices; ++other) {
    int can = 0;
    if (other != number && driver.cuDeviceCanAccessPeer(&can, number, other) == cuda::kSuccess &&
        can != 0)
      reached.push_back(other);
  }
  if (reached.empty()) return "reaches memory of no other device";
  return fmt::format("reaches memory of device {}", fmt::join(reached, ", "));
}

/// "cuda 0: NVIDIA L4, compute 8.9, PCI 0000:3b:00, 2 copy engines, ..."
std::string describe(const Driver& driver, int number, int devices) {
  const auto has = [&](int what) { return attribute(driver, what, number); };
  char name[128] = "";
  if (driver.cuDeviceGetName(name, sizeof name, number) != cuda::kSuccess) name[0] = '\0';
  const std::string pci = fmt::format("{:04x}:{:02x}:{:02x}", has(cuda::kPciDomain),
                                      has(cuda::kPciBus), has(cuda::kPciDevice));
  return fmt::format(
      "cuda {}: {}, compute {}.{}, PCI {}{}, {} copy engines, {}, {} for words, {} read-only "
      "memory",
      number, name, has(cuda::kComputeMajor), has(cuda::kComputeMinor), pci, place_of(pci),
      has(cuda::kCopyEngines), peers_of(driver, number, devices),
      has(cuda::kStreamWords) != 0 ? "waits" : "does not wait",
      has(cuda::kReadOnlyRegister) != 0 ? "pins" : "does not pin");
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(int number) {
  ANYCCL_TRY(const Driver* const driver, cuda::load_driver());
  auto& open = per_process<OpenDevices>();
  const std::lock_guard lock(open.mutex);
  std::weak_ptr<Device>& known = open.by_number[number];
  if (std::shared_ptr<Device> device = known.lock()) return device;
  ANYCCL_TRY(std::shared_ptr<Device> device, CudaDevice::open(*driver, number));
  known = device;
  return device;
}

std::shared_ptr<Device> device_in_use() {
  const cuda::Context context = cuda::current_context();
  if (context == nullptr) return nullptr;
  const auto driver = cuda::load_driver();
  cuda::Ordinal number = 0;
  if (!driver.ok() || (*driver)->cuCtxGetDevice(&number) != cuda::kSuccess) return nullptr;
  const auto device = open_device(number);
  const bool is_primary =
      device.ok() && static_cast<const CudaDevice&>(**device).context() == context;
  return is_primary ? *device : nullptr;
}

std::vector<std::string> describe_devices(std::string& why) {
  const auto driver = cuda::load_driver();
  int number = 0;
  Status status = driver.status();
  if (status.ok())
    status = (*driver)->check((*driver)->cuDeviceGetCount(&number), "cuDeviceGetCount");
  why = status.message();
  std::vector<std::string> lines;
  for (int i = 0; i < number; ++i) lines.push_back(describe(**driver, i, number));
  return lines;
}

}  // namespace anyccl
