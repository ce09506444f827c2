# The front door: installs what is missing, configures, builds, tests. CMake does the work, and
# `cmake --preset release` does it without this file.
#
#   OPTIONS   passed to every configure, for example: make test OPTIONS="-DANYCCL_WERROR=ON"
.DEFAULT_GOAL := help
.PHONY: help run fast test test-all test-loaded soak torch-versions asan tsan fuzz clang odr arm build install deb wheels format docs docs-torch doxygen guide tidy bench bench-full bench-start bench-torch numbers clean
OPTIONS ?=
PREFIX  ?= /usr/local
JOBS    := $(shell nproc)
SECONDS ?= 600
SEED    ?= 1
DATA    := build/data
# $(call venv,PURPOSES): Python packages into .venv, unless OPTIONS leaves the Python package out
venv     = $(if $(findstring ANYCCL_WITH_PYTHON=OFF,$(OPTIONS)),,@scripts/make-venv $(1))
TORCH    = $(if $(findstring ANYCCL_WITH_PYTHON=OFF,$(OPTIONS))$(findstring ANYCCL_WITH_TORCH=OFF,$(OPTIONS)),,torch)
TORCHRUN = OMP_NUM_THREADS=1 KINETO_LOG_LEVEL=6 PYTHONPATH=build/release/python \
           .venv/bin/python -m torch.distributed.run --standalone
LONG_TORCH = TESTS_LONG=1 PYTHONPATH=$(CURDIR)/build/release/python .venv/bin/python -m pytest -s
BUSY     = PYTHONPATH=build/release/python .venv/bin/python bench/torch/busy.py
ARM_TESTS = reduce_test shm_test
SOURCES  = git ls-files -z '*.cpp' '*.hpp' '*.h' '*.c'

# The benchmarks are built where they are run or asked for, and once they have been.
BENCHES  = $(if $(wildcard build/release/CMakeCache.txt),,-DANYCCL_BENCHMARKS=OFF)
bench bench-full bench-start bench-torch gpu numbers test-all: BENCHES = -DANYCCL_BENCHMARKS=ON

# $(call build,PRESET,ARGUMENTS): packages, configure, compile, with tests. Only release has a Python package.
define build
@scripts/install-packages build checks
$(if $(filter release,$(1)),$(call venv,build $(TORCH)))
cmake --preset $(1) $(if $(filter release,$(1)),-DANYCCL_TESTS=ON $(BENCHES)) $(OPTIONS)
cmake --build --preset $(1) $(2)
endef
# $(call product,TARGETS): what people use, and nothing that only tests need. A build that has tests keeps them.
define product
@scripts/install-packages build
$(call venv,build $(TORCH))
cmake --preset release $(if $(wildcard build/release/CMakeCache.txt),,-DANYCCL_TESTS=OFF -DANYCCL_BENCHMARKS=OFF) $(OPTIONS)
cmake --build --preset release --target $(1)
endef
LIBRARY  = anyccl_cli anyccl $(if $(findstring ANYCCL_WITH_PYTHON=OFF,$(OPTIONS)),,anyccl_python anyccl_python_sources) \
           $(if $(TORCH),anyccl_torch anyccl_torch_sources)
# $(call test,PRESET,CTEST ARGUMENTS): results also go to build/PRESET/tests.xml, those of single cases to build/PRESET/cases
define test
@rm -rf build/$(1)/cases
ctest --preset $(1) -j $(JOBS) --no-tests=error --output-junit tests.xml $(2)
endef

# What tests need beside the build
define PREPARE
@scripts/install-packages build test package
$(call venv,build test $(TORCH) $(TORCH:torch=clients))
@scripts/get-digits $(DATA)
endef

# $(call guide,FLAGS): the chapters of docs/guide, one after the other
define guide
for page in docs/guide/[0-9]*.md; do \
  .venv/bin/python tests/docs/guide_chapter . build/release $$(basename $$page .md) $(1) || exit 1; \
done
endef

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Train a small network on 4 processes, measure AllReduce, train beside Gloo (installs and builds first)
	@scripts/get-digits $(DATA)
	$(call product,digits $(LIBRARY))
	build/release/bin/anyccl run -n 4 -- build/release/bin/digits $(DATA)/digits.csv.gz
	build/release/bin/anyccl perf all_reduce -g 4 -b 8 -e 4M -f 8
	$(if $(TORCH),$(TORCHRUN) --nproc-per-node 2 examples/torch/digits_beside_gloo.py)

