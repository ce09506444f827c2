# The facts that a comment lists become a list.
s,/// \(Shapes\|Order\|Result\|Threads\|Errors\):,/// - **\1:**,
