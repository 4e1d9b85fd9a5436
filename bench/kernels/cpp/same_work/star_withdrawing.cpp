// The star join that withdraws what it has delivered.
#include "star.hpp"

SAME_WORK(yardstick::Star<true>)
