#pragma once
// Docstrings, in NumPy's style: mixture of experts. Those of grids are in ../anyccl/grid.py.

namespace anyccl::python::docs {

constexpr const char kRoute[] =
    R"(Decide where tokens go in a mixture of experts, and exchange how many. Collective; not in a
group.

Rank r of n has the nexperts / n experts from r * nexperts / n on.

Parameters
----------
experts : array of integers, of shape (tokens,) or (tokens, choices)
    The experts of each token of this rank, or -1: none. Each rank has its own number of tokens.
nexperts : int
    A multiple of `size`; equal on all ranks.
capacity : int, optional
    An expert takes the first `capacity` tokens of each rank, and the others are dropped. Without
    it, all.
padded : bool
    Give every expert `capacity` rows of each rank, so that sizes do not depend on the tokens.

Returns
-------
Routing

Raises
------
InvalidUsage
    On all ranks, where `capacity` or `padded` differs. The communicator goes on.)";
constexpr const char kRouting[] = R"(Which tokens go to which experts, made by `Communicator.route`.

Serves any number of `dispatch` and `combine` calls, which are collective, one at a time, forwards
and backwards.)";
constexpr const char kRoutingTokens[] = R"(The number of tokens of this rank.)";
constexpr const char kRoutingChoices[] = R"(The number of experts of each token.)";
constexpr const char kRoutingRows[] =
    R"(The number of rows that the experts of this rank have in all, with padding.)";
constexpr const char kRoutingCounts[] =
    R"(For each expert of this rank, how many of its rows are tokens.)";
constexpr const char kRoutingDropped[] = R"(How many choices of this rank's tokens were dropped.)";
constexpr const char kDispatch[] =
    R"(Send tokens to the ranks that have their experts. Collective; not in a group.

Parameters
----------
x : array of shape (tokens, ...)
out : array, optional
    Not `x`.

Returns
-------
array
    Of shape ``(rows, *x.shape[1:])``: the tokens for this rank's experts, one expert after the
    other, each in the order of ranks and of their tokens; padding is zero.)";
constexpr const char kCombine[] =
    R"(Send rows of experts back, and add up those of each token. Collective; not in a group.

Parameters
----------
x : array of shape (rows, ...)
    What the experts have made of the rows of `dispatch`.
weights : array of shape (tokens, choices), optional
    Of the type of `x`. Each row is multiplied by that of its choice and rounded; rows are added up
    in the order of choices by the tree that reductions have, 16 at a time. A dropped choice adds
    nothing. Without weights all are 1.
out : array, optional
    Not `x`.

Returns
-------
array
    Of shape ``(tokens, *x.shape[1:])``.)";

}  // namespace anyccl::python::docs