fast: ## Build and run the unit tests: the inner loop
	$(call build,release)
	$(call test,release,-L unit)

test: ## Build and test every behaviour once (installs what is missing)
	$(PREPARE)
	$(call build,release)
	$(call test,release,-LE long)

test-all: ## All there is: long forms of tests, sanitizers, the second compiler, 64-bit Arm (an hour or more)
	$(PREPARE)
	$(call build,release)
	$(call test,release)
	$(MAKE) asan tsan fuzz clang odr arm $(if $(TORCH),torch-versions wheels)

torch-versions: ## Build the PyTorch backend for torch 2.9 to 2.15, and test it with the oldest and the newest (large downloads)
	$(call build,release)
	@scripts/make-venv test
	scripts/try-torch compile 2.10.0 2.11.0 2.12.1 2.14.1
	scripts/try-torch test 2.9.1 2.15.0

test-loaded: ## Run `make test` five times beside three busy loops: no verdict may depend on an idle machine
	$(PREPARE)
	$(call build,release)
	scripts/beside-load 3 5 ctest --preset release -j $(JOBS) --no-tests=error -LE long

soak: ## Random calls under random faults and kills, for SECONDS (600) from SEED (1): every result is checked
	$(call build,release,--target soak)
	build/release/bin/soak --seconds $(SECONDS) --seed $(SEED)

build: ## Build build/release/bin/anyccl, build/release/lib/libanyccl.so, the Python packages and the examples
	$(call product,all)

install: ## Install under PREFIX (default /usr/local): library, headers, tool, CMake and pkg-config files
	$(call product,$(LIBRARY) anyccl_lab)
	cmake --install build/release --prefix $(PREFIX)

deb: ## Build a Debian package in build/release
	@scripts/install-packages build package
	$(call build,release)
	cd build/release && cpack

wheels: ## Build wheels for Linux with glibc 2.27 or newer, for each CPython 3.10 to 3.13 here (PYTHONS: these instead)
	@scripts/install-packages build
	@scripts/make-venv wheels
	scripts/build-wheels $(PYTHONS)

asan: ## Build with clang++ and test under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/install-packages build asan
	$(call build,asan)
	$(call test,asan)

fuzz: ## Build the fuzz targets with libFuzzer and run each for a minute
	@scripts/install-packages build test asan
	$(call build,fuzz,--target fuzz_targets)
	scripts/fuzz build/fuzz 60

tsan: ## Build and test under ThreadSanitizer, with ranks as threads
	$(call build,tsan)
	$(call test,tsan,-LE process)

clang: ## Build everything with clang++, file by file, and run the unit tests
	@scripts/install-packages build test asan
	$(call build,clang)
	$(call test,clang,-L unit)

odr: ## Build the library and the tool with link-time optimization, which finds types that are defined twice
	$(call build,odr)

# The emulator hangs in tests that start threads or fork.
arm: ## Cross-build the library for 64-bit Arm, test its kernels and shared memory in an emulator
	@scripts/install-packages arm
	$(call build,arm,--target anyccl $(ARM_TESTS))
	$(call test,arm,-R '^(reduce_test|shm_test/(Memory|SlotTracker))|has_no_weak_symbols')

format: ## Format all sources with clang-format
	@scripts/install-packages test
	$(SOURCES) | xargs -0 clang-format-14 -i

docs: ## Write the pages of docs/ that are generated, and their pictures
	$(call build,release)
	tests/docs/algorithms . build/release/bin/anyccl --write
	tests/docs/primitives . build/release/bin/anyccl --write
	tests/docs/plan . build/release/bin/anyccl --write
	tests/docs/simulate . build/release/bin/anyccl docs/lab/simulate.md --write
	tests/docs/simulate . build/release/bin/anyccl docs/lab/model.md --write
	tests/docs/model . --write
	.venv/bin/python tests/docs/numbers . --write
	$(call guide,--write)
	tests/explore/figures . build/release/bin/anyccl --write
	tests/docs/support . build/release/bin/matrix_test build/release/bin/anyccl --write
	tests/docs/exports . build/release/lib/libanyccl.so --write
	tests/docs/tested . --write
	tests/docs/where . build/release --write

docs-torch: ## Run torch's own suite over anyccl and write docs/generated/torch-conformance.md (some minutes)
	$(call build,release)
	PYTHONPATH=build/release/python tests/torch/upstream/run .venv/bin/python build/release/upstream --write

