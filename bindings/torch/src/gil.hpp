#pragma once

namespace anyccl::torch {

/// Lets other threads have the interpreter while this one waits, if this one has it.
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
