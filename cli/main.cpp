#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>

#include "algorithm/loaded/load.hpp"
#include "base/config.hpp"
#include "launch/own_command.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

#define ANYCCL_ENTRY(name) &verb_##name,
constexpr const Verb* kVerbs[] = {
#include "anyccl/verb.inc"
};
#undef ANYCCL_ENTRY

constexpr std::string_view kLab = "anyccl-lab";
constexpr bool kHasAll = kLab == ANYCCL_TOOL;

const Verb* find_verb(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                         [&](const Verb* v) { return v->name == name; });
  return found == std::end(kVerbs) ? nullptr : *found;
}

/// Prints the message to stderr, after the name of the tool, and returns kUsageError.
int usage_error(std::string_view message) {
  fmt::print(stderr, "anyccl: {}\n", message);
  return kUsageError;
}

int unknown_verb(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Verb* verb : kVerbs) names.push_back(verb->name);
  return usage_error(fmt::format(
      "there is no verb '{}'; the verbs are {} (see anyccl --help){}", name, fmt::join(names, ", "),
      kHasAll ? "" : "; anyccl-lab, which has more, is not beside this program (make build)"));
}

/// Sets the name of the tool, its flag --version and the last line of its help.
void describe(CLI::App& app) {
  app.name("anyccl");
  app.set_version_flag("--version", "anyccl " ANYCCL_VERSION_TEXT, "Print the version and exit");
  app.footer("anyccl VERB --help explains a verb.");
}

/// Numbers that CLI11 takes for others: signs and what does not fit become large ones, and nan is
/// in every range.
std::string problem_of_number(const std::string& text, bool is_float) {
  const char *const first = text.data(), *const last = first + text.size();
  double value = 0;
  std::uint64_t whole = 0;
  const auto [end, problem] =
      is_float ? std::from_chars(first, last, value) : std::from_chars(first, last, whole);
  if (problem == std::errc{} && end == last && std::isfinite(value)) return "";
  return fmt::format("'{}' is not a {}", text, is_float ? "number" : "whole number of 0 or more");
}

void check_numbers(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    const bool is_float = option->get_type_name().starts_with("FLOAT");
    if (is_float || option->get_type_name().starts_with("UINT"))
      option->check([=](const std::string& text) { return problem_of_number(text, is_float); });
  }
}

/// Loads the algorithms of ANYCCL_ALGO_PATH first, unless the verb takes a command.
int parse_and_run(const Verb& verb, std::vector<std::string> arguments) {
  Command after_dashes;
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const bool has_dashes = dashes != arguments.end();
  if (has_dashes) after_dashes.assign(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());

  CLI::App app{std::string(verb.summary), "anyccl " + std::string(verb.name)};
  app.prefix_command(verb.takes_command);
  Command command;
  const Body body = verb.declare(app, command);
  check_numbers(app);
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    return usage_error(
        fmt::format("{}: {} (see anyccl {} --help)", verb.name, problem.what(), verb.name));
  }

  command = app.remaining();
  if (!command.empty() && command.front().starts_with('-'))
    return usage_error(fmt::format("{}: unknown flag '{}' (see anyccl {} --help)", verb.name,
                                   command.front(), verb.name));
  // A "--" after the program's name is the program's own.
  if (has_dashes && !command.empty()) command.emplace_back("--");
  command.insert(command.end(), after_dashes.begin(), after_dashes.end());
  if (!verb.takes_command && has_dashes)
    return usage_error(fmt::format("{}: takes no command after --", verb.name));
  if (!verb.takes_command)  // a command's own process does it
    if (const auto loaded = load_algorithm_files(value_now("ANYCCL_ALGO_PATH").value_or(""));
        !loaded.ok())
      return usage_error(fmt::format("ANYCCL_ALGO_PATH: {}", loaded.status().message()));
  return body();
}

/// Adds all verbs to `app` and prints its help, to stderr if `code` is not 0. Returns `code`.
int print_help(CLI::App& app, int code) {
  for (const Verb* verb : kVerbs)
    app.add_subcommand(std::string(verb->name), std::string(verb->summary));
  fmt::print(code == 0 ? stdout : stderr, "{}", app.help());
  return code;
}

/// Starts the program that has all verbs in place of this one. Returns if it is not beside it.
void start_lab(std::vector<std::string> arguments) {
  const Result<std::string> own = own_path();
  if (kHasAll || !own.ok()) return;
  arguments.insert(arguments.begin(), own->substr(0, own->rfind('/') + 1) + std::string(kLab));
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  ::execv(words[0], words.data());
}

/// Replaces this process by anyccl-lab, if it is beside it, unless a verb of this program is first.
int run_tool(std::vector<std::string> arguments) {
  CLI::App app{"Collective communication for CPUs: shared memory and TCP"};
  describe(app);
  if (const Verb* verb = arguments.empty() ? nullptr : find_verb(arguments.front())) {
    arguments.erase(arguments.begin());
    return parse_and_run(*verb, std::move(arguments));
  }
  start_lab(arguments);
  if (arguments.empty()) return print_help(app, kUsageError);
  if (!arguments.front().starts_with('-')) return unknown_verb(arguments.front());
  try {
    app.parse(std::vector<std::string>{arguments.front()});
  } catch (const CLI::CallForHelp&) {
    return print_help(app, 0);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
  }
  return usage_error(fmt::format("unknown flag '{}' (see anyccl --help)", arguments.front()));
}

/// Writes the output that is still in memory; the tool fails if it cannot be written.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "anyccl: cannot write the output: %s\n", std::strerror(errno));
  return code != 0 ? code : 1;
}

}  // namespace
}  // namespace anyccl::cli

int main(int argc, char** argv) try {
  return anyccl::cli::finish_output(
      anyccl::cli::run_tool(std::vector<std::string>(argv + std::min(1, argc), argv + argc)));
} catch (const std::bad_alloc&) {
  std::fputs("anyccl: there is not enough memory\n", stderr);
  return 1;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "anyccl: %s\n", problem.what());
  return 1;
}
