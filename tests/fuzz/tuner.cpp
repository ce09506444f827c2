// Tables of measurements.

#include "framework/tuning/tuner_table.hpp"
#include "input.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  const auto table = TunerTable::parse(input.text(), "file");
  if (!table.ok()) return;
  for (const Algorithm* algorithm : all_algorithms())
    for (const std::size_t bytes : {0U, 8U, 65536U}) {
      TunerQuery query;
      query.shape.size = 2;
      query.bytes = bytes;
      static_cast<void>(table->measured_us(*algorithm, query));
    }
}

}  // namespace anyccl::fuzz
