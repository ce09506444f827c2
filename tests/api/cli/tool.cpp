#include "tool.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

namespace anyccl::cli {
namespace {

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  UniqueFd read, write;
};

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

/// Appends what is there; closes the pipe at its end.
void take(UniqueFd& from, std::string& text) {
  char buffer[4096];
  const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
  if (got <= 0) return from.reset();
  text.append(buffer, static_cast<std::size_t>(got));
}

}  // namespace

Tool::Tool(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), ANYCCL_TOOL);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  Pipe in, out, err;
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(in.read.get(), STDIN_FILENO);
    ::dup2(out.write.get(), STDOUT_FILENO);
    ::dup2(err.write.get(), STDERR_FILENO);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
    ::execv(argv[0], argv.data());
    ::_exit(99);
  }
  to_in_ = std::move(in.write);
  from_out_ = std::move(out.read);
  from_err_ = std::move(err.read);
}

Tool::~Tool() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Tool::read_some(const Deadline& deadline) {
  pollfd fds[] = {{from_out_.get(), POLLIN, 0}, {from_err_.get(), POLLIN, 0}};
  if (!from_out_ && !from_err_) return false;
  if (::poll(fds, 2, deadline.poll_ms(60'000)) <= 0) return false;
  if (fds[0].revents != 0) take(from_out_, out_);
  if (fds[1].revents != 0) take(from_err_, err_);
  return true;
}

bool Tool::says(const std::string& text, int times) {
  const Deadline deadline = Deadline::in(std::chrono::seconds(10));
  const auto said = [&] { return count(out_, text) >= times || count(err_, text) >= times; };
  while (!said())
    if (!read_some(deadline)) return said();
  return true;
}

void Tool::send(const std::string& text) const {
  EXPECT_EQ(::write(to_in_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void Tool::signal(int number) const {
  ::kill(pid_, number);
}

int Tool::finish() {
  to_in_.reset();
  const Deadline deadline = Deadline::in(std::chrono::seconds(120));
  while (read_some(deadline)) {
  }
  if (deadline.passed()) return -1;
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<std::string> run_script(std::vector<std::string> arguments, const std::string& script) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
  return arguments;
}

}  // namespace anyccl::cli
