// The chain join whose results are known to live as long as their mappings: insertions alone.
#include "chain.hpp"

SAME_WORK(yardstick::Chain<false>)
