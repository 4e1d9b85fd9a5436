// The chain join that withdraws what it has delivered.
#include "chain.hpp"

SAME_WORK(yardstick::Chain<true>)
