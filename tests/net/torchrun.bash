# torchrun on several hosts, once on each: the backend of torch.distributed, and a program in C.

# start_agent NODE ARGUMENT...: of two
start_agent() {
  local node=$1
  shift
  start "$node" "$node" env OMP_NUM_THREADS=1 PYTHONPATH="$build/python" "$PYTHON" -m torch.distributed.run \
    --nnodes 2 --node-rank "$node" --master-addr h0 --master-port 29500 --nproc-per-node 1 "$@"
}

test_torch_needs_no_secret() {
  cluster up 2
  cat >"$folder/rank.py" <<'PYTHON'
import torch
import torch.distributed as dist

dist.init_process_group("anyccl")
x, everyone = torch.full([100_000], dist.get_rank() + 1.0), [None] * 2
dist.all_reduce(x)
dist.all_gather_object(everyone, {"rank": dist.get_rank()})
print("right" if x.eq(3).all() and everyone == [{"rank": 0}, {"rank": 1}] else f"wrong: {x} {everyone}")
dist.destroy_process_group()
PYTHON
  for node in 0 1; do start_agent $node "$folder/rank.py"; done
  for node in 0 1; do
    ends $node 0
    says $node right
  done
}

test_a_program_in_c_needs_a_secret_only() {
  cluster up 2
  export ANYCCL_SECRET=$secret
  for node in 0 1; do start_agent $node --no-python "$tool" perf all_reduce -b 8 -e 64 -f 8 -n 3 -w 1; done
  ends 0 0
  ends 1 0
  says 0 '2 ranks (processes)'
  says 0 '# wrong values: 0 (all right)'
}
