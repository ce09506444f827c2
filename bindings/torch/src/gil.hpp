#pragma once

namespace anyccl::torch {

/// Releases the interpreter, if this thread has it, while this thread waits.
class GilReleased {
 public:
  GilReleased();
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  void* state_ = nullptr;
};

}  // namespace anyccl::torch