guide: ## Go through docs/guide: build, run its commands, draw its pictures, open its pages in a browser (10 minutes)
	$(PREPARE)
	$(call build,release)
	$(call guide,--long)
	.venv/bin/python tests/docs/guide_pages . build/guide --pictures
	@echo "Pages and screenshots are in build/guide: begin with build/guide/README.html or build/guide/zh/README.html"

doxygen: ## Write the reference of the public headers to build/doxygen/html
	@scripts/install-packages test
	tests/docs/doxygen . build/doxygen

tidy: ## Check src and cli with clang-tidy
	@scripts/install-packages build lint
	cmake --preset dev -B build/tidy -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ $(OPTIONS)
	git ls-files -z 'src/*.cpp' 'cli/*.cpp' | xargs -0 -n 1 -P $(JOBS) clang-tidy-14 -p build/tidy --quiet

bench: ## Compare with bare loops and other libraries on this machine, all_reduce and a sample of the rest (10 minutes)
	@scripts/install-packages build bench
	@scripts/make-venv bench
	$(call build,release)
	for setting in "2 shm" "4 shm 51" "8 shm 51" "2 tcp 51"; do build/release/bin/api_overhead $$setting; done
	.venv/bin/python bench/peers/run --seconds 210 --json build/bench.json --plots build/bench
	$(if $(TORCH),$(BUSY) --seconds 0.5 --json build/bench-busy.json)

gpu: ## Say what holds on this machine's GPU, and what it takes: one page (10 minutes; needs a driver of CUDA)
	$(call build,release)
	bench/gpu/run build/release

bench-full: ## Compare all operations and sizes, and fail if a peer is ahead (long; goes on where it was interrupted)
	@scripts/install-packages build bench
	@scripts/make-venv bench
	$(call build,release)
	.venv/bin/python bench/peers/run --full --rounds 5 --resume --gate --json build/bench-full.json --plots build/bench-full

bench-start: ## What starting and groups cost, beside Open MPI, Gloo and, with BASE=COMMIT, that version (10 minutes)
	@scripts/install-packages build bench
	$(call build,release)
	$(if $(TORCH),.venv/bin/python,python3) bench/start/run $(if $(BASE),--base $(BASE)) --json build/bench-start.json

bench-torch: ## Compare with Gloo under torch, with 2 and 4 processes (10 minutes)
	@scripts/install-packages build
	$(call build,release)
	PYTHONPATH=build/release/python .venv/bin/python -W ignore bench/torch/bench.py --runs 3 --json build/bench-torch.json --plot build/bench-torch.svg

numbers: ## Measure what docs/numbers says: bits of a million random calls, planted faults, what levels, verification, types, codecs and sparse gradients cost (hours, as root)
	$(PREPARE)
	$(call build,release)
	TESTS_LONG=1 REPRODUCIBLE_JOBS=1000 build/release/bin/reproducible_test --gtest_filter='LevelThree.has_the_bits*'
	bench/levels
	TESTS_LONG=1 build/release/bin/verification_test --gtest_filter='Verification.*'
	build/release/bin/verify_bench 2
	build/release/bin/verify_bench 4
	build/release/bin/types_bench 2
	build/release/bin/types_bench 4
	build/release/bin/codec_bench
	build/release/bin/codec_bench errors
	build/release/bin/sparse_bench 4194304 10 15
	scripts/on-hosts 2 build/release/bin/coded_bench
	scripts/on-hosts 4 build/release/bin/coded_bench
	RANKS=2 scripts/on-hosts 2 build/release/bin/coded_bench
	RATE=10gbit scripts/on-hosts 2 build/release/bin/coded_bench
	scripts/on-hosts 2 build/release/bin/verify_bench 2 3
	scripts/on-hosts 2 build/release/bin/types_bench 2 5
	build/release/bin/anyccl run -n 4 -- build/release/bin/sparse_digits $(DATA)/digits.csv.gz
	$(if $(TORCH),$(LONG_TORCH) tests/torch/test_codec_hooks.py)
	$(if $(TORCH),unshare -n sh -c 'ip link set lo up; ANYCCL_TRANSPORT=tcp $(LONG_TORCH) tests/torch/test_sparse_training.py')
	$(if $(TORCH),$(TORCHRUN) --nproc-per-node 8 examples/torch/09_same_tokens.py)

clean: ## Remove everything that was built (.venv stays)
	rm -rf build
