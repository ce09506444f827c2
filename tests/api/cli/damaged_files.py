#!/usr/bin/env python3
"""No file ends the tool badly: whatever is in it, the tool says one sentence and fails, or takes it; it never dies by a
signal, hangs, or takes all memory.

  damaged_files.py TOOL [ROUNDS [SEED]]

Makes files of every format that the tool reads, damages them, and gives them to it: cut anywhere, with bytes and numbers
changed, with parts twice, the same file twice, and what is no file of bytes at all.
"""

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading

TOOL, ROUNDS, SEED = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24, int(sys.argv[3]) if len(sys.argv) > 3 else 1
NUMBERS = ["0", "-1", "-8", "2147483648", "4294967298", "18446744073709551616", "9223372036854775807", "1e300", "-1e300", "1e-300",
           "0.5", "nan", "NaN", "null", "\"8\"", "[]", "{}", "1e999"]
MODEL = {"format": "anyccl.model/1", "name": "mine", "layers": 32, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8,
         "vocab": 32000, "gated": True, "moe": {"routed": 8, "per_token": 2, "ffn": 14336}}
CLUSTER = {"format": "anyccl.cluster/1", "name": "ours", "devices": 16, "devices_per_host": 8,
           "device": {"name": "H100", "bf16_TFLOPs": 989.5, "fp8_TFLOPs": 1979, "memory_GB": 80, "memory_GBps": 3350,
                      "best_efficiency": 0.77, "half_hidden": 3200},
           "inside": {"GBps": 360, "latency_us": 2}, "between": {"GBps": 50, "latency_us": 5}}
MACHINE = {"alpha": 1e-6, "overhead": 1e-7, "reduce": 1e-10}
TOPOLOGY = {"nodes": 4, "links": [{"from": 0, "to": 1, "GBps": 10, "latency_us": 1}, {"from": 1, "to": 2, "GBps": 10, "latency_us": 1}]}
ENDLESS = ("trace summary", "blame", "check --file", "plan --model")  # the others in the long form: each takes 2 s
failures = []


