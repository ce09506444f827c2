// To Python: codecs, and AllReduce with one, for anyccl/codec.py.

#include <thread>
#include <utility>

#include "array.hpp"
#include "bind.hpp"
#include "group.hpp"
#include "interpreter.hpp"
#include "result.hpp"

namespace anyccl::python {
namespace {

/// Raises Unsupported for a name that no codec has.
anycclCodec_t codec_of(const std::string& name) {
  anycclCodec_t codec{};
  raise_unless_ok(outcome_of(anycclCodecFromName(name.c_str(), &codec)));
  return codec;
}

anycclDataType_t type_of(const Array& x) {
  return static_cast<anycclDataType_t>(x.dtype);
}

/// Returns `payload`; raises InvalidArgument unless it is of uint8.
const Array& checked_payload(const Array& payload) {
  if (payload.dtype != DType::u8) raise_invalid("a payload is an array of uint8");
  return payload;
}

std::size_t payload_bytes(const std::string& codec, std::size_t count) {
  std::size_t bytes = 0;
  raise_unless_ok(outcome_of(anycclCodecBytes(codec_of(codec), count, &bytes)));
  return bytes;
}

void encode(const std::string& codec, nb::handle x, nb::handle payload) {
  const Array from = Array::read(x, "x"), to = Array::output(payload, "out");
  const anycclCodec_t known = codec_of(codec);
  raise_unless_ok(unlocked([&] {
    return anycclCodecEncode(known, from.data, from.count(), type_of(from), to.data,
                             checked_payload(to).count());
  }));
}

void decode(const std::string& codec, const std::vector<nb::object>& payloads, nb::handle out) {
  std::vector<Array> from;
  std::vector<const void*> at;
  for (const nb::object& payload : payloads) {
    from.push_back(Array::read(payload, "payload"));
    at.push_back(checked_payload(from.back()).data);
    if (from.back().count() != from.front().count()) raise_invalid("payloads differ in length");
  }
  const Array to = Array::output(out, "out");
  const anycclCodec_t known = codec_of(codec);
  const std::size_t bytes = from.empty() ? 0 : from.front().count();
  raise_unless_ok(unlocked([&] {
    return anycclCodecDecode(known, at.data(), at.size(), bytes, to.data, to.count(), type_of(to));
  }));
}

/// Everything here is called with the interpreter lock held, which guards the members.
class CodedAllReduce {
 public:
  /// `everywhere`: each rank counts as a host. `if_slow`: it measures now whether the codec makes
  /// it faster. A name that is wrong here is an error of all ranks.
  CodedAllReduce(Communicator& comm, const std::string& codec, bool everywhere, bool if_slow) {
    need_no_group("codec.AllReduce");
    anycclCodec_t known = anycclNumCodecs;
    const Outcome named = outcome_of(anycclCodecFromName(codec.c_str(), &known));
    const Communicator::Call turn(comm);
    const Outcome created = unlocked([&] {
      return anycclCodedCreate(&handle_, known, everywhere ? 1 : 0, if_slow ? 1 : 0, turn.handle);
    });
    raise_unless_ok(named);
    raise_unless_ok(created);
  }
  CodedAllReduce(const CodedAllReduce&) = delete;
  CodedAllReduce& operator=(const CodedAllReduce&) = delete;
  /// Leaves it to the end of the process once the interpreter ends; in a callback of the library
  /// another thread destroys it.
  ~CodedAllReduce() {
    if (handle_ == nullptr || is_exiting()) return;
    const auto destroy = [handle = handle_] { static_cast<void>(anycclCodedDestroy(handle)); };
    if (is_in_callback()) {
      std::thread(destroy).detach();  // what it waits for may need this thread
      return;
    }
    const Unlocked released;
    destroy();
  }

  nb::object run(nb::handle x, nb::handle out, ReduceOp op) {
    need_no_group("codec.AllReduce.run");
    const Array from = Array::read(x, "x");
    Result result = Result::make(out, from, from.shape);
    const Array& to = result.array();
    const anycclCoded_t handle = usable();
    const Inside inside(inside_);
    raise_unless_ok(unlocked([&] {
      return anycclCodedAllReduce(from.data, to.data, from.count(), type_of(from),
                                  static_cast<anycclRedOp_t>(op), handle);
    }));
    return result.take();
  }
  bool uses_codec(nb::handle dtype) const {
    int is = 0;
    const auto type = static_cast<anycclDataType_t>(dtype_from(dtype));
    raise_unless_ok(outcome_of(anycclCodedUsesCodec(usable(), type, &is)));
    return is != 0;
  }
  /// Does nothing if it was destroyed. Raises InvalidUsage while another thread is in a call.
  void destroy() {
    if (handle_ == nullptr) return;
    if (inside_ > 0)
      raise(anycclInvalidUsage, "another thread is in a call: destroy it when it has returned");
    anycclCoded_t const ended = std::exchange(handle_, nullptr);
    raise_unless_ok(unlocked([&] { return anycclCodedDestroy(ended); }));
  }

 private:
  /// Counts a thread in a call.
  class Inside {
   public:
    explicit Inside(int& count) : count_(count) { ++count_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { --count_; }

   private:
    int& count_;
  };

  /// Raises InvalidUsage if it was destroyed; does not look at the communicator.
  anycclCoded_t usable() const {
    if (handle_ == nullptr) raise(anycclInvalidUsage, "the coded AllReduce was destroyed");
    return handle_;
  }

  anycclCoded_t handle_ = nullptr;
  int inside_ = 0;  // threads in a call
};

}  // namespace

void bind_codec(nb::module_& m) {
  m.def("_codec_bytes", payload_bytes, "codec"_a, "count"_a);
  m.def("_codec_encode", encode, "codec"_a, "x"_a, "payload"_a);
  m.def("_codec_decode", decode, "codec"_a, "payloads"_a, "out"_a);
  nb::class_<CodedAllReduce>(m, "_CodedAllReduce", "An AllReduce that a codec shortens.")
      .def(nb::init<Communicator&, const std::string&, bool, bool>(), "comm"_a, "codec"_a,
           "everywhere"_a, "if_slow"_a)
      .def("uses_codec", &CodedAllReduce::uses_codec, "dtype"_a)
      .def("run", &CodedAllReduce::run, "x"_a, "out"_a.none(), "op"_a)
      .def("destroy", &CodedAllReduce::destroy);
}

}  // namespace anyccl::python
