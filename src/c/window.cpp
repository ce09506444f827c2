// The C interface: windows, puts and signals.

#include <algorithm>

#include "base/error.hpp"
#include "c/device/device_calls.hpp"
#include "framework/communicator/one_sided_calls.hpp"
#include "framework/communicator/windows.hpp"

namespace anyccl {
namespace {

constexpr std::size_t kMostForgotten =
    64;  // windows that were deregistered: used again, they say so

Status check_window_arguments(const void* buff, std::size_t size, const anycclWindow_t* win,
                              int flags) {
  ANYCCL_CHECK(need(win, "win"));
  constexpr int kFlags = ANYCCL_WIN_COLL_SYMMETRIC | ANYCCL_WIN_STRICT_ORDERING;
  if (buff == nullptr && size > 0)
    return error(Code::invalid_argument, "buff is NULL and size is {}", size);
  if ((flags & ~kFlags) != 0)
    return error(Code::invalid_argument,
                 "winFlags {:#x} has others than ANYCCL_WIN_COLL_SYMMETRIC "
                 "and ANYCCL_WIN_STRICT_ORDERING",
                 flags);
  return {};
}

/// Aborts the communicator if the background thread cannot listen for puts, as peers may send some
/// already.
Status register_window(anycclComm_t comm, void* buff, std::size_t size, anycclWindow_t* win,
                       int flags) {
  const InCall in_call(comm);  // also at the end of a group
  ANYCCL_CHECK(need_comm(comm));
  const CommPtr kept = comm->comm;
  ANYCCL_CHECK(check_wait({.comm = kept.get()}));
  Status problem = check_window_arguments(buff, size, win, flags);
  if (problem.ok()) problem = need_host_memory(comm, {buff});
  ANYCCL_TRY(const std::uint32_t number,
             WindowRegistry(*kept).add(static_cast<std::byte*>(buff), size, problem));
  comm->background_progress = true;
  if (kept->size() > 1)
    if (Status listens = background_progress().listen(kept); !listens.ok()) {
      kept->abort(listens);  // peers may put already, into memory that its owner takes back
      return listens;
    }
  auto made = std::make_unique<anycclWindow>();
  made->comm = comm;
  made->number = number;
  made->at = buff;
  *win = made.get();
  const std::lock_guard lock(comm->mutex);
  comm->windows.push_back(std::move(made));
  return {};
}

Status need_window(anycclComm_t comm, const anycclWindow* win, const char* what) {
  ANYCCL_CHECK(need_comm(comm));
  ANYCCL_CHECK(need(win, what));
  if (win->comm != comm)
    return error(Code::invalid_argument, "{} is a window of another communicator", what);
  if (!win->open) return error(Code::invalid_usage, "{} is deregistered", what);
  return {};
}

/// Frees one window that was deregistered, if there are more than kMostForgotten of them.
void drop_closed_windows(anycclComm& comm) {
  const std::lock_guard lock(comm.mutex);
  const auto is_closed = [](const auto& one) { return !one->open; };
  if (static_cast<std::size_t>(std::count_if(comm.windows.begin(), comm.windows.end(), is_closed)) >
      kMostForgotten)
    comm.windows.erase(std::find_if(comm.windows.begin(), comm.windows.end(), is_closed));
}

Status deregister_window(anycclComm_t comm, anycclWindow_t win) {
  const InCall in_call(comm);
  ANYCCL_CHECK(need_window(comm, win, "win"));
  ANYCCL_CHECK(check_wait({.comm = comm->comm.get()}));
  if (!win->open.exchange(false)) return error(Code::invalid_usage, "win is deregistered");
  const CommPtr kept = comm->comm;
  Status status = WindowRegistry(*kept).remove(win->number);
  drop_closed_windows(*comm);
  return status;
}

/// Whether a function of a stream may make the call: a put or signal travels behind what was sent
/// to its peer, or put into this rank's own windows.
Status check_queue(const OneSidedCall& call, const Comm& comm) {
  if (call.what == OneSidedCall::What::wait) return {};
  if (call.peer == comm.rank()) return check_wait({.comm = &comm});
  Call sent;
  sent.collective = Collective::send;
  sent.root = call.peer;
  return check_wait({.comm = &comm, .call = &sent});
}

Status launch(const OneSidedCall& call, anycclComm_t comm, anycclStream_t stream) {
  ANYCCL_CHECK(stream != nullptr ? need_stream(stream) : check_queue(call, *comm->comm));
  ANYCCL_CHECK(need_host_memory(comm, {call.input}));
  if (in_group()) return add_to_group(comm, call, stream), Status{};
  if (stream == nullptr) return OneSidedCalls(*comm->comm).run(call);
  ANYCCL_TRY(Batch batch, Batch::make(stream->stream, 1));
  return batch.issue(comm->comm, call).status();
}

OneSidedCall signal_call(int peer, int index, int context, unsigned flags) {
  OneSidedCall call;
  call.peer = Rank{peer};
  call.signal = index;
  call.context = context;
  call.flags = flags;
  return call;
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclCommWindowRegister(anycclComm_t comm, void* buff, size_t size,
                                        anycclWindow_t* win, int winFlags) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    if (win != nullptr) *win = nullptr;
    const auto place = [=] { return register_window(comm, buff, size, win, winFlags); };
    if (!in_group()) return place();
    add_to_group(comm, place);
    return {};
  });
}

anycclResult_t anycclCommWindowDeregister(anycclComm_t comm, anycclWindow_t win) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_window(comm, win, "win"));
    const auto take = [=] { return deregister_window(comm, win); };
    if (!in_group()) return take();
    add_to_group(comm, take);
    return {};
  });
}

anycclResult_t anycclWinGetUserPtr(anycclComm_t comm, anycclWindow_t win, void** outUserPtr) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_window(comm, win, "win"));
    ANYCCL_CHECK(need(outUserPtr, "outUserPtr"));
    *outUserPtr = win->at;
    return {};
  });
}

anycclResult_t anycclPutSignal(const void* localbuff, size_t count, anycclDataType_t datatype,
                               int peer, anycclWindow_t peerWin, size_t peerWinOffset, int sigIdx,
                               int ctx, unsigned int flags, anycclComm_t comm,
                               anycclStream_t stream) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_window(comm, peerWin, "peerWin"));
    OneSidedCall call = signal_call(peer, sigIdx, ctx, flags);
    call.what = OneSidedCall::What::put;
    call.dtype = static_cast<DType>(as_byte(datatype));
    call.window = peerWin->number;
    call.offset = peerWinOffset;
    call.count = count;
    call.input = static_cast<const std::byte*>(localbuff);
    return launch(call, comm, stream);
  });
}

anycclResult_t anycclSignal(int peer, int sigIdx, int ctx, unsigned int flags, anycclComm_t comm,
                            anycclStream_t stream) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    return launch(signal_call(peer, sigIdx, ctx, flags), comm, stream);
  });
}

anycclResult_t anycclWaitSignal(int nDesc, anycclWaitSignalDesc_t* signalDescs, anycclComm_t comm,
                                anycclStream_t stream) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    if (nDesc < 0) return error(Code::invalid_argument, "nDesc is {}", nDesc);
    if (nDesc > 0) ANYCCL_CHECK(need(signalDescs, "signalDescs"));
    OneSidedCall call;
    call.what = OneSidedCall::What::wait;
    call.awaited = {signalDescs, static_cast<std::size_t>(nDesc)};
    return launch(call, comm, stream);
  });
}