def run(arguments, what, folder, limit_s=60, tool=TOOL):
    """Runs the tool with 4 GiB of memory; notes a failure unless it ends as a program that is in order."""
    environment = {**os.environ, "ANYCCL_DUMP_DIR": "", "ANYCCL_TRACE": "", "ANYCCL_ALGO_PATH": ""}

    def limit():
        if "san" not in TOOL:  # sanitizers reserve terabytes of addresses
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    try:
        done = subprocess.run([tool, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s,
                              cwd=folder, env=environment, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return failures.append(f"{what}: anyccl {' '.join(arguments)}: not done after {limit_s} s")
    text = done.stderr.decode(errors="replace").strip()
    sentences = [line for line in text.splitlines() if not line.startswith(" ")]
    if done.returncode not in (0, 1, 2) or (done.returncode and not text and not done.stdout) or "terminate" in text or "Traceback" in text or len(sentences) > 4:
        kept = os.path.join(tempfile.gettempdir(), f"damaged-{len(failures)}")
        for argument in arguments:
            if os.path.isfile(argument):
                with open(argument, "rb") as source, open(kept, "wb") as copy:
                    copy.write(source.read(1 << 20))
        failures.append(f"{what}: anyccl {' '.join(arguments)}: rc {done.returncode}: {text[:300]!r} (the file: {kept})")


def damaged(text, random):
    """`text`, with one to three damages."""
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        way = random.randrange(6)
        at = random.randrange(max(1, len(text)))
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", text))
        if way == 0:
            text = text[:at]
        elif way == 1:
            text = text[:at] + bytes([random.randrange(256)]) + text[at + 1:]
        elif way in (2, 3) and numbers:
            number = random.choice(numbers)
            text = text[:number.start()] + random.choice(NUMBERS).encode() + text[number.end():]
        elif way == 4:
            end = min(len(text), at + random.randrange(1, 200))
            text = text[:end] + text[at:]
        else:
            end = min(len(text), at + random.randrange(1, 40))
            text = text[:at] + text[end:]
    return text


def nodes(value):
    """All places of a value of JSON: what holds it, and its key there."""
    places = []
    for key in (list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []):
        places += [(value, key)] + nodes(value[key])
    return places


def deranged(text, random):
    """JSON that is well-formed and says something else; or None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for _ in range(random.choice([1, 1, 2, 3])):
        places = nodes(value)
        if not places:
            return None
        holder, key = random.choice(places)
        ways = [lambda: holder.__setitem__(key, random.choice([0, 1, 2, -1, 7, 1 << 31, (1 << 32) + 2, 1 << 63, -(1 << 63), 1e300, 0.5, None,
                                                               "", "x", [], {}, True]))]
        if isinstance(holder, list):
            ways += [lambda: holder.insert(key, json.loads(json.dumps(holder[key]))), lambda: holder.pop(key)]
        else:
            ways += [lambda: holder.pop(key)]
        random.choice(ways)()
    return json.dumps(value).encode()


def main(folder):
    def path(name):
        return os.path.join(folder, name)

    def write(name, content):
        with open(path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path(name)
    for name in ("traces", "dumps"):
        os.mkdir(path(name))
    subprocess.run([TOOL, "perf", "all_reduce", "-g", "2", "-b", "8", "-e", "64", "-n", "3"], check=True, capture_output=True,
                   env={**os.environ, "ANYCCL_TRACE": path("traces")}, stdin=subprocess.DEVNULL)
    subprocess.run([TOOL, "export", "all_reduce/ring", "-n", "2..4", "--name", "mine", "-o", path("form.json")], check=True,
                   capture_output=True)
    trace = sorted(os.listdir(path("traces")))
    assert trace, "no trace was written"
    with open(path("traces/" + trace[0]), "rb") as file:
        first_trace = file.read()
    with open(path("form.json"), "rb") as file:
        form = file.read()
    dump = json.dumps({"format": "anyccl.dump/1"}).encode()
    corpus = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fuzz/corpus")

    def corpora(name):
        seeds = []
        for one in sorted(os.listdir(os.path.join(corpus, name))):
            with open(os.path.join(corpus, name, one), "rb") as file:
                seeds.append(file.read())
        return seeds
    # What reads a file, as a list of arguments with FILE in it, and files that are right, or nearly.
    readers = {
        "trace summary": (["trace", "summary", "FILE", path("traces")], [first_trace] + corpora("traces")),
        "trace merge": (["trace", "merge", "FILE", "-o", path("merged")], [first_trace] + corpora("traces")),
        "explore --trace": (["explore", "all_reduce/ring", "-n", "4", "--trace", "FILE", "-o", path("page")], [first_trace]),
        "blame": (["blame", "FILE"], [dump] + corpora("dumps")),
        "check --file": (["check", "--file", "FILE"], [form] + corpora("algorithm")),
        "perf --algo-file": (["perf", "all_reduce", "-g", "2", "--threads", "-n", "1", "-b", "8", "-e", "8", "--algo-file", "FILE"],
                             [form]),
        "plan --model": (["plan", "-m", "FILE"], [json.dumps(MODEL).encode()]),
        "plan --cluster": (["plan", "-m", "llama3-8b", "-c", "FILE"], [json.dumps(CLUSTER).encode()]),
        "plan --calibration": (["plan", "-m", "llama3-8b", "--measured", "inside", "--calibration", "FILE"], corpora("machines")),
        "simulate --machine": (["simulate", "all_reduce/ring", "-n", "4", "--machine", "FILE"],
                               [json.dumps(MACHINE).encode()] + corpora("machines")),
        "simulate --model": (["simulate", "all_reduce/ring", "-n", "4", "--model", "FILE"], corpora("machines")),
        "simulate --topology": (["simulate", "all_reduce/ring", "-n", "4", "--topology", "FILE"],
                                [json.dumps(TOPOLOGY).encode()]),
        "draw --edges": (["draw", "topology", "--edges", "FILE"], [b"0>1,1>2,2>0\n"]),
    }
    random_ = random.Random(SEED)
    for name, (arguments, seeds) in readers.items():
        file = path("damaged.json")

        def give(what, given):
            run([given if argument == "FILE" else argument for argument in arguments], f"{name}, {what}", folder)
        for what, odd in (("a folder", folder), ("/dev/zero", "/dev/zero"), ("/dev/null", "/dev/null"), ("none", path("none.json")),
                          ("an empty name", "")):
            if odd != "/dev/zero" or ROUNDS >= 100 or name in ENDLESS:
                give(what, odd)
        os.mkfifo(path("pipe.json"))
        feeder = threading.Thread(target=lambda: write("pipe.json", seeds[0][: len(seeds[0]) // 2]), daemon=True)
        feeder.start()
        give("a FIFO with half of it", path("pipe.json"))
        os.remove(path("pipe.json"))
        for i in range(ROUNDS):
            seed = seeds[0] if i % 2 == 0 else random_.choice(seeds)
            write("damaged.json", i % 3 and deranged(seed, random_) or damaged(seed, random_))
            give(f"round {i} of seed {SEED}", file)
        write("damaged.json", seeds[0] + seeds[0])
        give("it twice", file)
    write("a.json", first_trace)
    write("b.json", first_trace)
    for verb in (["trace", "summary"], ["trace", "merge", "-o", path("merged")]):
        run([*verb, path("a.json"), path("b.json")], "the same trace twice", folder)
        run([*verb, path("a.json"), path("a.json")], "the same file twice", folder)


with tempfile.TemporaryDirectory() as made:
    for bad in ("kill -SEGV $$", "exit 1", "echo why >&2; exit 3", "echo terminate called >&2; exit 1", "sleep 60"):
        run(["-c", bad], "planted", made, limit_s=1, tool="sh")
        assert failures, f"this is not noticed: {bad}"
        failures.clear()
    main(made)
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
