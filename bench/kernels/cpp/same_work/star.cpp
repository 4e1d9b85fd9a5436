// The star join whose results are known to live as long as their mappings: insertions alone.
#include "star.hpp"

SAME_WORK(yardstick::Star<false>)
